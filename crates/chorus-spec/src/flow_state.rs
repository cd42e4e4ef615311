//! Where runs wait that have handed tool calls to the client (`global.integrations.looper.flow.state`).
//!
//! Plain data of the file; it knows no store. Source: contract §1.9. Unlike there, memory is the default: a file or a
//! server is used only where somebody names one.

use crate::Secret;
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
    Redis(Box<FlowRedis>),
}

/// How a Redis server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRedis {
    /// `host:port`; default `localhost:6379`.
    pub address: String,
    /// The database's number; default 0.
    pub database: i64,
    /// The password, by reference.
    pub password: Option<Secret>,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whether any certificate will do (`tls_skip_verify`).
    pub tls_any_certificate: bool,
    /// How often a lost connection is tried again; default 3.
    pub retries: usize,
    /// What the names of our keys begin with; default `vllm-sr:flow:state:`.
    pub key_prefix: String,
}

impl Default for FlowRedis {
    fn default() -> Self {
        Self {
            address: "localhost:6379".to_owned(),
            database: 0,
            password: None,
            tls: false,
            tls_any_certificate: false,
            retries: 3,
            key_prefix: "vllm-sr:flow:state:".to_owned(),
        }
    }
}
