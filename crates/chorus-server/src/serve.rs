//! Both planes on their sockets, until a stop, and then a graceful end.
//!
//! A stop closes the listeners and readiness; running requests have `grace` to end; what is left ends with an error
//! event; then records are flushed (case C10).

use crate::app::Plane;
use crate::cores::{self, Ends};
use crate::door::Door;
use crate::{app, ext_proc};
use axum::ServiceExt;
use axum::extract::Request;
use axum::serve::ListenerExt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The sockets of both planes.
pub struct Planes {
    /// The data plane.
    pub data: TcpListener,
    /// The management plane.
    pub management: TcpListener,
    /// Where Envoy's external processing is answered, where it is.
    pub envoy: Option<TcpListener>,
    /// Threads that serve the data plane, each with connections of its own; with one it is served where all else is.
    pub threads: usize,
}

/// Where the planes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The data plane.
    pub data: SocketAddr,
    /// The management plane.
    pub management: SocketAddr,
    /// The service for Envoy.
    pub envoy: Option<SocketAddr>,
}

impl Planes {
    /// Binds both.
    ///
    /// # Errors
    /// The address that cannot be had, in the error's text.
    pub async fn bind(data: SocketAddr, management: SocketAddr) -> io::Result<Self> {
        Ok(Self { data: listen(data).await?, management: listen(management).await?, envoy: None, threads: 1 })
    }

    /// Binds the place for Envoy too.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub async fn with_envoy(self, address: SocketAddr) -> io::Result<Self> {
        Ok(Self { envoy: Some(listen(address).await?), ..self })
    }

    /// The data plane on that many threads of its own.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Where they are.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn bound(&self) -> io::Result<Bound> {
        let envoy = self.envoy.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(Bound { data: self.data.local_addr()?, management: self.management.local_addr()?, envoy })
    }
}

async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}")))
}

/// Serves until `stop`, then at most `grace` longer.
///
/// # Errors
/// When a listener fails.
pub async fn serve(planes: Planes, door: Door, stop: CancellationToken, grace: Duration) -> io::Result<()> {
    let over = CancellationToken::new();
    let ends = Ends { stop: stop.clone(), over: over.clone() };
    // The threads end with this function, however it ends.
    let _over = over.drop_guard();
    let data = data(planes.data, app::data(door.clone()), planes.threads, ends);
    let envoy = envoy(planes.envoy, door.clone(), stop.clone());
    let management = plane(planes.management, app::management(door.clone()), stop.clone());
    let ending = async {
        stop.cancelled().await;
        door.set_ready(false);
        tokio::time::sleep(grace).await;
        door.expire();
        // The error events of expired streams get a moment to leave.
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let served = tokio::select! {
        served = async { tokio::try_join!(data, management, envoy) } => served.map(|_| ()),
        () = ending => Ok(()),
    };
    door.set_ready(false);
    door.engine.drain(Duration::from_secs(2)).await;
    served
}

async fn data(listener: TcpListener, app: Plane, threads: usize, ends: Ends) -> io::Result<()> {
    match threads {
        0 | 1 => plane(listener, app, ends.stop).await,
        _ => cores::serve(listener, app, threads, ends).await,
    }
}

async fn envoy(listener: Option<TcpListener>, door: Door, stop: CancellationToken) -> io::Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    let app = app::data(door.clone());
    ext_proc::serve(listener, door, app, stop).await
}

async fn plane(listener: TcpListener, app: Plane, stop: CancellationToken) -> io::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Without it the last bytes of an event wait for the next one.
        let _ = stream.set_nodelay(true);
    });
    let app = ServiceExt::<Request>::into_make_service(app);
    axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await
}
