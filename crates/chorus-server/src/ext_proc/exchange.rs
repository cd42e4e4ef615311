//! One HTTP request on its way through Envoy, from its head to the end of its answer.

use super::meter::Meter;
use super::words::{self, Head, Step};
use crate::app::Plane;
use crate::door::Door;
use crate::handover::{Gateway, Handover};
use crate::headers::Headers;
use crate::reply;
use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use chorus_engine::{Dispatched, Forward, Passed};
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Told;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, ProtocolConfiguration,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tower::ServiceExt;

/// The header that the gateway's routes read. Source: contract §4.4.
const SELECTED: HeaderName = HeaderName::from_static("x-selected-model");

/// One exchange.
pub(super) struct Exchange {
    door: Door,
    app: Plane,
    envoy: Streaming<ProcessingRequest>,
    to_envoy: mpsc::Sender<ProcessingResponse>,
}

/// What became of the request.
enum Fate {
    /// It goes on to a model.
    Forward(Box<Dispatched>),
    /// This is the answer.
    Answer(Response),
}

impl Exchange {
    pub(super) fn new(
        door: Door,
        app: Plane,
        envoy: Streaming<ProcessingRequest>,
        to_envoy: mpsc::Sender<ProcessingResponse>,
    ) -> Self {
        Self { door, app, envoy, to_envoy }
    }

    /// Runs it to its end. The gRPC status it may end with is for Envoy, which then fails the request.
    pub(super) async fn run(mut self) -> Result<(), Status> {
        let Some(first) = self.envoy.message().await? else { return Ok(()) };
        let modes = first.protocol_config.unwrap_or_default();
        let mode = modes.request_body_mode();
        let (head, bare) = match first.request {
            Some(Told::RequestHeaders(headers)) => {
                let bare = headers.end_of_stream;
                (words::head(headers).ok_or_else(|| Status::invalid_argument("no method or path"))?, bare)
            }
            _ => return Err(Status::failed_precondition("the filter's request_header_mode must be SEND")),
        };
        if !ours(&head.path) {
            self.tell(words::go_on(Step::RequestHeaders)).await?;
            return self.pass(None, modes).await;
        }
        let passed = match mode {
            _ if bare => {
                // Nothing without a body asks a model.
                if let Fate::Answer(answer) = self.fate(head, Bytes::new()).await {
                    self.whole(answer).await?;
                }
                None
            }
            BodySendMode::FullDuplexStreamed => self.duplex(head).await?,
            BodySendMode::Buffered => self.buffered(head).await?,
            _ => {
                let why = "the filter's request_body_mode must be FULL_DUPLEX_STREAMED or BUFFERED";
                return Err(Status::failed_precondition(why));
            }
        };
        match passed {
            Some(passed) => self.pass(Some(passed), modes).await,
            None => Ok(()),
        }
    }

    /// Envoy sends the body in one piece, and takes an answer in one piece.
    async fn buffered(&mut self, head: Head) -> Result<Option<Box<Dispatched>>, Status> {
        self.tell(words::go_on(Step::RequestHeaders)).await?;
        let Some(body) = self.body().await? else { return Ok(None) };
        match self.fate(head, body).await {
            Fate::Forward(passed) => {
                let (headers, body) = forwarded(&passed);
                self.tell(words::go_on_with(Step::RequestBody, &headers, Some(body))).await?;
                Ok(Some(passed))
            }
            Fate::Answer(response) => self.whole(response).await.map(|()| None),
        }
    }

    /// Envoy waits for the word on the head until the body is here, and takes an answer as it is made.
    async fn duplex(&mut self, head: Head) -> Result<Option<Box<Dispatched>>, Status> {
        let Some(body) = self.body().await? else { return Ok(None) };
        match self.fate(head, body).await {
            Fate::Forward(passed) => {
                let (headers, body) = forwarded(&passed);
                self.tell(words::duplex_head(&headers)).await?;
                self.tell(words::duplex_body(Step::RequestBody, body, true)).await?;
                Ok(Some(passed))
            }
            Fate::Answer(response) => self.streamed(response).await.map(|()| None),
        }
    }

