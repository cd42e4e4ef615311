//! `POST /v1/chat/completions`.

use crate::answer;
use crate::door::Door;
use crate::handover::Gateway;
use crate::protocol::Protocol;
use crate::{body, reply};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use chorus_engine::{Fault, Inbound};
use chorus_wire::{ChatReply, ChatRequest, Chunk, Losses, sse};
use http::HeaderMap;

/// Answers one. A gateway that can call models takes a handover in place of an answer.
pub(crate) async fn chat(door: Door, gateway: Option<Gateway>, headers: HeaderMap, body: Body) -> Response {
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let request = match ChatRequest::parse(&bytes, &door.limits.request) {
        Ok(request) => request,
        Err(bad) => return reply::fault(&reply::bad_request(bad), HeaderMap::new()),
    };
    match answer::inbound(&door, &headers, request, &Losses::default()) {
        Err(fault) => reply::fault(&fault, HeaderMap::new()),
        Ok(inbound) => {
            let inbound = Inbound { forwards: gateway.is_some(), ..inbound };
            answer::live(door, &headers, inbound, Losses::default(), |_| Chat).await
        }
    }
}

/// Chat completions are the engine's own words.
struct Chat;

impl Protocol for Chat {
    async fn whole(&mut self, reply: &ChatReply) -> Vec<u8> {
        reply.to_bytes()
    }

    fn chunk(&mut self, chunk: &Chunk) -> Bytes {
        sse::encode_object(chunk.body())
    }

    async fn end(&mut self) -> Bytes {
        sse::encode(sse::DONE)
    }

    async fn failed(&mut self, fault: &Fault) -> Bytes {
        sse::encode(&reply::error_body(fault).to_bytes())
    }

    fn silence(&self) -> Bytes {
        sse::encode_comment("still working")
    }
}
