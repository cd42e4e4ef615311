//! The doors: HTTP for the data plane (`/v1/…`) and the management plane (`/api/v1/…`).
//!
//! This crate is the only owner of HTTP status codes and of the names of headers. It reads a body once, asks the
//! engine, and writes what comes back; it knows no policy and no backend.
//!
//! **Invariant:** a stream never lies: a fault before the first byte is a status, after it an error event; `[DONE]`
//! stands only behind a whole answer.

mod answer;
mod app;
mod body;
mod caller;
mod chat;
mod cores;
mod door;
mod embeddings;
mod eval;
mod eval_shape;
mod ext_proc;
mod guard;
mod handover;
mod headers;
mod health;
mod kept;
mod manage;
mod messages;
mod models;
mod protocol;
mod recall;
mod reply;
mod responses;
mod serve;
mod sse;
pub mod status;
mod token;
mod traces;
mod wishes;
mod woken;

pub use door::{Door, DoorLimits};
pub use serve::{Bound, Planes, serve};
pub use traces::Traces;