    /// The whole body; `None` when the client has left, or when it was too large and has been told.
    async fn body(&mut self) -> Result<Option<Bytes>, Status> {
        let limit = self.door.limits.max_body_bytes;
        let mut body = BytesMut::new();
        while let Some(message) = self.envoy.message().await? {
            match message.request {
                Some(Told::RequestBody(HttpBody { body: piece, end_of_stream, .. })) => {
                    body.extend_from_slice(&piece);
                    if body.len() > limit {
                        let text = format!("the body is larger than {limit} bytes (max_body_bytes)");
                        let refusal = reply::refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &text);
                        self.whole(refusal).await?;
                        return Ok(None);
                    }
                    if end_of_stream {
                        return Ok(Some(body.freeze()));
                    }
                }
                Some(Told::RequestTrailers(_)) => return Ok(Some(body.freeze())),
                _ => return Err(Status::failed_precondition("a message out of turn")),
            }
        }
        Ok(None)
    }

    /// Whether the request goes on, or what answers it: the data plane's own word.
    async fn fate(&self, head: Head, body: Bytes) -> Fate {
        let mut request = http::Request::new(Body::from(body));
        *request.method_mut() = head.method;
        *request.headers_mut() = head.headers;
        request.extensions_mut().insert(Gateway);
        match head.path.parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => {
                let refusal = reply::refusal(StatusCode::BAD_REQUEST, "bad_path", "the path cannot be read");
                return Fate::Answer(refusal);
            }
        }
        let mut response = match self.app.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        match Handover::taken(&mut response) {
            Some(dispatched) => Fate::Forward(dispatched),
            None => Fate::Answer(response),
        }
    }

    async fn whole(&self, response: Response) -> Result<(), Status> {
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| Status::internal("the answer broke off"))?;
        self.tell(words::immediate(head.status, &head.headers, body.to_bytes().to_vec())).await
    }

    async fn streamed(&self, response: Response) -> Result<(), Status> {
        let (head, mut body) = response.into_parts();
        self.tell(words::local_head(head.status, &head.headers)).await?;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Status::internal("the answer broke off"))?;
            if let Ok(bytes) = frame.into_data() {
                self.tell(words::local_body(&bytes, false)).await?;
            }
        }
        self.tell(words::local_body(&Bytes::new(), true)).await
    }

    /// The rest of an exchange that goes on: headers on its answer, and its usage read as it passes.
    async fn pass(
        &mut self,
        dispatched: Option<Box<Dispatched>>,
        modes: ProtocolConfiguration,
    ) -> Result<(), Status> {
        let mut meter = Meter::Blind(None);
        let mut status = None;
        while let Some(message) = self.envoy.message().await? {
            let mut over = false;
            let word = match message.request {
                Some(Told::RequestBody(piece)) => echo(Step::RequestBody, piece, modes.request_body_mode()),
                Some(Told::RequestTrailers(_)) => words::go_on(Step::RequestTrailers),
                Some(Told::ResponseHeaders(headers)) => {
                    over = headers.end_of_stream;
                    (status, meter) = self.begun(headers);
                    let told = dispatched.as_ref().map(|passed| answer_headers(passed)).unwrap_or_default();
                    words::go_on_with(Step::ResponseHeaders, &told, None)
                }
                Some(Told::ResponseBody(piece)) => {
                    over = piece.end_of_stream;
                    meter.read(&piece.body);
                    echo(Step::ResponseBody, piece, modes.response_body_mode())
                }
                Some(Told::ResponseTrailers(_)) => {
                    over = true;
                    words::go_on(Step::ResponseTrailers)
                }
                Some(Told::RequestHeaders(_)) | None => {
                    return Err(Status::failed_precondition("a message out of turn"));
                }
            };
            self.tell(word).await?;
            if over {
                break;
            }
        }
        if let (Some(passed), Some(status)) = (dispatched, status) {
            passed.passed(Passed { status: status.as_u16(), usage: meter.usage() }).await;
        }
        Ok(())
    }

    fn begun(&self, headers: HttpHeaders) -> (Option<StatusCode>, Meter) {
        let (status, headers) = words::status(headers);
        (status, Meter::of(&headers, self.door.limits.max_body_bytes))
    }

    async fn tell(&self, message: ProcessingResponse) -> Result<(), Status> {
        self.to_envoy.send(message).await.map_err(|_| Status::cancelled("Envoy has left"))
    }
}

/// A piece of a body that goes on as it came.
fn echo(step: Step, piece: HttpBody, mode: BodySendMode) -> ProcessingResponse {
    match mode {
        BodySendMode::FullDuplexStreamed => words::duplex_body(step, piece.body, piece.end_of_stream),
        _ => words::go_on(step),
    }
}

/// What the data plane answers.
fn ours(path: &str) -> bool {
    path.starts_with("/v1/")
}

/// The headers and the body that a model is to get.
fn forwarded(passed: &Dispatched) -> (HeaderMap, Vec<u8>) {
    let Forward { model, request, headers: added, .. } = passed.forward();
    let mut headers = HeaderMap::new();
    for (name, value) in added {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    if let Ok(model) = HeaderValue::try_from(model) {
        headers.insert(SELECTED, model);
    }
    (headers, request.to_bytes())
}

/// What the client is told on an answer that passes.
fn answer_headers(passed: &Dispatched) -> HeaderMap {
    let mut headers = Headers::of_run(passed.id());
    if let Some(route) = passed.route() {
        headers.route(route, false);
    }
    headers.selected(&passed.forward().model);
    headers.into_map()
}
