//! The pooled HTTP client: one per process, shared by every dialect.
//!
//! It sends one request and hands over the head and body of the answer. It follows no redirect (case E08), adds no
//! header of the caller's client, and repeats a request in one case only: a pooled connection turned out to be closed
//! before it gave a single byte (case C16).

use crate::body::Body;
use crate::clock::Clock;
use crate::lane::{Lane, MAX_HEAD_BYTES, Outgoing, chain};
use crate::place::{Place, host_of};
use crate::pool::{ClientOptions, Pool, Shelf};
use crate::seam::Sent;
use crate::target::{OURSELVES, header};
use crate::{Stage, Target, Timeouts, UpstreamFault};
use bytes::Bytes;
use chorus_wire::ErrorBody;
use http::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use http_body_util::Full;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsFault(#[from] rustls::Error);

/// The client. Cloning shares the connections.
#[derive(Clone)]
pub struct Upstream {
    pool: Arc<Pool>,
    reconnects: Arc<AtomicU64>,
}

impl Upstream {
    /// A client with connections of its own.
    ///
    /// # Errors
    /// [`TlsFault`].
    pub fn new(options: &ClientOptions) -> Result<Self, TlsFault> {
        Ok(Self { pool: Arc::new(Pool::new(options)?), reconnects: Arc::default() })
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
        let headers = request_headers(target, &[], "*/*")?;
        let request = outgoing(Method::GET, target.path.clone(), headers, Bytes::new());
        let shelf = self.pool.shelf(&target.place)?;
        let answer = attempt(&shelf, Use::Once, request, clock).await.map_err(|lost| lost.fault)?;
        Ok(answer.head.status.as_u16())
    }

    /// What a `GET` of that URL gives, of at most so many bytes, within that time: for documents that are not a model's,
    /// such as the keys of an issuer of tokens.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for a status other than 2xx.
    pub async fn fetch(&self, url: &str, limit: Duration, most_bytes: usize) -> Result<Bytes, UpstreamFault> {
        let limits = Timeouts { total: limit, max_response_bytes: most_bytes, ..Timeouts::default() };
        let (shelf, mut request) = self.at_url(Method::GET, url, Bytes::new())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = attempt(&shelf, Use::Once, request, Clock::start(&limits)).await;
        answer.map_err(|lost| lost.fault)?.accepted().await?.collect().await
    }

    /// Posts a document to that URL, within that time, for whoever takes documents that are no conversation, such as a
    /// collector of traces.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for a status other than 2xx.
    pub async fn deliver(&self, url: &str, document: Bytes, limit: Duration) -> Result<(), UpstreamFault> {
        let limits = Timeouts { total: limit, ..Timeouts::default() };
        let (shelf, mut request) = self.at_url(Method::POST, url, document)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = attempt(&shelf, Use::Pooled, request, Clock::start(&limits)).await;
        answer.map_err(|lost| lost.fault)?.accepted().await?.collect().await.map(drop)
    }

    /// A request to that URL, and the connections that lead there.
    fn at_url(
        &self,
        method: Method,
        url: &str,
        body: Bytes,
    ) -> Result<(Arc<Shelf>, Outgoing), UpstreamFault> {
        let uri: Uri = url.parse().map_err(|_| not_a_url())?;
        let place = Place::of(&uri, None).ok_or_else(not_a_url)?;
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host_of(&uri).ok_or_else(not_a_url)?);
        headers.insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
        Ok((self.pool.shelf(&Arc::new(place))?, outgoing(method, path, headers, body)))
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
        let path = target.path_at(path).map_err(UpstreamFault::untranslatable)?;
        let document = document.unwrap_or_default();
        let ask = || {
            let headers = request_headers(target, &[], "application/json")?;
            Ok(outgoing(method.clone(), path.clone(), headers, document.clone()))
        };
        self.asked(target, ask, Clock::start(limits)).await?.accepted().await?.collect().await
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
        let path = match &sent.path {
            Some(path) => target.path_at(path).map_err(UpstreamFault::untranslatable)?,
            None => target.path.clone(),
        };
        let ask = || {
            let mut headers = request_headers(target, headers, sent.accept)?;
            sign(target, &path, &sent.body, &mut headers)?;
            Ok(outgoing(Method::POST, path.clone(), headers, sent.body.clone()))
        };
        let answer = self.asked(target, ask, clock).await?;
        answer.accepted_with_head().await
    }

    /// What a request is answered, over a pooled connection; over a fresh one where that turned out to be dead.
    async fn asked(
        &self,
        target: &Target,
        ask: impl Fn() -> Result<Outgoing, UpstreamFault>,
        clock: Clock,
    ) -> Result<Answer, UpstreamFault> {
        let shelf = self.pool.shelf(&target.place)?;
        let answer = match attempt(&shelf, Use::Pooled, ask()?, clock).await {
            Err(Lost { died_idle: true, .. }) => {
                self.reconnects.fetch_add(1, Ordering::Relaxed);
                // In a box of its own, for it is seldom.
                Box::pin(attempt(&shelf, Use::Fresh, ask()?, clock)).await
            }
            outcome => outcome,
        };
        answer.map_err(|lost| lost.fault)
    }
}

