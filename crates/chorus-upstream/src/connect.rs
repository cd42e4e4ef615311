//! Connections: TCP without delay, TLS where the URL says so, and a note of whether a connection died unused.
//!
//! **Invariant:** HTTP/1.1 only, one request at a time a connection: dropping an answer closes its socket, which every
//! backend understands as "stop generating" (case A16).

use crate::egress::Egress;
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::Service;
use tower::util::{MapResponse, ServiceExt};

type Socket = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens [`Line`]s.
pub(crate) type Connector = MapResponse<HttpsConnector<Dial>, fn(Socket) -> TokioIo<Line>>;

/// TCP probes keep middleboxes from forgetting a stream whose model thinks for minutes.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// A connector that goes that way, or the usual one: straight, with the web's usual roots of trust.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn connector(egress: Option<&Egress>) -> Result<Connector, rustls::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    let usual = Egress::usual();
    let egress = egress.unwrap_or(&usual);
    let roots = egress.trusted().map_err(|fault| rustls::Error::General(fault.to_string()))?;
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let dial = match egress.proxy() {
        None => Dial::Straight(tcp),
        Some(proxy) => {
            let tunnel = Tunnel::new(proxy, tcp);
            Dial::Through(match egress.proxy_authorization() {
                Some(value) => tunnel.with_auth(value),
                None => tunnel,
            })
        }
    };
    let https =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(dial);
    Ok(ServiceExt::<Uri>::map_response(https, Line::wrap as fn(Socket) -> TokioIo<Line>))
}

/// How a TCP connection is made.
#[derive(Clone)]
pub(crate) enum Dial {
    /// To the backend itself.
    Straight(HttpConnector),
    /// By `CONNECT` through a proxy.
    Through(Tunnel<HttpConnector>),
}

type Dialing = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, Box<dyn Error + Send + Sync>>> + Send>>;

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Dialing;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            Self::Straight(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Through(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, uri: Uri) -> Dialing {
        match self {
            Self::Straight(tcp) => {
                let dialing = tcp.call(uri);
                Box::pin(async move { dialing.await.map_err(Into::into) })
            }
            Self::Through(tunnel) => {
                let dialing = tunnel.call(uri);
                Box::pin(async move { dialing.await.map_err(Into::into) })
            }
        }
    }
}

/// What is known of a connection's life.
#[derive(Clone, Default)]
pub(crate) struct Life {
    /// A byte was read since the connection was made.
    answered: Arc<AtomicBool>,
    /// Something was written, and no byte was read since.
    waiting: Arc<AtomicBool>,
}

impl Life {
    /// Whether it served a request before and gave no byte to the last one: the backend had closed it (case C16).
    pub(crate) fn died_idle(&self) -> bool {
        self.answered.load(Ordering::Acquire) && self.waiting.load(Ordering::Acquire)
    }
}

/// One connection.
pub(crate) struct Line {
    socket: TokioIo<Socket>,
    life: Life,
}

impl Line {
    fn wrap(socket: Socket) -> TokioIo<Self> {
        TokioIo::new(Self { socket: TokioIo::new(socket), life: Life::default() })
    }

    /// What is known of its life, now and later.
    pub(crate) fn life(&self) -> Life {
        self.life.clone()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.life.answered.store(true, Ordering::Release);
            self.life.waiting.store(false, Ordering::Release);
        }
        polled
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.life.waiting.store(true, Ordering::Release);
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.life.waiting.store(true, Ordering::Release);
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
