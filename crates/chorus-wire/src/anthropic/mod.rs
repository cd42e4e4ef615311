//! Anthropic's Messages protocol at the front: its requests as chat requests, chat answers as its messages and events.
//!
//! It knows no status code and no backend. What has no counterpart is named in [`Losses`](crate::Losses); what only an
//! Anthropic backend understands travels along as [`extras`] and is taken off for every other one.
//!
//! Source: Anthropic's API reference, version 2023-06-01.
//!
//! **Invariant:** an image, a document or a tool's result is translated or refused, never dropped in silence.

mod blocks;
mod content;
mod error;
pub mod extras;
mod reply;
mod request;
mod stream;
mod turns;

pub use error::error_bytes;
pub use reply::{message_of, stop_reason};
pub use request::{MessagesRequest, count_request};
pub use stream::MessageStream;
