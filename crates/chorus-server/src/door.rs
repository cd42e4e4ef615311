//! What every handler is given: the engine, the limits of the door, and whether the process is ready or stopping.

use crate::kept::Keeper;
use crate::token::Tokens;
use crate::traces::Traces;
use chorus_engine::{Configuration, Engine};
use chorus_store::KeyStore;
use chorus_store::ResponseStore;
use chorus_wire::RequestLimits;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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

/// The engine behind its doors. Cloning shares it: every layer of a plane holds one, and a request passes many.
#[derive(Clone)]
pub struct Door(Arc<Behind>);

/// What is behind a door.
#[derive(Clone)]
pub struct Behind {
    /// Who answers.
    pub engine: Engine,
    /// The door's bounds.
    pub limits: DoorLimits,
    /// Where the engine's configuration comes from, and changes; without it the management plane shows and changes none.
    pub configuration: Option<Arc<Configuration>>,
    pub(crate) responses: Keeper,
    /// The API keys that mark requests; without them none does.
    pub keys: Option<Arc<dyn KeyStore>>,
    requires_keys: bool,
    tokens: Option<Tokens>,
    traces: Option<Traces>,
    ready: Arc<AtomicBool>,
    expired: CancellationToken,
}

impl Deref for Door {
    type Target = Behind;

    fn deref(&self) -> &Behind {
        &self.0
    }
}

impl Door {
    /// A door that is not ready yet.
    #[must_use]
    pub fn new(engine: Engine, limits: DoorLimits) -> Self {
        Self(Arc::new(Behind {
            engine,
            limits,
            configuration: None,
            keys: None,
            requires_keys: false,
            traces: None,
            tokens: Tokens::new()
                .inspect_err(|fault| tracing::error!(%fault, "no token can be checked"))
                .ok(),
            responses: Keeper::default(),
            ready: Arc::new(AtomicBool::new(false)),
            expired: CancellationToken::new(),
        }))
    }

    /// Before it is shared there is one, so that nothing is copied.
    fn with(mut self, change: impl FnOnce(&mut Behind)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The same door, with the configuration to manage.
    #[must_use]
    pub fn managing(self, configuration: Arc<Configuration>) -> Self {
        self.with(|it| it.configuration = Some(configuration))
    }

    /// The same door, with a store for responses that outlives the process.
    #[must_use]
    pub fn keeping(self, responses: Arc<dyn ResponseStore>) -> Self {
        self.with(|it| it.responses = Keeper::over(responses))
    }

    /// The same door, with the API keys that mark requests, and whether every request needs one.
    #[must_use]
    pub fn keyed(self, keys: Arc<dyn KeyStore>, required: bool) -> Self {
        self.with(|it| (it.keys, it.requires_keys) = (Some(keys), required))
    }

    /// Whether the data plane answers nobody without a key.
    pub(crate) fn requires_keys(&self) -> bool {
        self.requires_keys
    }

    /// The same door, whose requests join the traces of those who make them.
    #[must_use]
    pub fn traced(self, traces: Option<Traces>) -> Self {
        self.with(|it| it.traces = traces)
    }

    /// Where traces go, where they go anywhere.
    pub(crate) fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// What checks tokens; without it none opens anything.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
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

    /// [`expired`](Self::expired), for whoever outlives this door.
    pub(crate) fn expired_owned(&self) -> WaitForCancellationFutureOwned {
        self.expired.clone().cancelled_owned()
    }
}
