//! Where run records, outcomes and API keys are kept (`services.router_replay`, `services.api_keys`).
//!
//! Plain data of the file; it knows no store. Source: contract §1.9; `api_keys`, `ca_file` and `max_spool_bytes` are ours.

use crate::{QdrantPlace, RedisServer, Secret};
use std::time::Duration;

/// Where they are kept. Read when a process starts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KeptWhere {
    /// Run records and outcomes; `None` is a file of this machine.
    pub records: Option<RecordsServer>,
    /// How long a database or a Qdrant server keeps runs; `None` is for good.
    pub records_for: Option<Duration>,
    /// Most bytes of records that wait on this machine while the server is away, where the file says so
    /// (`max_spool_bytes`, which the store defines).
    pub spool_bytes: Option<u64>,
    /// API keys; `None` is a file of this machine.
    pub keys: Option<PostgresServer>,
}

/// What keeps run records and outcomes that replicas share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordsServer {
    /// A database.
    Postgres(PostgresServer),
    /// A Redis or Valkey server.
    Redis(Box<RedisRecords>),
    /// A Qdrant server, which keeps run records; outcomes stay in a file of this machine.
    Qdrant(Box<QdrantRecords>),
}

impl RecordsServer {
    /// Its password or key, by reference.
    #[must_use]
    pub fn password(&self) -> Option<&Secret> {
        match self {
            Self::Postgres(server) => server.password.as_ref(),
            Self::Redis(records) => records.place.password.as_ref(),
            Self::Qdrant(records) => records.place.api_key.as_ref(),
        }
    }
}

/// Run records in a Redis server, which holds them in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisRecords {
    /// The server; its keys begin with `vllm-sr:replay:` by default.
    pub place: RedisServer,
    /// How long runs are kept; default 30 days.
    pub keep_for: Duration,
    /// Most runs; the oldest make room (`max_records`, default 10,000).
    pub most: usize,
}

/// Run records in a Qdrant server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QdrantRecords {
    /// The server; its collection is `router_replay` by default.
    pub place: QdrantPlace,
    /// Most runs; the oldest make room (`max_records`, default 10,000).
    pub most: usize,
}

/// How a PostgreSQL database is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresServer {
    /// A host, or the folder of a Unix socket; default `localhost`.
    pub host: String,
    /// Its port; default 5432.
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// Who asks.
    pub user: String,
    /// The password, by reference.
    pub password: Option<Secret>,
    /// How the connection is protected; default [`PostgresMode::VerifyFull`], on this machine [`PostgresMode::Disable`].
    pub mode: PostgresMode,
    /// Whose certificates are trusted: a file in PEM; default the public authorities.
    pub ca_file: Option<String>,
}

/// How a connection is protected (`ssl_mode`). Source: the modes of PostgreSQL's own client; those that encrypt only where
/// the server happens to offer it promise nothing, and are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresMode {
    /// Not at all.
    Disable,
    /// Encrypted, by any certificate.
    Require,
    /// Encrypted, by a certificate of the host's own.
    VerifyFull,
}
