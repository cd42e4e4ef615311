//! The data plane's connections on threads of their own, as many as there are cores, each a runtime that shares nothing
//! with the others.
//!
//! What comes over a connection is worked on where it comes: no other thread is woken for it, and what a connection's
//! code and data left in that core's caches is still there. The price is that a core with much to do does not get help. It
//! knows no request. **Invariant:** a new connection goes to the thread that has the fewest.

use crate::app::Plane;
use axum::ServiceExt;
use axum::extract::Request;
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// When the threads end.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    /// No further connection is taken, and those that are idle close.
    pub(crate) stop: CancellationToken,
    /// What is left is dropped.
    pub(crate) over: CancellationToken,
}

/// Serves on that many threads, until all connections have ended after a stop.
///
/// # Errors
/// When a thread or its runtime cannot be had.
pub(crate) async fn serve(
    mut listener: TcpListener,
    app: Plane,
    threads: usize,
    ends: Ends,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let cores: Vec<_> =
        (0..threads).map(|at| core(at, address, app.clone(), ends.clone())).collect::<Result<_, _>>()?;
    loop {
        let (stream, _) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = ends.stop.cancelled() => break,
        };
        // Without it the last bytes of an event wait for the next one.
        let _ = stream.set_nodelay(true);
        let fewest = cores.iter().min_by_key(|core| Arc::strong_count(&core.open));
        if let (Some(core), Ok(stream)) = (fewest, stream.into_std()) {
            // A thread that is gone has said why, and its connection is closed.
            let _ = core.given.send((stream, Arc::clone(&core.open)));
        }
    }
    drop(listener);
    for core in cores {
        core.served.await.unwrap_or_else(|_| Err(io::Error::other("a thread of the data plane is gone")))?;
    }
    Ok(())
}

/// One of the threads, from outside.
struct Core {
    given: mpsc::UnboundedSender<Given>,
    /// Shared by every connection that it has.
    open: Arc<()>,
    served: oneshot::Receiver<io::Result<()>>,
}

/// A connection, and what counts it.
type Given = (std::net::TcpStream, Arc<()>);

fn core(at: usize, address: SocketAddr, app: Plane, ends: Ends) -> io::Result<Core> {
    let (given, taken) = mpsc::unbounded_channel();
    let (told, served) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(format!("data-{at}")).spawn(move || {
        runtime.block_on(async move {
            let app = ServiceExt::<Request>::into_make_service(app);
            let serving = axum::serve(Taken { address, taken }, app);
            let served = serving.with_graceful_shutdown(ends.stop.cancelled_owned()).await;
            // Nobody listens where the server was dropped.
            let _ = told.send(served);
            // Runs whose clients have left are still to be recorded.
            ends.over.cancelled().await;
        });
    })?;
    Ok(Core { given, open: Arc::default(), served })
}

/// The connections that a thread is given.
struct Taken {
    address: SocketAddr,
    taken: mpsc::UnboundedReceiver<Given>,
}

impl Listener for Taken {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        loop {
            // Whoever accepts is gone: the stop comes next.
            let Some((stream, open)) = self.taken.recv().await else { return std::future::pending().await };
            match TcpStream::from_std(stream).and_then(|stream| Ok((stream.peer_addr()?, stream))) {
                Ok((peer, stream)) => return (Counted { stream, _open: open }, peer),
                Err(error) => tracing::debug!(%error, "a connection was gone before it was served"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// A connection that counts as its thread's until it is dropped.
struct Counted {
    stream: TcpStream,
    _open: Arc<()>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
