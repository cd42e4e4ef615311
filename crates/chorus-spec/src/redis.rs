//! A Redis server that keeps waiting workflows, conversations, limits, cached answers or run records.
//!
//! Plain data of the file; it knows no store. Source: contract §1.9, of the looper `flow`.

use crate::Secret;

/// How a Redis server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisServer {
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

impl Default for RedisServer {
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
