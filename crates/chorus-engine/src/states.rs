//! Where runs wait that have handed tool calls to the client: the store that the configuration names, shared by all
//! configurations of a process that name the same one.
//!
//! It knows stores by how they are opened. **Invariant:** a configuration whose store cannot be opened is not served.

use crate::env::Env;
use chorus_collab::WorkflowStates;
use chorus_spec::{FlowState, FlowStore, RedisServer};
use chorus_store::{FileStates, MemoryStates, RedisPlace, RedisStates};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StatesFault {
    /// The directory cannot be made.
    #[error("the directory of waiting workflows cannot be used ({0})")]
    Directory(std::io::ErrorKind),
    /// The address is none.
    #[error(transparent)]
    Redis(#[from] chorus_store::RedisPlaceFault),
    /// The password is not there.
    #[error("the password of the Redis server: {0}")]
    Password(String),
}

/// The latest store, and what it was opened for.
#[derive(Default)]
pub(crate) struct SharedStates(Mutex<Option<(FlowState, Arc<dyn WorkflowStates>)>>);

impl SharedStates {
    /// The store of that configuration: the one that is open, where it is the same.
    ///
    /// # Errors
    /// [`StatesFault`].
    pub(crate) fn of(&self, wanted: &FlowState, env: &Env) -> Result<Arc<dyn WorkflowStates>, StatesFault> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, states)) = open.as_ref().filter(|(of, _)| of == wanted) {
            return Ok(Arc::clone(states));
        }
        let states = opened(wanted, env)?;
        *open = Some((wanted.clone(), Arc::clone(&states)));
        Ok(states)
    }
}

fn opened(wanted: &FlowState, env: &Env) -> Result<Arc<dyn WorkflowStates>, StatesFault> {
    Ok(match &wanted.store {
        FlowStore::Memory => Arc::new(MemoryStates::new(wanted.ttl)),
        FlowStore::File { directory } => {
            let open = FileStates::open(Path::new(directory), wanted.ttl);
            Arc::new(open.map_err(|fault| StatesFault::Directory(fault.kind()))?)
        }
        FlowStore::Redis(redis) => Arc::new(RedisStates::new(&place(redis, env)?, wanted.ttl)?),
    })
}

pub(crate) fn place(redis: &RedisServer, env: &Env) -> Result<RedisPlace, StatesFault> {
    let password = redis.password.as_ref().map(|secret| env.reveal(secret)).transpose();
    Ok(RedisPlace {
        address: redis.address.clone(),
        database: redis.database,
        password: password.map_err(|fault| StatesFault::Password(fault.to_string()))?,
        tls: redis.tls,
        tls_any_certificate: redis.tls_any_certificate,
        retries: redis.retries,
        key_prefix: redis.key_prefix.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn configurations_of_one_store_share_it() {
        let (shared, env) = (SharedStates::default(), Env::having(&[]));
        let memory = FlowState::default();
        let first = shared.of(&memory, &env).unwrap();
        first.put("a", "kept".to_owned()).await.unwrap();
        let again = shared.of(&memory, &env).unwrap();
        assert_eq!(again.take("a").await.unwrap().as_deref(), Some("kept"));
        let other = FlowState { ttl: Duration::from_secs(1), ..memory };
        assert!(!Arc::ptr_eq(&shared.of(&other, &env).unwrap(), &first));
    }

    #[tokio::test]
    async fn a_directory_keeps_what_waits_and_a_file_is_none() {
        let (folder, env) = (tempfile::tempdir().unwrap(), Env::having(&[]));
        let at = |path: &Path| FlowState {
            store: FlowStore::File { directory: path.display().to_string() },
            ..FlowState::default()
        };
        let directory = at(&folder.path().join("states"));
        opened(&directory, &env).unwrap().put("a", "kept".to_owned()).await.unwrap();
        assert_eq!(opened(&directory, &env).unwrap().take("a").await.unwrap().as_deref(), Some("kept"));
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(opened(&at(&file), &env), Err(StatesFault::Directory(_))));
    }

    #[test]
    fn a_password_that_is_not_set_is_named_not_shown() {
        let password = Some(chorus_spec::Secret::new("${REDIS_PASSWORD}"));
        let redis = RedisServer { password, ..RedisServer::default() };
        let wanted = FlowState { store: FlowStore::Redis(Box::new(redis)), ..FlowState::default() };
        let fault = opened(&wanted, &Env::having(&[])).err().unwrap().to_string();
        assert!(fault.contains("REDIS_PASSWORD"), "{fault}");
    }
}
