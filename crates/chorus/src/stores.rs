//! Where run records, outcomes and API keys are kept: files of this user, or the server that a configuration names.
//!
//! It knows no table. **Invariant:** a database that is away stops no answer: records wait in a file of this machine. What
//! waiting does not mend (a password, a name, another program's tables), and keys that cannot be read, end the start.

use crate::policy_file::Policy;
use crate::setup;
use crate::terminal::note;
use anyhow::{Context as _, bail};
use chorus_engine::{Env, qdrant_link};
use chorus_spec::{
    KeptWhere, PostgresMode, PostgresServer, QdrantPlace, QdrantRecords, RecordsServer, RedisRecords,
    RedisServer, ResponseApi, ResponsesPlace, Secret,
};
use chorus_store::{
    KeyStore, MemoryResponses, OutcomeStore, PostgresFault, PostgresKeys, PostgresOutcomes, PostgresPlace,
    PostgresRuns, PostgresTls, QdrantRuns, RedisFault, RedisOutcomes, RedisPlace, RedisResponses, RedisRuns,
    ResponseLimits, ResponseStore, RunStore, RunsPlace, SharedRunStore, SqliteKeys, SqliteRunStore, postgres,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What that configuration says (of a policy, its base); files of this user where none is named.
pub(crate) fn named(config: Option<&Path>, base: Option<&Path>) -> anyhow::Result<KeptWhere> {
    match config {
        Some(file) => Ok(Policy::read(file, base)?.spec()?.global.kept_where.clone()),
        None => Ok(KeptWhere::default()),
    }
}

/// Run records, for writing.
pub(crate) async fn records(
    kept: &KeptWhere,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn RunStore>> {
    let Some(server) = &kept.records else { return Ok(Arc::new(setup::records(runs_file)?)) };
    let place = Shared::of(server);
    if let Some(away) = place.prepared().await? {
        note(&format!("note: {away}: run records wait on this machine until it can be"));
    }
    place.store(setup::spool(runs_file, kept.spool_bytes)?, kept.records_for)
}

/// Run records, for reading.
pub(crate) async fn existing_records(
    kept: &KeptWhere,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn RunStore>> {
    let Some(server) = &kept.records else { return Ok(Arc::new(setup::existing_records(runs_file)?)) };
    let place = Shared::of(server);
    if let Some(away) = place.prepared().await? {
        bail!("{away}");
    }
    place.store(SqliteRunStore::in_memory()?, None)
}

/// Verdicts on runs; in a file of this machine where the server of run records keeps none.
pub(crate) fn outcomes(
    kept: &KeptWhere,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn OutcomeStore>> {
    Ok(match kept.records.as_ref().map(Shared::of) {
        Some(Shared::Postgres(at)) => Arc::new(PostgresOutcomes::new(&at.place)?),
        Some(Shared::Redis(at)) => Arc::new(RedisOutcomes::new(&at.place, at.keep_for, at.most)?),
        Some(Shared::Qdrant(_)) | None => Arc::new(setup::outcomes(runs_file)?),
    })
}

/// Responses of the Responses door.
pub(crate) fn responses(
    keep: &ResponseApi,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn ResponseStore>> {
    let ResponseApi { ttl, max_responses, .. } = *keep;
    let limits = ResponseLimits { ttl, max_responses, ..ResponseLimits::default() };
    Ok(match &keep.place {
        ResponsesPlace::File => Arc::new(setup::responses(runs_file, limits)?),
        ResponsesPlace::Memory => Arc::new(MemoryResponses::new(limits)),
        ResponsesPlace::Redis(server) => {
            let (place, unset) = redis_place(server);
            if let Some(unset) = unset {
                bail!("responses in the Redis server at {}: {unset}", place.address);
            }
            Arc::new(RedisResponses::new(&place, limits)?)
        }
    })
}

/// API keys.
pub(crate) async fn keys(kept: &KeptWhere, keys_file: Option<PathBuf>) -> anyhow::Result<Arc<dyn KeyStore>> {
    let Some(server) = &kept.keys else {
        return Ok(Arc::new(SqliteKeys::open(&setup::keys_file(keys_file)?)?));
    };
    let at = Resolved::of(server);
    postgres::prepare(&at.place).await.map_err(|fault| at.told("API keys", fault))?;
    Ok(Arc::new(PostgresKeys::new(&at.place)?))
}

/// The server of run records that replicas share, with its password looked up.
enum Shared {
    Postgres(Resolved),
    Redis(ResolvedRedis),
    Qdrant(QdrantRecords),
}

impl Shared {
    fn of(server: &RecordsServer) -> Self {
        match server {
            RecordsServer::Postgres(server) => Self::Postgres(Resolved::of(server)),
            RecordsServer::Redis(records) => Self::Redis(ResolvedRedis::of(records)),
            RecordsServer::Qdrant(records) => Self::Qdrant((**records).clone()),
        }
    }

    /// Whether it can be used; says why not where it is away, which waiting may mend.
    async fn prepared(&self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Postgres(at) => match postgres::prepare(&at.place).await {
                Ok(()) => Ok(None),
                Err(fault) if fault.is_absence() => Ok(Some(fault.to_string())),
                Err(fault) => Err(at.told("run records", fault)),
            },
            Self::Redis(at) => match at.runs()?.reached().await {
                Ok(()) => Ok(None),
                Err(fault) if fault.is_absence() => {
                    Ok(Some(format!("the Redis server of run records: {fault}")))
                }
                Err(fault) => Err(at.told(fault)),
            },
            Self::Qdrant(records) => {
                Ok(in_qdrant(records)?.reached().await.err().map(|fault| fault.to_string()))
            }
        }
    }

    /// Its records: what it does not take at present waits in the spool.
    fn store(&self, spool: SqliteRunStore, keep_for: Option<Duration>) -> anyhow::Result<Arc<dyn RunStore>> {
        let (writer, reader): (Arc<dyn RunsPlace>, Arc<dyn RunsPlace>) = match self {
            Self::Postgres(at) => {
                (Arc::new(PostgresRuns::new(&at.place)?), Arc::new(PostgresRuns::new(&at.place)?))
            }
            Self::Redis(at) => (Arc::new(at.runs()?), Arc::new(at.runs()?)),
            Self::Qdrant(records) => (Arc::new(in_qdrant(records)?), Arc::new(in_qdrant(records)?)),
        };
        Ok(Arc::new(SharedRunStore::new(writer, reader, spool, keep_for)))
    }
}

/// A Qdrant server of run records, with its key looked up.
fn in_qdrant(QdrantRecords { place, most }: &QdrantRecords) -> anyhow::Result<QdrantRuns> {
    let env = Env::of(|name| std::env::var(name).ok());
    let QdrantPlace { host, port, collection, .. } = place;
    let link = qdrant_link::link(place, &env)
        .with_context(|| format!("run records in the Qdrant server at {host}:{port}"))?;
    Ok(QdrantRuns::new(link, collection, *most))
}

/// A Redis server of run records, with its password looked up.
struct ResolvedRedis {
    place: RedisPlace,
    keep_for: Duration,
    most: usize,
    /// Why there is no password where one is named.
    unset: Option<String>,
}

impl ResolvedRedis {
    fn of(records: &RedisRecords) -> Self {
        let RedisRecords { place, keep_for, most } = records;
        let (place, unset) = redis_place(place);
        Self { place, keep_for: *keep_for, most: *most, unset }
    }

    fn runs(&self) -> anyhow::Result<RedisRuns> {
        Ok(RedisRuns::new(&self.place, self.keep_for, self.most)?)
    }

    fn told(&self, fault: RedisFault) -> anyhow::Error {
        let because = because(self.unset.as_deref());
        anyhow::Error::new(fault)
            .context(format!("run records in the Redis server at {}{because}", self.place.address))
    }
}

/// A Redis server, with its password looked up, or why there is none where one is named.
fn redis_place(server: &RedisServer) -> (RedisPlace, Option<String>) {
    let (password, unset) = looked_up(server.password.as_ref());
    let RedisServer { address, database, tls, tls_any_certificate, retries, key_prefix, .. } = server.clone();
    (RedisPlace { address, database, password, tls, tls_any_certificate, retries, key_prefix }, unset)
}

/// A password, or why there is none where one is named.
fn looked_up(password: Option<&Secret>) -> (Option<String>, Option<String>) {
    let env = Env::of(|name| std::env::var(name).ok());
    match password.map(|secret| env.reveal(secret)).transpose() {
        Ok(password) => (password, None),
        Err(unset) => (None, Some(unset.to_string())),
    }
}

fn because(unset: Option<&str>) -> String {
    unset.map(|why| format!(" ({why})")).unwrap_or_default()
}

/// A database, with its password looked up.
struct Resolved {
    place: PostgresPlace,
    /// Why there is no password where one is named.
    unset: Option<String>,
}

impl Resolved {
    fn of(server: &PostgresServer) -> Self {
        let (password, unset) = looked_up(server.password.as_ref());
        let tls = match server.mode {
            PostgresMode::Disable => PostgresTls::Off,
            PostgresMode::Require => PostgresTls::AnyCertificate,
            PostgresMode::VerifyFull => PostgresTls::Verified(server.ca_file.as_ref().map(PathBuf::from)),
        };
        let PostgresServer { host, port, database, user, .. } = server.clone();
        Self { place: PostgresPlace { host, port, database, user, password, tls }, unset }
    }

    fn told(&self, what: &str, fault: PostgresFault) -> anyhow::Error {
        let Self { place: PostgresPlace { host, port, database, .. }, unset } = self;
        let because = because(unset.as_deref());
        anyhow::Error::new(fault)
            .context(format!("{what} in the database `{database}` at {host}:{port}{because}"))
    }
}
