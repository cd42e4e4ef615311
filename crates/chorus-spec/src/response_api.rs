//! What the Responses door keeps (`global.services.response_api`).
//!
//! Plain data of the file; it knows no store. Source: contract §1.9. Unlike there, responses are kept in a file of this
//! machine unless the file says `memory`.

use std::time::Duration;

/// Whether the Responses door is open, and how long and where responses are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseApi {
    /// Whether `/v1/responses` answers at all.
    pub enabled: bool,
    /// Whether responses are gone when the process stops (`store_backend: memory`).
    pub in_memory: bool,
    /// How long a response is kept; default 24 hours.
    pub ttl: Duration,
    /// Most responses that are kept; the oldest makes room. Default 1,000.
    pub max_responses: usize,
}

impl Default for ResponseApi {
    fn default() -> Self {
        Self { enabled: true, in_memory: false, ttl: Duration::from_secs(86_400), max_responses: 1000 }
    }
}
