//! The scripted backend: a listener, a script a model, and the record of what arrived.

use crate::board::{Answering, Board, IdleRule, lock};
use crate::{Received, Script, connection};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// How long [`ScriptedUpstream::wait`] waits before it gives up: a test that needs it all has failed.
const PATIENCE: Duration = Duration::from_secs(5);

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
        Ok(Self { address, board, accepting })
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
        let answering = scripts.into_iter().map(|script| -> Answering { Arc::new(move |_| script.clone()) });
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

    /// Records nothing of what arrives from now on: for runs that are too long to keep them all.
    pub fn forget(&self) {
        self.board.forgets.store(true, Ordering::Relaxed);
    }

    /// Everything that arrived, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.board.requests).clone()
    }

    /// What arrived for that model, in order.
    #[must_use]
    pub fn requests_for(&self, model: &str) -> Vec<Received> {
        self.requests().into_iter().filter(|request| request.model == model).collect()
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
