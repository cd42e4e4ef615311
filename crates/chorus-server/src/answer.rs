//! From a request in canonical form to the response of any door.
//!
//! A streamed answer is committed to status 200 when its first part is there, or when the line has been silent for
//! `keepalive`, or when the client watches a looper's progress: until then a fault is a status, afterwards an error event
//! (cases A14, A18).

use crate::door::Door;
use crate::handover::Handover;
use crate::headers::Headers;
use crate::protocol::Protocol;
use crate::{caller, reply, sse, wishes};
use axum::response::{IntoResponse, Response};
use chorus_engine::{Code, Dispatched, Fault, Inbound, Part, Run};
use chorus_wire::{ChatRequest, Losses};
use http::{HeaderMap, StatusCode};
use std::pin::pin;
use std::time::Duration;

/// A run whose status is not committed yet.
pub(crate) struct Answering<P> {
    door: Door,
    run: Run,
    debug: bool,
    keepalive: Option<Duration>,
    losses: Losses,
    protocol: P,
}

/// A request, with what its headers wish for.
///
/// # Errors
/// A header that cannot be read.
pub(crate) fn inbound(
    door: &Door,
    headers: &HeaderMap,
    request: ChatRequest,
    losses: &Losses,
) -> Result<Inbound, Fault> {
    let budget = wishes::budget(headers)?;
    let progress = request.stream() && wishes::progress(headers);
    let caller = caller::of(door, headers);
    let serving = door.engine.serving();
    let session = wishes::session(&serving.spec.global.sessions, headers);
    let controls = wishes::controls(&serving.control_headers, headers);
    let lost = losses.words().to_vec();
    let tracing = door.traces().map(|traces| traces.of(headers));
    Ok(Inbound { request, progress, budget, caller, lost, session, forwards: false, controls, tracing })
}

/// The response to a request in canonical form; `protocol` makes the words for its run.
pub(crate) async fn respond<P: Protocol>(
    door: Door,
    headers: &HeaderMap,
    request: ChatRequest,
    losses: Losses,
    protocol: impl FnOnce(&Run) -> P,
) -> Response {
    match inbound(&door, headers, request, &losses) {
        Err(fault) => reply::fault(&fault, HeaderMap::new()),
        Ok(inbound) => live(door, headers, inbound, losses, protocol).await,
    }
}

/// The response to what has come in.
pub(crate) async fn live<P: Protocol>(
    door: Door,
    headers: &HeaderMap,
    inbound: Inbound,
    losses: Losses,
    protocol: impl FnOnce(&Run) -> P,
) -> Response {
    let keepalive = inbound.request.stream().then_some(door.limits.keepalive);
    let debug = wishes::debug(headers);
    let run = door.engine.run(inbound);
    let protocol = protocol(&run);
    Answering { door, run, debug, keepalive, losses, protocol }.respond().await
}

impl<P: Protocol> Answering<P> {
    async fn respond(mut self) -> Response {
        let door = self.door.clone();
        let mut expired = pin!(door.expired());
        loop {
            let part = tokio::select! {
                biased;
                part = next_within(&mut self.run, self.keepalive) => part,
                () = &mut expired => Next::Part(Some(Part::Fault(Box::new(reply::stopping(&self.run))))),
            };
            match part {
                Next::Silence => return self.streamed(sse::Opening::Silent),
                Next::Part(Some(Part::Begin(answer))) => {
                    let mut headers = self.headers();
                    headers.answer(&answer, self.run.route(), false);
                    return sse::response(headers.into_map(), self.flow(sse::Opening::Begun));
                }
                Next::Part(Some(Part::Reply(answer, reply))) => {
                    let mut headers = self.headers();
                    headers.answer(&answer, self.run.route(), true);
                    let body = self.protocol.whole(&reply).await;
                    return reply::json(StatusCode::OK, headers.into_map(), body);
                }
                Next::Part(Some(Part::Fault(fault))) => {
                    return reply::fault(&fault, self.headers().into_map());
                }
                Next::Part(Some(Part::Progress(progress))) => {
                    return self.streamed(sse::Opening::Progress(*progress));
                }
                Next::Part(Some(Part::Forward(forward))) => {
                    return Handover::of(Dispatched::new(self.run, *forward)).into_response();
                }
                Next::Part(Some(Part::Chunk(_) | Part::End(_))) => {}
                Next::Part(None) => {
                    let fault = Fault::new(Code::Internal, "the request came to no end; see the log");
                    return reply::fault(&fault, self.headers().into_map());
                }
            }
        }
    }

    fn streamed(self, opening: sse::Opening) -> Response {
        let headers = self.headers().into_map();
        sse::response(headers, self.flow(opening))
    }

    fn flow(self, opening: sse::Opening) -> sse::Flow<P> {
        sse::Flow::new(&self.door, self.run, opening, self.protocol)
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::of_run(&self.run.id);
        if let Some(route) = self.run.route() {
            headers.route(route, self.debug);
        }
        headers.losses(&self.losses);
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
