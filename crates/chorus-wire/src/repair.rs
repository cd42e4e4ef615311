//! Mends what backends get wrong in a stream. It knows no backend by name and reads no clock.
//!
//! **Invariant:** a choice that is right as it is keeps its text; only the chunk's identity is written over.

use crate::body::RawObject;
use crate::chunk::{Chunk, ChunkChoice, Shape};
use crate::identity::{Stamp, StreamIdentity};
use crate::raw::{Raw, elements, list_of, raw_or_null};
use crate::reply::Usage;
use crate::tool::{ToolCallDelta, ToolSlots};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Makes a backend's chunks a well-formed stream: one id, model and creation time (A21); a delta in every choice
/// (A11), with a role once per choice; text as a string (B15); tool calls numbered 0, 1, 2 by id, each naming its id
/// and function once (A01, A02); finish reasons in the API's words, empty ones null (A25, B16), one per choice (A03);
/// `tool_calls` as the reason where a call was made and the backend gave none; the usage held back for the end
/// (A04). Fields it does not know survive; a field named by [`with_stripped`](Self::with_stripped) (our own trace
/// names, case G19) does not.
#[derive(Debug)]
pub struct StreamRepair {
    identity: StreamIdentity,
    stamp: Stamp,
    stripped: &'static [&'static str],
    choices: BTreeMap<u32, ChoiceState>,
    usage: Option<Usage>,
    /// The chunk that the last usage came in, with its usage.
    usage_body: Option<RawObject>,
    failed: bool,
}

/// What was already sent of one choice.
#[derive(Debug, Default)]
struct ChoiceState {
    opened: bool,
    has_output: bool,
    finished: bool,
    tools: ToolSlots,
}

impl StreamRepair {
    /// A stream of that identity.
    #[must_use]
    pub fn new(identity: StreamIdentity) -> Self {
        let stamp = Stamp::new(&identity);
        Self {
            identity,
            stamp,
            stripped: &[],
            choices: BTreeMap::new(),
            usage: None,
            usage_body: None,
            failed: false,
        }
    }

