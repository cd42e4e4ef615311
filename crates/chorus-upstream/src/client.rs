//! The pooled HTTP client: one per process, shared by every dialect.
//!
//! It sends one request and hands over the head and body of the answer. It follows no redirect (case E08), adds no
//! header of the caller's client, and repeats a request in one case only: a pooled connection turned out to be closed
//! before it gave a single byte (case C16).

use crate::body::{Body, Clock, chain};
use crate::connect::{Connector, Life, connector};
use crate::egress::Egress;
use crate::seam::Sent;
use crate::target::header;
use crate::{Stage, Target, Timeouts, UpstreamFault};
use bytes::Bytes;
use chorus_wire::ErrorBody;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Extensions, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most bytes of an answer's status line and headers that are held while the rest is missing.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Most bytes read of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Headers that belong to the connection, not to the call: a caller's would break or smuggle.
const CONNECTION_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How we call ourselves.
const OURSELVES: &str = concat!("chorus/", env!("CARGO_PKG_VERSION"));

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

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsFault(#[from] rustls::Error);

/// The client. Cloning shares the pools.
#[derive(Clone)]
pub struct Upstream {
    options: ClientOptions,
    usual: Pool,
    /// Pools of other ways than the usual one, made on first use.
    others: Arc<Mutex<BTreeMap<Arc<Egress>, Pool>>>,
    reconnects: Arc<AtomicU64>,
}

/// Connections that go one way.
#[derive(Clone)]
struct Pool {
    pooled: Client<Connector, Full<Bytes>>,
    /// Never reuses: for the one retry, which must not meet a second dead connection.
    fresh: Client<Connector, Full<Bytes>>,
}

impl Pool {
    fn open(options: &ClientOptions, egress: Option<&Egress>) -> Result<Self, rustls::Error> {
        let connector = connector(egress)?;
        let client = |max_idle: usize| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(options.pool_idle_timeout)
                .pool_max_idle_per_host(max_idle)
                .http1_max_buf_size(MAX_HEAD_BYTES)
                .build(connector.clone())
        };
        Ok(Self { pooled: client(options.max_idle_per_host), fresh: client(0) })
    }
}

impl Upstream {
    /// A client with its own pools.
    ///
    /// # Errors
    /// [`TlsFault`].
    pub fn new(options: &ClientOptions) -> Result<Self, TlsFault> {
        Ok(Self {
            options: *options,
            usual: Pool::open(options, None)?,
            others: Arc::default(),
            reconnects: Arc::new(AtomicU64::new(0)),
        })
    }

    /// How often a request was repeated because its pooled connection had died.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// The status that a `GET` at the target's address gives, within that time: for health checks.
    ///
    /// # Errors
    /// [`UpstreamFault`] when there is no answer.
    pub async fn probe(&self, target: &Target, limit: Duration) -> Result<u16, UpstreamFault> {
        let clock = Clock::start(&Timeouts { total: limit, ..Timeouts::default() });
        let mut request = Request::new(Full::default());
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = request_headers(target, &[], "*/*")?;
        let answer = attempt(&self.pool(target)?.fresh, request, clock).await.map_err(|lost| lost.fault)?;
        Ok(answer.head.status.as_u16())
    }

    /// What a `GET` of that URL gives, of at most so many bytes, within that time: for documents that are not a model's,
    /// such as the keys of an issuer of tokens.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for a status other than 2xx.
    pub async fn fetch(&self, url: &str, limit: Duration, most_bytes: usize) -> Result<Bytes, UpstreamFault> {
        let limits = Timeouts { total: limit, max_response_bytes: most_bytes, ..Timeouts::default() };
        let mut request = Request::new(Full::default());
        *request.uri_mut() = url.parse().map_err(|_| not_a_url())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
        let answer = attempt(&self.usual.fresh, request, Clock::start(&limits)).await;
        answer.map_err(|lost| lost.fault)?.accepted().await?.collect().await
    }