/// Signs a request, where its target wants it signed.
fn sign(
    target: &Target,
    path: &PathAndQuery,
    body: &Bytes,
    headers: &mut HeaderMap,
) -> Result<(), UpstreamFault> {
    let Some(signer) = &target.signer else { return Ok(()) };
    let uri = target.whole(path.clone()).map_err(UpstreamFault::untranslatable)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for (name, value) in signer.headers("POST", &uri, body, now) {
        let value = HeaderValue::try_from(value);
        headers.insert(name, value.map_err(|_| UpstreamFault::Header { name: name.to_owned() })?);
    }
    Ok(())
}

/// A request in the form that a server gets, its address without scheme and host.
fn outgoing(method: Method, path: PathAndQuery, headers: HeaderMap, body: Bytes) -> Outgoing {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = headers;
    request
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
        Ok(self.accepted_with_head().await?.1)
    }

    /// The same, with the headers.
    async fn accepted_with_head(self) -> Result<(HeaderMap, Body), UpstreamFault> {
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
            _ => Ok((self.head.headers, self.body)),
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

/// Which connection a request may go over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// One that waits, or else a new one.
    Pooled,
    /// A new one: for the one retry, which must not meet a second dead connection.
    Fresh,
    /// A new one, for nothing else.
    Once,
}

async fn attempt(shelf: &Arc<Shelf>, way: Use, mut request: Outgoing, clock: Clock) -> Result<Answer, Lost> {
    loop {
        let waiting = if way == Use::Pooled { shelf.take() } else { None };
        let is_new = waiting.is_none();
        let mut lane = match waiting {
            Some(lane) => lane,
            // In a box of its own, for it is seldom, and large.
            None => Box::pin(clock.stage(Stage::Connect).bound(shelf.open())).await??,
        };
        let first_byte = clock.stage(Stage::FirstByte);
        match lane.ask(request, first_byte).await? {
            Ok(response) => {
                let (head, incoming) = response.into_parts();
                let home = (way != Use::Once).then(|| Arc::clone(shelf));
                return Ok(Answer { head, body: Body::new(incoming, lane, home, clock, first_byte) });
            }
            Err(mut refused) => match refused.take_message() {
                // It had been closed while it waited, and nothing of the request was sent.
                Some(unsent) if !is_new => request = unsent,
                _ => return Err(lost(&refused.into_error(), &lane)),
            },
        }
    }
}

fn lost(error: &hyper::Error, lane: &Lane) -> Lost {
    let detail = chain(error);
    if error.is_parse_too_large() {
        UpstreamFault::TooLarge { bound: "max_head_bytes", limit_bytes: MAX_HEAD_BYTES }.into()
    } else if error.is_parse() {
        UpstreamFault::Malformed { detail }.into()
    } else {
        Lost { fault: UpstreamFault::Transport { detail }, died_idle: lane.died_idle() }
    }
}

/// Ours, then the caller's, then the target's: a target's credential cannot be overwritten.
fn request_headers(
    target: &Target,
    callers: &[(String, String)],
    accept: &'static str,
) -> Result<HeaderMap, UpstreamFault> {
    // Room for what is accepted, and for the length, which hyper adds.
    let mut headers = HeaderMap::with_capacity(target.headers.len() + callers.len() + 2);
    for (name, value) in &*target.headers {
        headers.insert(name, value.clone());
    }
    if !target.owns(&ACCEPT) {
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
    }
    for (name, value) in callers {
        let fault = |_| UpstreamFault::Header { name: name.clone() };
        let (parsed, value) = header(name, value).map_err(fault)?;
        if CONNECTION_HEADERS.contains(&parsed.as_str()) {
            return Err(UpstreamFault::Header { name: name.clone() });
        }
        if !target.owns(&parsed) {
            headers.insert(parsed, value);
        }
    }
    Ok(headers)
}

/// `retry-after-ms` (Azure, OpenAI), or `Retry-After` in seconds; a date is left out, it would need a wall clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}
