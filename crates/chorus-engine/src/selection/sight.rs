//! What selection sees of a request before its candidates are known. It knows no request.

use chorus_select::session::SessionState;
use chorus_spec::ModelId;
use std::collections::BTreeMap;

/// What selection sees of a request.
#[derive(Debug, Default)]
pub struct Sight {
    /// The request as a unit vector, where the selector needs one.
    pub(crate) query: Option<Vec<f32>>,
    /// Nearness to each card, on the scale of configuration files.
    pub(crate) similarities: BTreeMap<ModelId, f64>,
    /// What the asked model replied, or why it did not.
    pub(crate) reply: Option<Result<String, String>>,
    /// The conversation, where it is known which it is.
    pub(crate) session: Option<SessionSight>,
    /// What draws are made from; 0 in a dry run.
    pub(crate) seed: u64,
    /// Whether nobody may be asked.
    pub(crate) dry: bool,
}

/// What is known of a request's conversation.
#[derive(Debug)]
pub(crate) struct SessionSight {
    pub(crate) key: String,
    pub(crate) state: Option<SessionState>,
    pub(crate) idle_ms: u64,
    pub(crate) tool_loop: bool,
    /// How hard its turns have been, this one included, where that counts.
    pub(crate) momentum: Option<f64>,
    /// Whether this turn is easier than the conversation has been, so that it goes on as before.
    pub(crate) carried: bool,
}
