//! `POST /v1/chat/completions`.
//!
//! A streamed answer is committed to status 200 when its first part is there, or when the line has been silent for
//! `keepalive`, or when the client watches a looper's progress: until then a fault is a status, afterwards an error event
//! (cases A14, A18).

use crate::door::Door;
use crate::headers::Headers;
use crate::{body, caller, reply, sse, wishes};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use chorus_engine::{Code, Fault, Inbound, Part, Run};
use chorus_wire::ChatRequest;
use http::{HeaderMap, StatusCode};
use std::time::Duration;

/// The handler.
pub(crate) async fn chat(State(door): State<Door>, headers: HeaderMap, body: Body) -> Response {
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let request = match ChatRequest::parse(&bytes, &door.limits.request) {
        Ok(request) => request,
        Err(bad) => {
            let fault = Fault { code: Code::InvalidRequest, public: bad.message, param: bad.param };
            return reply::fault(&fault, HeaderMap::new());
        }
    };
    let budget = match wishes::budget(&headers) {
        Ok(budget) => budget,
        Err(fault) => return reply::fault(&fault, HeaderMap::new()),
    };
    let keepalive = request.stream().then_some(door.limits.keepalive);
    let debug = wishes::is_true(&headers, "x-vsr-debug");
    let progress = request.stream() && wishes::is_true(&headers, "x-vsr-progress");
    let caller = caller::caller(&door.engine.serving().spec.global.identity, &headers);
    let run = door.engine.run(Inbound { request, progress, budget, caller });
    Answering { door, run, debug }.respond(keepalive).await
}

/// A run whose status is not committed yet.
struct Answering {
    door: Door,
    run: Run,
    debug: bool,
}

impl Answering {
    async fn respond(mut self, keepalive: Option<Duration>) -> Response {
        loop {
            let part = tokio::select! {
                biased;
                () = self.door.expired() => Next::Part(Some(Part::Fault(reply::stopping(&self.run)))),
                part = next_within(&mut self.run, keepalive) => part,
            };
            match part {
                Next::Silence => {
                    let headers = self.headers().into_map();
                    return sse::response(headers, self.door, self.run, sse::Opening::Silent);
                }
                Next::Part(Some(Part::Begin(answer))) => {
                    let mut headers = self.headers();
                    headers.answer(&answer, self.run.route(), false);
                    return sse::response(headers.into_map(), self.door, self.run, sse::Opening::Begun);
                }
                Next::Part(Some(Part::Reply(answer, reply))) => {
                    let mut headers = self.headers();
                    headers.answer(&answer, self.run.route(), true);
                    return reply::json(StatusCode::OK, headers.into_map(), reply.to_bytes());
                }
                Next::Part(Some(Part::Fault(fault))) => {
                    return reply::fault(&fault, self.headers().into_map());
                }
                Next::Part(Some(Part::Progress(progress))) => {
                    let opening = sse::Opening::Progress(progress);
                    return sse::response(self.headers().into_map(), self.door, self.run, opening);
                }
                Next::Part(Some(Part::Chunk(_) | Part::End(_))) => {}
                Next::Part(None) => {
                    let fault = Fault::new(Code::Internal, "the request came to no end; see the log");
                    return reply::fault(&fault, self.headers().into_map());
                }
            }
        }
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::of_run(&self.run.id);
        if let Some(route) = self.run.route() {
            headers.route(route, self.debug);
        }
        headers
    }
}

/// What came next.
enum Next {
    Part(Option<Part>),
    Silence,
}

async fn next_within(run: &mut Run, keepalive: Option<Duration>) -> Next {
    match keepalive {
        None => Next::Part(run.next().await),
        Some(limit) => tokio::time::timeout(limit, run.next()).await.map_or(Next::Silence, Next::Part),
    }
}