    /// Takes those top-level fields out of every chunk.
    #[must_use]
    pub fn with_stripped(mut self, fields: &'static [&'static str]) -> Self {
        self.stripped = fields;
        self
    }

    /// Mends one chunk; `None` when nothing of it should be sent: its usage (held back), an empty list of choices, an
    /// end that was told before, or an error, which the caller reads from [`Chunk::error`] and tells in its own words.
    pub fn push(&mut self, mut chunk: Chunk) -> Option<Chunk> {
        if chunk.error.is_some() {
            self.failed = true;
            return None;
        }
        chunk.body.remove_all(self.stripped);
        self.stamp.put(&mut chunk.body);
        let had_usage = self.hold_usage(&mut chunk);
        let is_worth_sending = if chunk.choices.is_empty() {
            !had_usage && is_report(&chunk.body)
        } else {
            self.mend_choices(&mut chunk)
        };
        is_worth_sending.then_some(chunk)
    }

    /// What must still be sent when the backend ended well: a finish chunk for every choice that has output and was
    /// not given one. Its reason is `tool_calls` or `stop`, and its choice is marked `"finish_reason_inferred": true`
    /// (case A25). After a stream that broke off, do not call this (case A13).
    pub fn finish(&mut self) -> Vec<Chunk> {
        if self.failed {
            return Vec::new();
        }
        let stamp = &self.stamp;
        self.choices
            .iter_mut()
            .filter(|(_, state)| state.has_output && !state.finished)
            .map(|(index, state)| {
                state.finished = true;
                inferred_finish(*index, if state.tools.is_empty() { "stop" } else { "tool_calls" }, stamp)
            })
            .collect()
    }

    /// Last totals seen, if any. Totals of zero do not replace others.
    #[must_use]
    pub fn last_usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The backend's own last usage chunk, with the fields that [`Usage`] does not hold (cached or reasoning tokens),
    /// `choices: []` and the mended total. `None` when the backend reported none.
    #[must_use]
    pub fn usage_chunk(&self) -> Option<Chunk> {
        let usage = self.usage?;
        let mut chunk = Chunk::usage(usage);
        let mut body = self.usage_body.clone()?;
        let mut details: RawObject = body.read("usage").ok().flatten()?;
        details.set("prompt_tokens", raw_or_null(&usage.prompt_tokens));
        details.set("completion_tokens", raw_or_null(&usage.completion_tokens));
        details.set("total_tokens", raw_or_null(&usage.total_tokens));
        body.set("usage", details.to_raw());
        body.set("choices", raw_or_null::<[(); 0]>(&[]));
        chunk.body = body;
        Some(chunk)
    }

    /// Whether a finish reason was seen for every choice that produced output; false after an error.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.failed && self.choices.values().all(|state| state.finished || !state.has_output)
    }

    /// The shared identity.
    #[must_use]
    pub fn identity(&self) -> &StreamIdentity {
        &self.identity
    }

    /// Takes the usage off the chunk; whether there was one.
    fn hold_usage(&mut self, chunk: &mut Chunk) -> bool {
        let body = chunk.usage.is_some().then(|| chunk.body.clone());
        chunk.body.remove("usage");
        let Some(usage) = chunk.usage.take() else {
            return false;
        };
        if self.usage.is_none() || usage.total_tokens > 0 {
            self.usage = Some(usage);
            self.usage_body = body;
        }
        true
    }

    /// Mends every choice; whether any is left.
    fn mend_choices(&mut self, chunk: &mut Chunk) -> bool {
        let shapes = std::mem::take(&mut chunk.shapes);
        let edits: SmallVec<[Edit; 2]> = chunk
            .choices
            .iter_mut()
            .zip(shapes)
            .map(|(choice, shape)| self.choices.entry(choice.index).or_default().mend(choice, shape))
            .collect();
        if edits.iter().any(|edit| !edit.is_nothing()) {
            write_choices(chunk, &edits);
            let mut edits = edits.iter();
            chunk.choices.retain(|_| edits.next().is_none_or(|edit| !edit.drop));
        }
        // Whoever mends the chunk again finds it as the API would write it.
        chunk.shapes = chunk.choices.iter().map(|_| Shape { role: false, ..Shape::OWN }).collect();
        !chunk.choices.is_empty()
    }
}

/// What to write over in one choice.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Edit {
    drop: bool,
    index: bool,
    delta: bool,
    role: Option<RoleEdit>,
    content: bool,
    tools: bool,
    reason: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoleEdit {
    Add,
    Remove,
}

impl Edit {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }

    fn touches_delta(self) -> bool {
        self.delta || self.role.is_some() || self.content || self.tools
    }
}

impl ChoiceState {
    /// Mends the view of a choice, and says which of its fields must be written over from that view.
    fn mend(&mut self, choice: &mut ChunkChoice, shape: Shape) -> Edit {
        let has_output = choice.has_output();
        if self.finished && !has_output && choice.logprobs.is_none() {
            return Edit { drop: true, ..Edit::default() };
        }
        let mut reason = shape.odd_reason;
        if self.finished && choice.finish_reason.take().is_some() {
            reason = true;
        }
        let role = match (self.opened, shape.role) {
            (false, false) => Some(RoleEdit::Add),
            (true, true) => Some(RoleEdit::Remove),
            _ => None,
        };
        let tools = self.number(&mut choice.tool_calls) || shape.bare_arguments;
        self.opened = true;
        self.has_output |= has_output;
        self.finished |= choice.finish_reason.is_some();
        Edit {
            drop: false,
            index: !shape.index,
            delta: !shape.delta,
            role,
            content: shape.parts,
            tools,
            reason,
        }
    }

    /// Numbers tool calls; whether anything had to change. An id or a name that was sent before is taken off, for
    /// clients append what they get.
    fn number(&mut self, parts: &mut [ToolCallDelta]) -> bool {
        let mut changed = false;
        for part in parts {
            let placed = self.tools.place(part);
            let repeats_id = !placed.new_id && part.id.take().is_some();
            let repeats_name = !placed.new_name && part.name.take().is_some();
            let moved = part.index.replace(placed.index) != Some(placed.index);
            changed |= repeats_id || repeats_name || moved;
        }
        changed
    }
}

