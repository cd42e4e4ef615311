//! `global.integrations.looper.flow.state`: where runs wait for a client's tools.

use super::cursor::Cursor;
use super::redis;
use crate::diagnostic::code;
use crate::{FlowState, FlowStore, RedisServer};
use std::time::Duration;

/// The words of `store_backend`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Backend {
    Memory,
    File,
    Redis,
}

/// What `store_backend` may say, here and of responses.
pub(super) const BACKENDS: [(&str, Backend); 3] =
    [("memory", Backend::Memory), ("file", Backend::File), ("redis", Backend::Redis)];

/// Reads `state` of the looper `flow`.
pub(super) fn read(flow: &Cursor<'_>) -> FlowState {
    let defaults = FlowState::default();
    let Some(at) = flow.get("state") else { return defaults };
    let backend = at.word("store_backend", &BACKENDS).unwrap_or(Backend::Memory);
    for (key, is_read) in
        [("file", matches!(backend, Backend::File)), ("redis", matches!(backend, Backend::Redis))]
    {
        if let Some(idle) = at.get(key).filter(|_| !is_read) {
            idle.warn(code::UNUSED, format!("`{key}` has no effect with this `store_backend`"));
        }
    }
    let store = match backend {
        Backend::Memory => FlowStore::Memory,
        Backend::File => file(&at).unwrap_or(FlowStore::Memory),
        Backend::Redis => FlowStore::Redis(Box::new(redis::server(&at, "db", RedisServer::default()))),
    };
    FlowState { store, ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs) }
}

fn file(at: &Cursor<'_>) -> Option<FlowStore> {
    Some(FlowStore::File { directory: at.needed("file")?.required("directory")? })
}
