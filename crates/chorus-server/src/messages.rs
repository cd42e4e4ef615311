//! `POST /v1/messages` and `POST /v1/messages/count_tokens`: Anthropic's Messages protocol.
//!
//! The request is translated to a chat request, the answer back; what has no counterpart is named in
//! `x-vsr-protocol-warnings` and in the record. The page is `docs/doors/messages.md`.
//!
//! **Invariant:** every error at these paths has the protocol's shape, whatever layer refused the request.

use crate::door::Door;
use crate::headers::REQUEST;
use crate::protocol::Protocol;
use crate::{answer, body, reply, status};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use chorus_engine::loopers::TRACE_FIELDS;
use chorus_engine::{Fault, Run};
use chorus_wire::anthropic::{self, MessageStream, MessagesRequest};
use chorus_wire::{ChatReply, Chunk, ErrorBody, tokens};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::json;

/// Paths below this one speak the protocol.
const PATH: &str = "/v1/messages";

/// Longest error body that is put into another shape.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// `POST /v1/messages`.
pub(crate) async fn create(State(door): State<Door>, headers: HeaderMap, body: Body) -> Response {
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let asked = match MessagesRequest::parse(&bytes, &door.limits.request) {
        Ok(asked) => asked,
        Err(bad) => return reply::fault(&reply::bad_request(bad), HeaderMap::new()),
    };
    let (chat, losses) = (asked.chat, asked.losses);
    // What an answer may hold is no part of the prompt.
    let prompt = tokens::of_request(&chat).saturating_sub(chat.max_output_tokens().unwrap_or(0));
    let model = chat.model().to_owned();
    answer::respond(door, &headers, chat, losses, |run| Messages::of(run, model, prompt)).await
}

/// `POST /v1/messages/count_tokens`: an estimate, by the same rule that holds requests against windows.
pub(crate) async fn count(State(door): State<Door>, body: Body) -> Response {
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let chat = match anthropic::count_request(&bytes, &door.limits.request) {
        Ok(chat) => chat,
        Err(bad) => return reply::fault(&reply::bad_request(bad), HeaderMap::new()),
    };
    if let Err(fault) = chorus_engine::identity::identify(&door.engine.serving().spec, chat.model()) {
        return reply::fault(&fault, HeaderMap::new());
    }
    let body = json!({"input_tokens": tokens::of_request(&chat)});
    reply::json(StatusCode::OK, HeaderMap::new(), body.to_string().into_bytes())
}

/// The protocol's words for one run.
struct Messages {
    id: String,
    stream: MessageStream,
}

impl Messages {
    fn of(run: &Run, model: String, prompt_tokens: u64) -> Self {
        let id = run.id.replace("run_", "msg_");
        let stream = MessageStream::new(id.clone(), model, prompt_tokens, TRACE_FIELDS);
        Self { id, stream }
    }
}

impl Protocol for Messages {
    async fn whole(&mut self, reply: &ChatReply) -> Vec<u8> {
        anthropic::message_of(reply, &self.id, TRACE_FIELDS)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Bytes {
        self.stream.push(chunk)
    }

    async fn end(&mut self) -> Bytes {
        self.stream.end()
    }

    async fn failed(&mut self, fault: &Fault) -> Bytes {
        let kind = kind_of(status::row(fault.code).status);
        MessageStream::failed(kind, &fault.public, Some(fault.code.as_str()))
    }

    fn silence(&self) -> Bytes {
        MessageStream::ping()
    }
}

/// The protocol's error type of a status. Source: Anthropic's API reference, errors.
fn kind_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The response, its error in the protocol's shape where the path speaks it.
pub(crate) async fn shaped(path: &str, response: Response) -> Response {
    let status = response.status();
    if !path.starts_with(PATH) || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let read = Limited::new(body, MAX_ERROR_BYTES).collect().await;
    let error = read.ok().and_then(|read| ErrorBody::parse(&read.to_bytes()));
    let (message, code) = error.map_or_else(
        || ("the request cannot be served".to_owned(), None),
        |error| {
            let param = error.param.filter(|param| !error.message.contains(param.as_str()));
            let place = param.map(|param| format!("{param}: ")).unwrap_or_default();
            (format!("{place}{}", error.message), error.code)
        },
    );
    let id = head.headers.get(&REQUEST).and_then(|id| id.to_str().ok());
    let bytes = anthropic::error_bytes(kind_of(status), &message, code.as_deref(), id);
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_engine::Code;

    /// The official clients choose their error class by status and tell the type to people: both must agree.
    #[test]
    fn every_fault_has_a_type_of_the_protocol() {
        for code in Code::ALL {
            let status = status::row(code).status;
            let kind = kind_of(status);
            assert_eq!(
                status.is_client_error(),
                !matches!(kind, "api_error" | "overloaded_error" | "timeout_error")
            );
        }
    }
}
