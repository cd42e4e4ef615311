//! Calls to models over HTTP: one file a dialect, one pooled client, faults as data.
//!
//! This crate knows sockets, time limits and what backends get wrong on the wire. It does not know routing, prices,
//! budgets, fallbacks or the status codes that our own doors answer with; it makes one attempt and says how it went.
//!
//! **Invariant:** an answer is `Ok` only if the backend said that it was whole: a stream that stops without `[DONE]`
//! or a finish reason is a [`UpstreamFault::Truncated`], never a short answer.

pub mod answer;
mod anthropic;
mod azure;
mod bedrock;
mod bell;
mod body;
pub mod client;
mod clock;
mod connect;
pub mod credential;
pub mod dialect;
pub mod egress;
mod eventstream;
pub mod fault;
mod gemini;
mod json;
mod lane;
mod openai;
mod path;
mod place;
mod pool;
pub mod quirks;
pub mod reliability;
mod reshape;
pub mod rpc;
mod seam;
mod sigv4;
mod spoken;
pub mod target;
mod turns;
pub mod vectors;

pub use answer::ChunkStream;
pub use client::{TlsFault, Upstream};
pub use credential::{Credential, CredentialFault};
pub use dialect::Dialect;
pub use egress::{Egress, EgressFault};
pub use fault::{Blame, Retry, Stage, UpstreamFault};
pub use pool::ClientOptions;
pub use quirks::Quirks;
pub use rpc::Conversation;
pub use sigv4::AwsKeys;
pub use target::{Secret, Target, TargetBuilder, TargetFault, Timeouts};
pub use vectors::{VectorFormat, Vectors, VectorsWish};
