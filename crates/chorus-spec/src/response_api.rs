//! What the Responses door keeps (`global.services.response_api`).
//!
//! Plain data of the file; it knows no store. Source: contract §1.9. Unlike there, responses are kept in a file of this
//! machine unless the file says otherwise.

use crate::RedisServer;
use std::time::Duration;

/// Where responses are kept (`store_backend`).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ResponsesPlace {
    /// A file of this machine.
    #[default]
    File,
    /// They are gone when the process stops.
    Memory,
    /// A Redis server, which replicas share; its keys begin with `vllm-sr:responses:` by default.
    Redis(Box<RedisServer>),
}

/// Whether the Responses door is open, and how long and where responses are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseApi {
    /// Whether `/v1/responses` answers at all.
    pub enabled: bool,
    /// Where they are kept.
    pub place: ResponsesPlace,
    /// How long a response is kept; default 24 hours.
    pub ttl: Duration,
    /// Most responses that are kept; the oldest makes room. Default 1,000.
    pub max_responses: usize,
}

impl Default for ResponseApi {
    fn default() -> Self {
        Self {
            enabled: true,
            place: ResponsesPlace::default(),
            ttl: Duration::from_secs(86_400),
            max_responses: 1000,
        }
    }
}
