//! What an answer that only passes says about its usage, whole or streamed.
//!
//! **Invariant:** the answer is read and never held back; one that cannot be read leaves the usage unknown.

use chorus_wire::{ChatReply, Chunk, SseDecoder, Usage};
use http::{HeaderMap, header};

/// Longest event of a stream that is read, in bytes.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Reads usage out of an answer.
#[derive(Debug)]
pub(super) enum Meter {
    /// Nothing more is read.
    Blind(Option<Usage>),
    /// An event stream.
    Events(SseDecoder, Option<Usage>),
    /// One JSON body, of at most so many bytes.
    Whole(Vec<u8>, usize),
}

impl Meter {
    /// A meter for an answer with those headers, whose body may be `limit` bytes long.
    pub(super) fn of(headers: &HeaderMap, limit: usize) -> Self {
        let kind =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if headers.contains_key(header::CONTENT_ENCODING) {
            Self::Blind(None)
        } else if kind.starts_with("text/event-stream") {
            Self::Events(SseDecoder::new(MAX_EVENT_BYTES), None)
        } else {
            Self::Whole(Vec::new(), limit)
        }
    }

    /// More of the answer.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        match self {
            Self::Blind(_) => {}
            Self::Events(decoder, usage) => {
                let mut events = Vec::new();
                let broken = decoder.push(bytes, &mut events).is_err();
                let chunks = events.iter().filter_map(|event| Chunk::parse(&event.data).ok());
                *usage = chunks.filter_map(|chunk| chunk.usage).next_back().or(*usage);
                if broken {
                    *self = Self::Blind(*usage);
                }
            }
            Self::Whole(body, limit) if body.len() + bytes.len() > *limit => *self = Self::Blind(None),
            Self::Whole(body, _) => body.extend_from_slice(bytes),
        }
    }

    /// What the answer took, where it said.
    pub(super) fn usage(&self) -> Option<Usage> {
        match self {
            Self::Blind(usage) | Self::Events(_, usage) => *usage,
            Self::Whole(body, _) => ChatReply::parse(body).ok()?.usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metered(kind: &'static str, pieces: &[&str]) -> Option<u64> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, http::HeaderValue::from_static(kind))]);
        let mut meter = Meter::of(&headers, 200);
        pieces.iter().for_each(|piece| meter.read(piece.as_bytes()));
        meter.usage().map(|usage| usage.total_tokens)
    }

    const REPLY: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

    #[test]
    fn usage_is_found_wherever_the_answer_was_cut() {
        for cut in [1, 40, REPLY.len() - 1] {
            let (one, two) = REPLY.split_at(cut);
            assert_eq!(metered("application/json", &[one, two]), Some(7));
            let frame = format!("data: {REPLY}\n\ndata: [DONE]\n\n");
            let (one, two) = frame.split_at(cut);
            assert_eq!(metered("text/event-stream; charset=utf-8", &[one, two]), Some(7));
        }
    }

    #[test]
    fn an_answer_that_is_too_long_or_unreadable_leaves_it_unknown() {
        assert_eq!(metered("application/json", &[REPLY, REPLY]), None);
        assert_eq!(metered("application/json", &["<html>"]), None);
        assert_eq!(metered("text/event-stream", &["data: nothing\n\n"]), None);
    }
}
