//! The scripted backend: a listener, a script a model, and the record of what arrived.

use crate::inbound::Inbound;
use crate::{Outcome, Received, Script, connection};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long [`ScriptedUpstream::wait`] waits before it gives up: a test that needs it all has failed.
const PATIENCE: Duration = Duration::from_secs(5);

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

type Answering = Arc<dyn Fn(&Received) -> Script + Send + Sync>;

/// A backend on a local port that does what its scripts say. Dropping it closes the port and every connection.
pub struct ScriptedUpstream {
    address: SocketAddr,
    board: Arc<Board>,
    accepting: JoinHandle<()>,
}

impl ScriptedUpstream {
    /// Listens on a free port of 127.0.0.1. Models without a script echo the last user message.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens on that address.
    ///
    /// # Errors
    /// When it is taken.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let board = Arc::new(Board::new());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&board)));
        Ok(Self {
            address,
            board,
            accepting,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:port/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Requests for that model get that script, from now on.
    pub fn on(&self, model: &str, script: Script) {
        self.on_each(model, [script]);
    }

    /// Requests for that model get these scripts, one after the other; the last one stays.
    pub fn on_each(&self, model: &str, scripts: impl IntoIterator<Item = Script>) {
        let answering = scripts
            .into_iter()
            .map(|script| -> Answering { Arc::new(move |_| script.clone()) });
        lock(&self.board.scripts).insert(model.to_owned(), answering.collect());
    }

    /// Requests for that model get what the function says.
    pub fn on_with(&self, model: &str, script: impl Fn(&Received) -> Script + Send + Sync + 'static) {
        let answering: Answering = Arc::new(script);
        lock(&self.board.scripts).insert(model.to_owned(), VecDeque::from([answering]));
    }

    /// Requests for every other model get what the function says.
    pub fn otherwise(&self, script: impl Fn(&Received) -> Script + Send + Sync + 'static) {
        *lock(&self.board.otherwise) = Arc::new(script);
    }

    /// What happens to idle connections, from their next wait on.
    pub fn set_idle_rule(&self, rule: IdleRule) {
        *lock(&self.board.idle) = rule;
    }

    /// Everything that arrived, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.board.requests).clone()
    }

    /// What arrived for that model, in order.
    #[must_use]
    pub fn requests_for(&self, model: &str) -> Vec<Received> {
        self.requests()
            .into_iter()
            .filter(|request| request.model == model)
            .collect()
    }

    /// Connections open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        lock(&self.board.connections).open
    }

    /// Connections opened since the start.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.board.connections).total
    }

    /// Waits until the condition holds, looked at after every event; gives up after five seconds and says `false`.
    pub async fn wait(&self, condition: impl Fn(&Self) -> bool) -> bool {
        let mut events = self.board.events.subscribe();
        let held = async {
            while !condition(self) {
                if events.changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, held).await.is_ok()
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, board: Arc<Board>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                // Pieces must leave when the script says so; a socket without the option is only slower.
                let _ = stream.set_nodelay(true);
                let number = board.connection_opened();
                connections.spawn(connection::serve(stream, number, Arc::clone(&board)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

#[derive(Default, Clone, Copy)]
struct Connections {
    open: usize,
    total: usize,
}

/// What the connections share.
pub(crate) struct Board {
    scripts: Mutex<BTreeMap<String, VecDeque<Answering>>>,
    otherwise: Mutex<Answering>,
    idle: Mutex<IdleRule>,
    requests: Mutex<Vec<Received>>,
    connections: Mutex<Connections>,
    events: watch::Sender<()>,
}

impl Board {
    fn new() -> Self {
        Self {
            scripts: Mutex::default(),
            otherwise: Mutex::new(Arc::new(|request| Script::reply(&request.last_user_text()))),
            idle: Mutex::default(),
            requests: Mutex::default(),
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
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let answering = self.answering(&model);
        let request = {
            let mut requests = lock(&self.requests);
            let request = Received {
                seat: requests.len(),
                connection,
                method: inbound.method,
                path: inbound.path,
                headers: inbound.headers,
                body: inbound.body,
                model,
                outcome: Outcome::Open,
            };
            requests.push(request.clone());
            request
        };
        self.events.send_replace(());
        (request.seat, answering(&request), request)
    }

    fn answering(&self, model: &str) -> Answering {
        let mut scripts = lock(&self.scripts);
        let next = scripts.get_mut(model).and_then(|queue| {
            if queue.len() > 1 {
                queue.pop_front()
            } else {
                queue.front().cloned()
            }
        });
        next.unwrap_or_else(|| Arc::clone(&lock(&self.otherwise)))
    }

    pub(crate) fn ended(&self, seat: usize, outcome: Outcome) {
        if let Some(request) = lock(&self.requests).get_mut(seat) {
            request.outcome = outcome;
        }
        self.events.send_replace(());
    }

    fn connection_opened(&self) -> usize {
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
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
