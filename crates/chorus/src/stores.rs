//! Where run records, outcomes and API keys are kept: files of this user, or the database that a configuration names.
//!
//! It knows no table. **Invariant:** a database that is away stops no answer: records wait in a file of this machine. What
//! waiting does not mend (a password, a name, another program's tables), and keys that cannot be read, end the start.

use crate::policy_file::Policy;
use crate::setup;
use crate::terminal::note;
use chorus_engine::Env;
use chorus_spec::{KeptWhere, PostgresMode, PostgresServer};
use chorus_store::{
    KeyStore, OutcomeStore, PostgresFault, PostgresKeys, PostgresOutcomes, PostgresPlace, PostgresRunStore,
    PostgresTls, RunStore, SqliteKeys, SqliteRunStore, postgres,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    let at = Resolved::of(server);
    match postgres::prepare(&at.place).await {
        Ok(()) => {}
        Err(fault) if fault.is_absence() => {
            note(&format!("note: {fault}: run records wait on this machine until it can be"));
        }
        Err(fault) => return Err(at.told("run records", fault)),
    }
    let spool = setup::spool(runs_file)?;
    Ok(Arc::new(PostgresRunStore::new(&at.place, spool, kept.records_for)?))
}

/// Run records, for reading.
pub(crate) async fn existing_records(
    kept: &KeptWhere,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn RunStore>> {
    let Some(server) = &kept.records else { return Ok(Arc::new(setup::existing_records(runs_file)?)) };
    let at = Resolved::of(server);
    postgres::prepare(&at.place).await.map_err(|fault| at.told("run records", fault))?;
    Ok(Arc::new(PostgresRunStore::new(&at.place, SqliteRunStore::in_memory()?, None)?))
}

/// Verdicts on runs.
pub(crate) fn outcomes(
    kept: &KeptWhere,
    runs_file: Option<PathBuf>,
) -> anyhow::Result<Arc<dyn OutcomeStore>> {
    Ok(match &kept.records {
        Some(server) => Arc::new(PostgresOutcomes::new(&Resolved::of(server).place)?),
        None => Arc::new(setup::outcomes(runs_file)?),
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

/// A database, with its password looked up.
struct Resolved {
    place: PostgresPlace,
    /// Why there is no password where one is named.
    unset: Option<String>,
}

impl Resolved {
    fn of(server: &PostgresServer) -> Self {
        let env = Env::of(|name| std::env::var(name).ok());
        let password = server.password.as_ref().map(|secret| env.reveal(secret)).transpose();
        let (password, unset) = match password {
            Ok(password) => (password, None),
            Err(unset) => (None, Some(unset.to_string())),
        };
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
        let because = unset.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        anyhow::Error::new(fault)
            .context(format!("{what} in the database `{database}` at {host}:{port}{because}"))
    }
}