    /// Posts a document to that URL, within that time, for whoever takes documents that are no conversation, such as a
    /// collector of traces.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for a status other than 2xx.
    pub async fn deliver(&self, url: &str, document: Bytes, limit: Duration) -> Result<(), UpstreamFault> {
        let limits = Timeouts { total: limit, ..Timeouts::default() };
        let mut request = Request::new(Full::new(document));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.parse().map_err(|_| not_a_url())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
        let answer = attempt(&self.usual.pooled, request, Clock::start(&limits)).await;
        answer.map_err(|lost| lost.fault)?.accepted().await?.collect().await.map(drop)
    }

    /// What a server that is no model's answers to one request at that path and query below the target's base, with a body
    /// of JSON where there is one.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for a status other than 2xx.
    pub async fn exchange(
        &self,
        target: &Target,
        method: &str,
        path: &str,
        document: Option<Bytes>,
        limits: &Timeouts,
    ) -> Result<Bytes, UpstreamFault> {
        let method: Method = method.parse().map_err(UpstreamFault::untranslatable)?;
        let uri = target.uri_at(path).map_err(UpstreamFault::untranslatable)?;
        let headers = request_headers(target, &[], "application/json")?;
        let pool = self.pool(target)?;
        let ask = || {
            let mut request = Request::new(Full::new(document.clone().unwrap_or_default()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            request.headers_mut().clone_from(&headers);
            request
        };
        self.asked(&pool, ask, Clock::start(limits)).await?.accepted().await?.collect().await
    }

    /// Posts JSON; `Ok` when the status is 2xx.
    pub(crate) async fn post(
        &self,
        target: &Target,
        sent: Sent,
        headers: &[(String, String)],
        limits: &Timeouts,
    ) -> Result<Body, UpstreamFault> {
        Ok(self.post_for_head(target, sent, headers, limits).await?.1)
    }

    /// [`post`](Self::post), with the headers of the answer.
    pub(crate) async fn post_for_head(
        &self,
        target: &Target,
        sent: Sent,
        headers: &[(String, String)],
        limits: &Timeouts,
    ) -> Result<(HeaderMap, Body), UpstreamFault> {
        let clock = Clock::start(limits);
        let uri = match &sent.path {
            Some(path) => target.uri_at(path).map_err(UpstreamFault::untranslatable)?,
            None => target.uri.clone(),
        };
        let mut headers = request_headers(target, headers, sent.accept)?;
        if let Some(signer) = &target.signer {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            for (name, value) in signer.headers("POST", &uri, &sent.body, now) {
                let value = HeaderValue::try_from(value);
                headers.insert(name, value.map_err(|_| UpstreamFault::Header { name: name.to_owned() })?);
            }
        }
        let pool = self.pool(target)?;
        let ask = || {
            let mut request = Request::new(Full::new(sent.body.clone()));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = uri.clone();
            request.headers_mut().clone_from(&headers);
            request
        };
        let answer = self.asked(&pool, ask, clock).await?;
        let head = answer.head.headers.clone();
        Ok((head, answer.accepted().await?))
    }

    /// What a request is answered, over a pooled connection; over a fresh one where that turned out to be dead.
    async fn asked(
        &self,
        pool: &Pool,
        ask: impl Fn() -> Request<Full<Bytes>>,
        clock: Clock,
    ) -> Result<Answer, UpstreamFault> {
        let answer = match attempt(&pool.pooled, ask(), clock).await {
            Err(Lost { died_idle: true, .. }) => {
                self.reconnects.fetch_add(1, Ordering::Relaxed);
                attempt(&pool.fresh, ask(), clock).await
            }
            outcome => outcome,
        };
        answer.map_err(|lost| lost.fault)
    }

    /// The connections that lead to a target.
    fn pool(&self, target: &Target) -> Result<Cow<'_, Pool>, UpstreamFault> {
        let Some(egress) = &target.egress else { return Ok(Cow::Borrowed(&self.usual)) };
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = others.get(egress) {
            return Ok(Cow::Owned(pool.clone()));
        }
        let opened = Pool::open(&self.options, Some(egress));
        let pool = opened.map_err(|fault| UpstreamFault::Connect { detail: fault.to_string() })?;
        others.insert(Arc::clone(egress), pool.clone());
        Ok(Cow::Owned(pool))
    }
}

fn not_a_url() -> UpstreamFault {
    UpstreamFault::Connect { detail: "its address is not a URL".to_owned() }
}

/// The head of an answer, and its body to come.
struct Answer {
    head: http::response::Parts,
    body: Body,
}

impl Answer {
    /// The body, if the status is 2xx and the body is not encoded.
    async fn accepted(self) -> Result<Body, UpstreamFault> {
        if !self.head.status.is_success() {
            let body = self.body.error_body().await;
            return Err(UpstreamFault::Status {
                status: self.head.status.as_u16(),
                body,
                retry_after: retry_after(&self.head.headers),
            });
        }
        match self.head.headers.get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => {
                Err(UpstreamFault::malformed("it has a content-encoding, which was not asked for"))
            }
            _ => Ok(self.body),
        }
    }
}

