//! Which API a backend speaks: the seam between the one client and one file a dialect.
//!
//! A dialect turns a chat completion request into what its API reads, and what that API answers (whole, or event by
//! event) into our reply and our chunks. It knows no socket, no time limit and no retry.
//!
//! **Invariant:** whatever the dialect, an answer is a `ChatReply` or `Chunk`s that end in a finish reason, and an error
//! of the API is an [`UpstreamFault`], never an empty answer.

use crate::eventstream::EventStream;
use crate::quirks::Quirks;
use crate::seam::{Reader, Sent};
use crate::{UpstreamFault, anthropic, azure, bedrock, gemini, openai};
use bytes::Bytes;
use chorus_wire::{ChatReply, SseDecoder, SseEvent, SseFault};

/// The API that a backend speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI chat completions, and the many servers that speak it.
    #[default]
    OpenAi,
    /// OpenAI chat completions at a path that names the deployment.
    Azure,
    /// Anthropic Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Amazon Bedrock's `Converse`.
    Bedrock,
}

impl Dialect {
    /// The request as this API reads it.
    ///
    /// # Errors
    /// [`UpstreamFault::Untranslatable`] when the API has no words for it.
    pub(crate) fn sent(self, body: Bytes, quirks: Quirks, stream: bool) -> Result<Sent, UpstreamFault> {
        match self {
            Self::OpenAi => openai::sent(body, quirks, stream),
            Self::Azure => azure::sent(body, quirks, stream),
            Self::Anthropic => anthropic::sent(&body, stream),
            Self::Gemini => gemini::sent(&body, stream),
            Self::Bedrock => bedrock::sent(&body, stream),
        }
    }

    /// A whole answer.
    ///
    /// # Errors
    /// The error that it is, or that it cannot be read.
    pub(crate) fn whole(self, bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
        match self {
            Self::OpenAi | Self::Azure => openai::whole(bytes),
            Self::Anthropic => anthropic::whole(bytes),
            Self::Gemini => gemini::whole(bytes),
            Self::Bedrock => bedrock::whole(bytes),
        }
    }

    /// A reader for one stream.
    pub(crate) fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::OpenAi | Self::Azure => Box::<openai::Events>::default(),
            Self::Anthropic => Box::new(anthropic::Events::default()),
            Self::Gemini => Box::new(gemini::Events::default()),
            Self::Bedrock => Box::new(bedrock::Events::default()),
        }
    }

    /// How its streams are cut into events.
    pub(crate) fn frames(self, max_event_bytes: usize) -> Frames {
        match self {
            Self::OpenAi | Self::Azure | Self::Anthropic | Self::Gemini => {
                Frames::Sse(SseDecoder::new(max_event_bytes))
            }
            Self::Bedrock => Frames::Binary(EventStream::new(max_event_bytes)),
        }
    }
}

/// Cuts a stream's bytes into events.
pub(crate) enum Frames {
    /// Server-sent events.
    Sse(SseDecoder),
    /// Amazon's binary frames.
    Binary(EventStream),
}

impl Frames {
    /// Takes bytes; appends the events they complete.
    ///
    /// # Errors
    /// They are no events, or one is too long.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), UpstreamFault> {
        match self {
            Self::Sse(decoder) => decoder.push(bytes, out).map_err(|fault| unreadable(&fault)),
            Self::Binary(decoder) => decoder.push(bytes, out),
        }
    }

    /// The event that the end of the stream completes.
    ///
    /// # Errors
    /// The stream was cut inside an event.
    pub(crate) fn finish(&mut self) -> Result<Option<SseEvent>, UpstreamFault> {
        match self {
            // A stream cut inside a letter is a cut stream, not an unreadable one.
            Self::Sse(decoder) => decoder.finish().map_err(UpstreamFault::truncated),
            Self::Binary(decoder) => decoder.finish().map(|()| None),
        }
    }
}

fn unreadable(fault: &SseFault) -> UpstreamFault {
    match fault {
        SseFault::TooLong { limit } => {
            UpstreamFault::TooLarge { bound: "max_event_bytes", limit_bytes: *limit }
        }
        SseFault::NotUtf8 => UpstreamFault::malformed(fault),
    }
}
