//! The client's side: answers, and streams event by event.

use bytes::Bytes;
use chorus_wire::{SseDecoder, SseEvent, sse};
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::Value;
use std::collections::VecDeque;

/// A pooled client; the backend's side has its own.
pub(crate) type Http = Client<HttpConnector, Full<Bytes>>;

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Content of the first choice.
    pub(crate) fn text(&self) -> String {
        let body = self.json();
        let content = body.pointer("/choices/0/message/content").and_then(Value::as_str);
        content.unwrap_or_else(|| panic!("no text in {body}")).to_owned()
    }

    /// The error's `code` and `message`; fails unless the body has the API's error shape (case B07).
    pub(crate) fn error(&self) -> (String, String) {
        error_of(&self.json())
    }
}

/// `code` and `message` of `{"error": {message, type, param, code}}`.
pub(crate) fn error_of(body: &Value) -> (String, String) {
    let field = |name: &str| {
        let text = body.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no {name} in {body}")).to_owned()
    };
    assert!(body.pointer("/error/param").is_some(), "no param in {body}");
    assert!(!field("type").is_empty());
    (field("code"), field("message"))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What comes out of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A chunk.
    Chunk(Value),
    /// `{"error": …}`.
    Error(Value),
    /// `[DONE]`.
    Done,
}

/// An answer whose body has not been read yet. Dropping it hangs up.
pub(crate) struct Incoming {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: hyper::body::Incoming,
    decoder: SseDecoder,
    decoded: VecDeque<SseEvent>,
    /// Everything read so far.
    pub(crate) raw: Vec<u8>,
}

impl Incoming {
    pub(crate) fn new(response: http::Response<hyper::body::Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            decoder: SseDecoder::new(sse::MAX_EVENT_BYTES),
            decoded: VecDeque::new(),
            raw: Vec::new(),
        }
    }

    pub(crate) async fn whole(self) -> Answer {
        Answer {
            status: self.status,
            headers: self.headers,
            body: self.body.collect().await.unwrap().to_bytes(),
        }
    }

    /// The next event; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.decoded.pop_front() {
                return Some(read(&event.data));
            }
            let frame = self.body.frame().await?;
            let Ok(bytes) = frame.unwrap().into_data() else {
                continue;
            };
            self.raw.extend_from_slice(&bytes);
            let mut events = Vec::new();
            self.decoder.push(&bytes, &mut events).unwrap();
            self.decoded.extend(events);
        }
    }

    /// Reads on until the text so far holds `wanted`.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        while !text.contains(wanted) {
            match self.next().await {
                Some(Event::Chunk(chunk)) => text.push_str(delta(&chunk)),
                other => panic!("{other:?} after {text:?}"),
            }
        }
        text
    }

    /// Everything to the end of the body.
    pub(crate) async fn told(mut self) -> Told {
        assert_eq!(self.status, 200, "{:?}", self.headers);
        let mut told = Told::default();
        while let Some(event) = self.next().await {
            assert!(!told.done && told.error.is_none(), "{event:?} after the end");
            match event {
                Event::Chunk(chunk) => told.see(chunk),
                Event::Error(error) => told.error = Some(error),
                Event::Done => told.done = true,
            }
        }
        told.comments = comments(&self.raw);
        told.headers = self.headers;
        told
    }
}

fn read(data: &[u8]) -> Event {
    if data == sse::DONE {
        return Event::Done;
    }
    let value: Value = serde_json::from_slice(data).unwrap();
    if value.get("error").is_some() { Event::Error(value) } else { Event::Chunk(value) }
}

pub(crate) fn comments(raw: &[u8]) -> usize {
    raw.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b":")).count()
}

/// Text of choice 0 of a chunk.
pub(crate) fn delta(chunk: &Value) -> &str {
    chunk.pointer("/choices/0/delta/content").and_then(Value::as_str).unwrap_or_default()
}

/// A stream that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) headers: HeaderMap,
    pub(crate) chunks: Vec<Value>,
    pub(crate) text: String,
    /// Finish reasons of all choices, in order of arrival.
    pub(crate) finishes: Vec<String>,
    pub(crate) usage: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) done: bool,
    pub(crate) comments: usize,
}

impl Told {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    fn see(&mut self, chunk: Value) {
        self.text.push_str(delta(&chunk));
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let reason = choice.get("finish_reason").and_then(Value::as_str);
            self.finishes.extend(reason.map(str::to_owned));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        self.chunks.push(chunk);
    }

    /// Fails unless the answer is whole: one finish reason, and `[DONE]`.
    pub(crate) fn is_whole(&self) -> &Self {
        assert!(self.done && self.error.is_none() && self.finishes.len() == 1, "{self:?}");
        self
    }

    /// The error that broke it off; fails if it also looks finished (case A13).
    pub(crate) fn broken(&self) -> (String, String) {
        assert!(!self.done && self.finishes.is_empty(), "{self:?}");
        error_of(self.error.as_ref().unwrap_or_else(|| panic!("no error in {self:?}")))
    }
}
