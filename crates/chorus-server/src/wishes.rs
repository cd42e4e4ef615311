//! What a client may wish for in headers: a smaller budget, progress, more headers.
//!
//! **Invariant:** a budget that cannot be read is refused; a bound that a client believes in is never dropped silently.

use chorus_engine::budget::parse;
use chorus_engine::{Code, Controls, Fault, SessionWords};
use chorus_spec::{BudgetSettings, SessionSettings};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeSet;

/// The header that bounds what a request may spend.
static BUDGET: HeaderName = HeaderName::from_static("x-vsr-budget");
/// The header by which a client asks to watch a looper.
static PROGRESS: HeaderName = HeaderName::from_static("x-vsr-progress");
/// The header by which a client asks for more headers.
static DEBUG: HeaderName = HeaderName::from_static("x-vsr-debug");

/// What `x-vsr-budget` allows; unbounded without it.
///
/// # Errors
/// [`Code::InvalidRequest`].
pub(crate) fn budget(headers: &HeaderMap) -> Result<BudgetSettings, Fault> {
    let Some(value) = headers.get(&BUDGET) else {
        return Ok(BudgetSettings::default());
    };
    let text = value.to_str().unwrap_or_default();
    parse(text)
        .map_err(|fault| Fault::new(Code::InvalidRequest, format!("{BUDGET}: {fault}")).at(BUDGET.as_str()))
}

/// Header by which one command-line agent names its session. Source: contract §4.1.
static AGENT_SESSION: HeaderName = HeaderName::from_static("x-claude-code-session-id");

/// Longest name of a session, in bytes; a longer one names nothing.
const SESSION_BYTES: usize = 256;

/// Which conversation a request belongs to, as its headers say.
pub(crate) fn session(settings: &SessionSettings, headers: &HeaderMap) -> SessionWords {
    let word = |value: Option<&HeaderValue>| {
        let value = value?.to_str().ok()?.trim();
        (!value.is_empty() && value.len() <= SESSION_BYTES).then(|| value.to_owned())
    };
    SessionWords {
        session: word(headers.get(&settings.session_header)).or_else(|| word(headers.get(&AGENT_SESSION))),
        conversation: word(headers.get(&settings.conversation_header)),
    }
}

/// The headers by which a request steers plugins; of several of one name the first.
pub(crate) fn controls(names: &BTreeSet<String>, headers: &HeaderMap) -> Controls {
    let value = |name: &String| {
        let value = headers.get(name)?.to_str().ok()?.trim().to_owned();
        Some((name.clone(), value))
    };
    Controls::of(names.iter().filter_map(value))
}

/// Whether the client watches a looper's progress.
pub(crate) fn progress(headers: &HeaderMap) -> bool {
    is_true(headers.get(&PROGRESS))
}

/// Whether the client wants to know why.
pub(crate) fn debug(headers: &HeaderMap) -> bool {
    is_true(headers.get(&DEBUG))
}

fn is_true(value: Option<&HeaderValue>) -> bool {
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}
