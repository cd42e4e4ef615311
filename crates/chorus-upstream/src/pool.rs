//! Connections that wait for their next request, by the place to which they lead.
//!
//! It knows no request. **Invariant:** the connection that was used last is taken first, and none is handed out that has
//! waited longer than the limit: the backend may be closing it just then (case C16). Each runtime has connections of its
//! own: what comes over one is told by the runtime that opened it, and another would have to be woken for it.

use crate::UpstreamFault;
use crate::connect::{Connector, connector};
use crate::egress::Egress;
use crate::lane::Lane;
use crate::place::Place;
use http::Uri;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

/// How connections are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long an unused connection is kept (default 4 s: below the 5 s after which common Python and Node servers
    /// close theirs; case C16).
    pub pool_idle_timeout: Duration,
    /// Most unused connections kept for one host (default 64).
    pub max_idle_per_host: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { pool_idle_timeout: Duration::from_secs(4), max_idle_per_host: 64 }
    }
}

/// All of a client's connections.
pub(crate) struct Pool {
    options: ClientOptions,
    usual: Connector,
    /// Connectors of other ways than the usual one, made on first use.
    others: Mutex<BTreeMap<Arc<Egress>, Connector>>,
    shelves: RwLock<BTreeMap<Arc<Place>, Arc<Shelf>>>,
}

impl Pool {
    /// An empty one.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, rustls::Error> {
        let usual = connector(None)?;
        Ok(Self { options: *options, usual, others: Mutex::default(), shelves: RwLock::default() })
    }

    /// The connections that lead to a place.
    ///
    /// # Errors
    /// [`UpstreamFault::Connect`] when the way to it cannot be used.
    pub(crate) fn shelf(&self, place: &Arc<Place>) -> Result<Arc<Shelf>, UpstreamFault> {
        let known = self.shelves.read().unwrap_or_else(PoisonError::into_inner).get(place).map(Arc::clone);
        match known {
            Some(shelf) => Ok(shelf),
            None => self.new_shelf(place),
        }
    }

    fn new_shelf(&self, place: &Arc<Place>) -> Result<Arc<Shelf>, UpstreamFault> {
        let shelf = Arc::new(self.shelf_of(place)?);
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        // Places that a configuration named once and no other one does.
        shelves.retain(|_, shelf| Arc::strong_count(shelf) > 1 || !shelf.is_empty());
        Ok(Arc::clone(shelves.entry(Arc::clone(place)).or_insert(shelf)))
    }

    fn shelf_of(&self, place: &Place) -> Result<Shelf, UpstreamFault> {
        let fault = |detail: String| UpstreamFault::Connect { detail };
        let uri = place.origin.parse().map_err(|_| fault("its address is not a URL".to_owned()))?;
        let connector = match &place.egress {
            None => self.usual.clone(),
            Some(egress) => self.other(egress).map_err(|error| fault(error.to_string()))?,
        };
        Ok(Shelf { options: self.options, uri, connector, idle: Mutex::default() })
    }

    fn other(&self, egress: &Arc<Egress>) -> Result<Connector, rustls::Error> {
        let mut others = lock(&self.others);
        if let Some(connector) = others.get(egress) {
            return Ok(connector.clone());
        }
        let opened = connector(Some(egress))?;
        others.insert(Arc::clone(egress), opened.clone());
        Ok(opened)
    }
}

/// The connections that lead to one place.
pub(crate) struct Shelf {
    options: ClientOptions,
    uri: Uri,
    connector: Connector,
    idle: Mutex<Idle>,
}

/// What waits.
#[derive(Default)]
struct Idle {
    /// The one that was used last stands last.
    lanes: Vec<Waiting>,
    /// Whether a task looks after those that wait too long.
    swept: bool,
}

struct Waiting {
    lane: Box<Lane>,
    since: Instant,
    /// Where it was opened and used.
    runtime: Option<Id>,
}

impl Shelf {
    /// A connection of this runtime that waits.
    pub(crate) fn take(&self) -> Option<Box<Lane>> {
        let here = runtime();
        let mut idle = lock(&self.idle);
        let at = idle.lanes.iter().rposition(|waiting| waiting.runtime == here)?;
        let last = idle.lanes.remove(at);
        if last.since.elapsed() < self.options.pool_idle_timeout {
            return Some(last.lane);
        }
        // All before it have waited longer still.
        let expired: Vec<_> = idle.lanes.drain(..at).collect();
        drop(idle);
        close(expired);
        last.lane.close();
        None
    }

    /// A new connection.
    ///
    /// # Errors
    /// [`UpstreamFault::Connect`].
    pub(crate) async fn open(&self) -> Result<Box<Lane>, UpstreamFault> {
        Lane::open(self.connector.clone(), self.uri.clone()).await.map(Box::new)
    }

    /// Keeps a connection for the next request, if it can carry one.
    pub(crate) fn give(self: &Arc<Self>, lane: Box<Lane>) {
        if !lane.is_free() {
            return;
        }
        let mut idle = lock(&self.idle);
        if idle.lanes.len() >= self.options.max_idle_per_host {
            drop(idle);
            return lane.close();
        }
        idle.lanes.push(Waiting { lane, since: Instant::now(), runtime: runtime() });
        if !idle.swept
            && let Ok(runtime) = Handle::try_current()
        {
            idle.swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn is_empty(&self) -> bool {
        lock(&self.idle).lanes.is_empty()
    }

    /// Closes those that have waited too long; whether any is left.
    fn sweep(&self) -> bool {
        let mut idle = lock(&self.idle);
        let limit = self.options.pool_idle_timeout;
        let expired = idle.lanes.partition_point(|waiting| waiting.since.elapsed() >= limit);
        let expired: Vec<_> = idle.lanes.drain(..expired).collect();
        idle.swept = !idle.lanes.is_empty();
        let goes_on = idle.swept;
        drop(idle);
        close(expired);
        goes_on
    }
}

/// Closes a shelf's connections when they have waited too long, as long as there are any.
async fn sweep(shelf: Weak<Shelf>) {
    while let Some(limit) = shelf.upgrade().map(|shelf| shelf.options.pool_idle_timeout) {
        tokio::time::sleep(limit).await;
        if !shelf.upgrade().is_some_and(|shelf| shelf.sweep()) {
            return;
        }
    }
}

fn close(expired: Vec<Waiting>) {
    for Waiting { lane, .. } in expired {
        lane.close();
    }
}

/// The runtime that works here, where one does.
fn runtime() -> Option<Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
