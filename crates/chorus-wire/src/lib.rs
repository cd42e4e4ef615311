//! The words of the wire: what a chat completion request, reply, stream and error look like.
//!
//! Bodies are kept losslessly: key order, unknown fields, explicit `null`, `0`, `false` and `""`, and the text of
//! numbers survive, except for the fields that Chorus itself must change. This crate knows no socket, no policy and
//! no status code.
//!
//! **Invariant:** a request that nobody edited is written back byte for byte the JSON values it came with.

pub mod alike;
pub mod anthropic;
pub mod assemble;
pub mod body;
pub mod chat;
pub mod chunk;
mod content;
pub mod error;
pub mod extra;
mod fault;
pub mod finish;
pub mod identity;
pub mod loss;
pub mod message;
pub mod models;
mod parameters;
mod quarters;
mod raw;
pub mod repair;
pub mod reply;
pub mod responses;
mod scan;
pub mod sse;
mod text;
pub mod tokens;
pub mod tool;

pub use alike::ChunkReader;
pub use assemble::Assembler;
pub use body::{BodyFault, RawObject};
pub use chat::{ChatRequest, RequestLimits};
pub use chunk::{Chunk, ChunkChoice};
pub use error::ErrorBody;
pub use fault::RequestFault;
pub use identity::StreamIdentity;
pub use loss::Losses;
pub use message::{Message, Role};
pub use models::{ModelCard, ModelList};
pub use raw::Raw;
pub use repair::StreamRepair;
pub use reply::{ChatReply, Usage};
pub use sse::{SseDecoder, SseEvent, SseFault};
pub use tool::{ToolCall, ToolCallDelta};
