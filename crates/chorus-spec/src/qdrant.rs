//! A Qdrant server that keeps memories, passages of files, or run records.
//!
//! Plain data of the file; it knows no store. Source: contract Appendix A, `MemoryQdrantConfig`, `QdrantVectorStoreConfig`. Unlike
//! there it is asked over HTTP, so the default port is that of its REST API.

use crate::Secret;
use std::time::Duration;

/// How a Qdrant server is reached, and which collections are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QdrantPlace {
    /// Its host, an IPv6 address in brackets; default `localhost`.
    pub host: String,
    /// Its port; default 6333.
    pub port: u16,
    /// Its key, by reference.
    pub api_key: Option<Secret>,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// How long one question may take; default 5 seconds.
    pub timeout: Duration,
    /// The collection, of memories or of run records, or what names of collections of vector stores begin with.
    pub collection: String,
}