impl Body {
    /// The error that a refusal carries, if it can be read.
    async fn error_body(mut self) -> Option<ErrorBody> {
        let mut read = Vec::new();
        while let Ok(Some(bytes)) = self.next().await {
            read.extend_from_slice(&bytes);
            if read.len() > MAX_ERROR_BYTES {
                return None;
            }
        }
        ErrorBody::parse(&read)
    }
}

/// An attempt without an answer.
struct Lost {
    fault: UpstreamFault,
    /// The connection was a pooled one that had died before this request.
    died_idle: bool,
}

impl From<UpstreamFault> for Lost {
    fn from(fault: UpstreamFault) -> Self {
        Self { fault, died_idle: false }
    }
}

async fn attempt(
    client: &Client<Connector, Full<Bytes>>,
    mut request: Request<Full<Bytes>>,
    clock: Clock,
) -> Result<Answer, Lost> {
    let mut connection = capture_connection(&mut request);
    let mut response = pin!(client.request(request));
    let early = clock
        .stage(Stage::Connect)
        .bound(async {
            tokio::select! {
                biased;
                response = &mut response => Some(response),
                _ = connection.wait_for_connection_metadata() => None,
            }
        })
        .await?;
    let first_byte = clock.stage(Stage::FirstByte);
    let response: Result<Response<Incoming>, ClientError> = match early {
        Some(response) => response,
        None => first_byte.bound(response).await?,
    };
    let (head, body) = response.map_err(|error| lost(&error))?.into_parts();
    Ok(Answer { head, body: Body::new(body, clock, first_byte) })
}

fn lost(error: &ClientError) -> Lost {
    let detail = chain(error);
    if error.is_connect() {
        return UpstreamFault::Connect { detail }.into();
    }
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<hyper::Error>());
    match source {
        Some(source) if source.is_parse_too_large() => {
            UpstreamFault::TooLarge { bound: "max_head_bytes", limit_bytes: MAX_HEAD_BYTES }.into()
        }
        Some(source) if source.is_parse() => UpstreamFault::Malformed { detail }.into(),
        _ => {
            let mut extras = Extensions::new();
            if let Some(connection) = error.connect_info() {
                connection.get_extras(&mut extras);
            }
            let died_idle = extras.get::<Life>().is_some_and(Life::died_idle);
            Lost { fault: UpstreamFault::Transport { detail }, died_idle }
        }
    }
}

/// Ours, then the caller's, then the target's: a target's credential cannot be overwritten.
fn request_headers(
    target: &Target,
    callers: &[(String, String)],
    accept: &'static str,
) -> Result<HeaderMap, UpstreamFault> {
    let mut headers = HeaderMap::with_capacity(callers.len() + target.headers.len() + 3);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
    for (name, value) in callers {
        let fault = |_| UpstreamFault::Header { name: name.clone() };
        let (parsed, value) = header(name, value).map_err(fault)?;
        if CONNECTION_HEADERS.contains(&parsed.as_str()) {
            return Err(UpstreamFault::Header { name: name.clone() });
        }
        headers.insert(parsed, value);
    }
    for (name, value) in &target.headers {
        headers.insert(name, value.clone());
    }
    Ok(headers)
}

/// `retry-after-ms` (Azure, OpenAI), or `Retry-After` in seconds; a date is left out, it would need a wall clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}
