//! A run as a server-sent event stream.
//!
//! Each part is one frame as soon as it is there, progress as an event with a name, which a client that does not know
//! it ignores; a comment breaks silences; a fault is an event with `error` and no
//! `[DONE]` after it.

use crate::door::Door;
use crate::reply;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chorus_engine::{Code, Fault, Part, Progress, Run};
use chorus_wire::sse;
use futures_util::stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use std::convert::Infallible;

/// How a stream starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opening {
    /// Its first part has been taken.
    Begun,
    /// Its first part was this.
    Progress(Progress),
    /// Nothing has come yet: a comment opens it.
    Silent,
}

struct Flow {
    door: Door,
    run: Run,
    /// What is told before anything else.
    opening: Option<Bytes>,
    over: bool,
}

/// The response.
pub(crate) fn response(mut headers: HeaderMap, door: Door, run: Run, opening: Opening) -> Response {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let opening = match opening {
        Opening::Begun => None,
        Opening::Progress(progress) => Some(told(&progress)),
        Opening::Silent => Some(keepalive()),
    };
    let flow = Flow { door, run, opening, over: false };
    let frames = stream::unfold(flow, |mut flow| async move {
        let frame = flow.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), flow))
    });
    (headers, Body::from_stream(frames)).into_response()
}

impl Flow {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        loop {
            let part = tokio::select! {
                biased;
                () = self.door.expired() => Ok(Some(Part::Fault(reply::stopping(&self.run)))),
                part = tokio::time::timeout(self.door.limits.keepalive, self.run.next()) => part,
            };
            return match part {
                Err(_) => Some(keepalive()),
                Ok(Some(Part::Chunk(chunk))) => Some(sse::encode(&chunk.to_bytes())),
                Ok(Some(Part::End(_))) => Some(self.last(sse::encode(sse::DONE))),
                Ok(Some(Part::Fault(fault))) => Some(self.failed(&fault)),
                Ok(Some(Part::Progress(progress))) => Some(told(&progress)),
                Ok(Some(Part::Begin(_) | Part::Reply(..))) => continue,
                Ok(None) => {
                    Some(self.failed(&Fault::new(Code::Internal, "the stream came to no end; see the log")))
                }
            };
        }
    }

    fn failed(&mut self, fault: &Fault) -> Bytes {
        let frame = sse::encode(&reply::error_body(fault).to_bytes());
        self.last(frame)
    }

    fn last(&mut self, frame: Bytes) -> Bytes {
        self.over = true;
        frame
    }
}

/// A moment of a looper, as an event of its own name.
fn told(progress: &Progress) -> Bytes {
    let data = serde_json::to_vec(progress).unwrap_or_default();
    sse::encode_named("chorus.progress", &data)
}

fn keepalive() -> Bytes {
    sse::encode_comment("still working")
}
