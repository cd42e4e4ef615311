//! One request's choice among its candidates.
//!
//! [`see`] looks at the request as far as its decision's selector needs it (a vector, a reply of the model that is asked,
//! the conversation so far); [`choose`] picks among the candidates that constraints left; [`answered`] remembers who did.
//! It makes no call but through the request's own adviser. **Invariant:** a dry run asks nobody, counts nothing and draws
//! with a fixed seed (case D24).

mod choose;
mod look;
mod price;
mod terms;
mod wider;

pub(crate) use choose::choose;
pub(crate) use look::see;
pub(crate) use wider::pool;

use crate::mom::Mom;
use crate::route::Routed;
use chorus_select::session::{self, SessionState};
use std::time::Instant;

/// Remembers who answered, so that the conversation's next turn can stay there.
pub(crate) fn answered(mom: &Mom, routed: &Routed, model: &str) {
    let (Some(seen), Some(decision)) = (&routed.sight.session, routed.decision(mom)) else {
        return;
    };
    let state = session::after(seen.state.as_ref(), model, &decision.name);
    let state = SessionState { momentum: seen.momentum, ..state };
    let longest = mom.spec.global.sessions.idle_timeout;
    mom.selection.sessions.put(seen.key.clone(), state, Instant::now(), longest);
}
