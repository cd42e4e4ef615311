//! A call that the requester makes itself: what it is to send, and what it tells of the end.

use chorus_wire::{ChatRequest, Usage};
use tokio::sync::oneshot;

/// What the requester is to send to the model.
#[derive(Debug)]
pub struct Forward {
    /// The model, by its name in the configuration.
    pub model: String,
    /// The request as the model is to get it.
    pub request: ChatRequest,
    /// Headers that policy adds for the model.
    pub headers: Vec<(String, String)>,
    pub(crate) passed: oneshot::Sender<Passed>,
}

/// How the gateway's call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The HTTP status that the model answered with.
    pub status: u16,
    /// What the answer said that it took.
    pub usage: Option<Usage>,
}
