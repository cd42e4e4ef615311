//! What every handler is given: the engine, the limits of the door, and whether the process is ready or stopping.

use crate::kept::Keeper;
use chorus_engine::{Configuration, Engine};
use chorus_store::KeyStore;
use chorus_store::ResponseStore;
use chorus_wire::RequestLimits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bounds of the doors, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct DoorLimits {
    /// Largest request body (`max_body_bytes`, default 32 MiB).
    pub max_body_bytes: usize,
    /// Longest time for a body to arrive (`body_timeout`, default 60 s).
    pub body_timeout: Duration,
    /// Silence of a stream after which a comment is sent (`keepalive`, default 5 s). The first one commits the status
    /// 200; a fault after it is an error event.
    pub keepalive: Duration,
    /// Bounds of a request's content.
    pub request: RequestLimits,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            body_timeout: Duration::from_secs(60),
            keepalive: Duration::from_secs(5),
            request: RequestLimits::default(),
        }
    }
}

/// The engine behind its doors.
#[derive(Clone)]
pub struct Door {
    /// Who answers.
    pub engine: Engine,
    /// The door's bounds.
    pub limits: DoorLimits,
    /// Where the engine's configuration comes from, and changes; without it the management plane shows and changes none.
    pub configuration: Option<Arc<Configuration>>,
    pub(crate) responses: Keeper,
    /// The API keys that mark requests; without them none does.
    pub keys: Option<KeyStore>,
    requires_keys: bool,
    ready: Arc<AtomicBool>,
    expired: CancellationToken,
}

impl Door {
    /// A door that is not ready yet.
    #[must_use]
    pub fn new(engine: Engine, limits: DoorLimits) -> Self {
        Self {
            engine,
            limits,
            configuration: None,
            keys: None,
            requires_keys: false,
            responses: Keeper::default(),
            ready: Arc::new(AtomicBool::new(false)),
            expired: CancellationToken::new(),
        }
    }

    /// The same door, with the configuration to manage.
    #[must_use]
    pub fn managing(mut self, configuration: Arc<Configuration>) -> Self {
        self.configuration = Some(configuration);
        self
    }

    /// The same door, with a store for responses that outlives the process.
    #[must_use]
    pub fn keeping(mut self, responses: Arc<dyn ResponseStore>) -> Self {
        self.responses = Keeper::over(responses);
        self
    }

    /// The same door, with the API keys that mark requests, and whether every request needs one.
    #[must_use]
    pub fn keyed(mut self, keys: KeyStore, required: bool) -> Self {
        self.keys = Some(keys);
        self.requires_keys = required;
        self
    }

    /// Whether the data plane answers nobody without a key.
    pub(crate) fn requires_keys(&self) -> bool {
        self.requires_keys
    }

    /// Says whether requests can be served.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Whether requests can be served.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// The grace of a stop has run out: whatever still runs must end now.
    pub(crate) fn expire(&self) {
        self.expired.cancel();
    }

    /// Waits for [`expire`](Self::expire).
    pub(crate) async fn expired(&self) {
        self.expired.cancelled().await;
    }
}
