//! Where runs wait that have handed tool calls to the client (`global.integrations.looper.flow.state`).
//!
//! Plain data of the file; it knows no store. Source: contract §1.9. Unlike there, memory is the default: a file or a
//! server is used only where somebody names one.

use crate::RedisServer;
use std::time::Duration;

/// Where waiting runs are kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowState {
    /// The store.
    pub store: FlowStore,
    /// A run that nobody came for is forgotten after this time; default 30 minutes.
    pub ttl: Duration,
}

impl Default for FlowState {
    fn default() -> Self {
        Self { store: FlowStore::Memory, ttl: Duration::from_secs(1800) }
    }
}

/// A store of waiting runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowStore {
    /// This process; gone when it stops.
    Memory,
    /// Files of one directory, which processes of one machine may share.
    File {
        /// The directory, which is made if need be.
        directory: String,
    },
    /// A Redis server, which machines may share.
    Redis(Box<RedisServer>),
}
