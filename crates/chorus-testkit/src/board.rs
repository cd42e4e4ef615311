//! What the connections of a scripted backend share: scripts, rules, and the record of what arrived.
//!
//! It knows no socket.

use crate::inbound::Inbound;
use crate::{Outcome, Received, Script};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What happens to a connection on which no request comes (case C16).
#[derive(Debug, Default, Clone, Copy)]
pub enum IdleRule {
    /// It stays open.
    #[default]
    Keep,
    /// It is closed after that time.
    Close(Duration),
    /// It is reset after that time.
    Reset(Duration),
}

pub(crate) type Answering = Arc<dyn Fn(&Received) -> Script + Send + Sync>;

#[derive(Default, Clone, Copy)]
pub(crate) struct Connections {
    pub(crate) open: usize,
    pub(crate) total: usize,
}

/// What the connections share.
pub(crate) struct Board {
    pub(crate) scripts: Mutex<BTreeMap<String, VecDeque<Answering>>>,
    pub(crate) otherwise: Mutex<Answering>,
    pub(crate) idle: Mutex<IdleRule>,
    pub(crate) requests: Mutex<Vec<Received>>,
    /// Whether what arrives is not recorded.
    pub(crate) forgets: AtomicBool,
    pub(crate) connections: Mutex<Connections>,
    pub(crate) events: watch::Sender<()>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            scripts: Mutex::default(),
            otherwise: Mutex::new(Arc::new(|request| Script::reply(&request.last_user_text()))),
            idle: Mutex::default(),
            requests: Mutex::default(),
            forgets: AtomicBool::new(false),
            connections: Mutex::default(),
            events: watch::Sender::new(()),
        }
    }

    pub(crate) fn idle_rule(&self) -> IdleRule {
        *lock(&self.idle)
    }

    /// Records a request and finds its script.
    pub(crate) fn take(&self, inbound: Inbound, connection: usize) -> (usize, Script, Received) {
        let body: Value = serde_json::from_slice(&inbound.body).unwrap_or_default();
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        let answering = self.answering(&model);
        let mut request = Received {
            seat: usize::MAX,
            connection,
            method: inbound.method,
            path: inbound.path,
            headers: inbound.headers,
            body: inbound.body,
            model,
            outcome: Outcome::Open,
        };
        if !self.forgets.load(Ordering::Relaxed) {
            let mut requests = lock(&self.requests);
            request.seat = requests.len();
            requests.push(request.clone());
        }
        self.events.send_replace(());
        (request.seat, answering(&request), request)
    }

    fn answering(&self, model: &str) -> Answering {
        let mut scripts = lock(&self.scripts);
        let next = scripts
            .get_mut(model)
            .and_then(|queue| if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() });
        next.unwrap_or_else(|| Arc::clone(&lock(&self.otherwise)))
    }

    pub(crate) fn ended(&self, seat: usize, outcome: Outcome) {
        if let Some(request) = lock(&self.requests).get_mut(seat) {
            request.outcome = outcome;
        }
        self.events.send_replace(());
    }

    pub(crate) fn connection_opened(&self) -> usize {
        let mut connections = lock(&self.connections);
        connections.open += 1;
        connections.total += 1;
        connections.total - 1
    }

    pub(crate) fn connection_closed(&self) {
        lock(&self.connections).open -= 1;
        self.events.send_replace(());
    }
}

/// A test that panicked elsewhere must not hide its own message behind a poisoned lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