/// Whether a chunk with an empty list of choices carries anything besides what every chunk does (case A11). What has no
/// list at all is not a chunk, but some ping of the backend's.
fn is_report(body: &RawObject) -> bool {
    const ENVELOPE: &[&str] =
        &["id", "object", "created", "model", "choices", "system_fingerprint", "service_tier", "obfuscation"];
    body.get_set("choices").is_some() && body.iter().any(|(key, _)| !ENVELOPE.contains(&key))
}

fn inferred_finish(index: u32, reason: &str, stamp: &Stamp) -> Chunk {
    let mut chunk = Chunk::finish(reason);
    for choice in &mut chunk.choices {
        choice.index = index;
    }
    let choices = serde_json::json!([
        {"index": index, "delta": {}, "finish_reason": reason, "finish_reason_inferred": true}
    ]);
    chunk.body.set("choices", raw_or_null(&choices));
    stamp.put(&mut chunk.body);
    chunk
}

fn write_choices(chunk: &mut Chunk, edits: &[Edit]) {
    let Some(sent) = chunk.body.get("choices").and_then(|raw| elements(raw)) else {
        return;
    };
    let written: Vec<Raw> = sent
        .into_iter()
        .zip(&chunk.choices)
        .zip(edits)
        .filter(|(_, edit)| !edit.drop)
        .map(|((raw, choice), edit)| written_choice(raw, choice, *edit).unwrap_or_else(|| Raw::checked(raw)))
        .collect();
    chunk.body.set("choices", list_of(written.iter().map(Raw::get)));
}

/// The choice with the edited fields; `None` when it needs no edit.
fn written_choice(raw: &str, choice: &ChunkChoice, edit: Edit) -> Option<Raw> {
    if edit.is_nothing() {
        return None;
    }
    let mut object: RawObject = serde_json::from_str(raw).ok()?;
    if edit.index {
        object.set("index", raw_or_null(&choice.index));
    }
    if edit.touches_delta() {
        let mut delta: RawObject = object.read("delta").ok().flatten().unwrap_or_default();
        write_delta(&mut delta, choice, edit);
        object.set("delta", delta.to_raw());
    }
    if edit.reason {
        object.set("finish_reason", raw_or_null(&choice.finish_reason));
    }
    Some(object.to_raw())
}

fn write_delta(delta: &mut RawObject, choice: &ChunkChoice, edit: Edit) {
    match edit.role {
        Some(RoleEdit::Add) => delta.set("role", raw_or_null("assistant")),
        Some(RoleEdit::Remove) => drop(delta.remove("role")),
        None => {}
    }
    if edit.content {
        delta.set("content", raw_or_null(&choice.content));
    }
    if edit.tools
        && let Some(calls) = delta.get("tool_calls").cloned()
        && let Some(sent) = elements(&calls)
    {
        let written: Vec<Raw> =
            sent.into_iter().zip(&choice.tool_calls).map(|(raw, part)| written_call(raw, part)).collect();
        delta.set("tool_calls", list_of(written.iter().map(Raw::get)));
    }
}

fn written_call(raw: &str, part: &ToolCallDelta) -> Raw {
    let Ok(mut call) = serde_json::from_str::<RawObject>(raw) else {
        return Raw::checked(raw);
    };
    call.set("index", raw_or_null(&part.index));
    if part.id.is_none() {
        call.remove("id");
    }
    if let Ok(Some(mut function)) = call.read::<RawObject>("function") {
        if part.name.is_none() {
            function.remove("name");
        }
        if function.get_set("arguments").is_some_and(|raw| !raw.starts_with('"')) {
            function.set("arguments", raw_or_null(&part.arguments));
        }
        call.set("function", function.to_raw());
    }
    call.to_raw()
}
