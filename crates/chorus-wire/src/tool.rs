//! Tool calls: whole ones, their parts in a stream, and which part belongs to which call.

use crate::content::{text, word};
use crate::raw::{count, elements, is_null};
use crate::scan::pick;

/// One call that an assistant asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// JSON text as the model wrote it.
    pub arguments: String,
}

/// A part of one tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// Its slot as sent; backends omit it or get it wrong.
    pub index: Option<u32>,
    /// Present on the first part.
    pub id: Option<String>,
    /// Present on the first part.
    pub name: Option<String>,
    /// Next piece of the arguments' text.
    pub arguments: String,
}

/// What is read of a function.
const FUNCTION: [&str; 2] = ["name", "arguments"];

impl ToolCallDelta {
    /// Reads a list of parts; `None` when it is not a list of objects.
    pub(crate) fn read_all(raw: &str) -> Option<Vec<Self>> {
        if is_null(raw) {
            return Some(Vec::new());
        }
        elements(raw)?.into_iter().map(Self::read).collect()
    }

    fn read(raw: &str) -> Option<Self> {
        let [index, id, function] = pick(raw, ["index", "id", "function"]).ok()?;
        let [name, given] = function.map_or(Ok([None; 2]), |raw| pick(raw, FUNCTION)).ok()?;
        Some(Self {
            index: index.and_then(count).and_then(|n| u32::try_from(n).ok()),
            id: id.and_then(word),
            name: name.and_then(word),
            arguments: given.map(arguments).unwrap_or_default(),
        })
    }
}

impl ToolCall {
    /// Reads a list of whole calls; `None` when it is not a list of objects.
    pub(crate) fn read_all(raw: &str) -> Option<Vec<Self>> {
        let whole = |part: ToolCallDelta| Self {
            id: part.id.unwrap_or_default(),
            name: part.name.unwrap_or_default(),
            arguments: part.arguments,
        };
        Some(ToolCallDelta::read_all(raw)?.into_iter().map(whole).collect())
    }
}

/// The API sends arguments as a string; some backends send the object itself, which is then its own text.
fn arguments(raw: &str) -> String {
    match text(raw) {
        Some(text) => text,
        None if is_null(raw) => String::new(),
        None => raw.to_owned(),
    }
}

/// Whether a list of calls has arguments that are JSON instead of its text.
pub(crate) fn has_bare_arguments(calls: &str) -> bool {
    let is_bare = |raw: &str| {
        let function = pick(raw, ["function"]).ok().and_then(|[function]| function);
        let given = function.and_then(|raw| pick(raw, FUNCTION).ok()).and_then(|[_, given]| given);
        given.is_some_and(|raw| !raw.starts_with('"'))
    };
    elements(calls).is_some_and(|all| all.into_iter().any(is_bare))
}

/// The tool calls of one choice as they grow.
#[derive(Debug, Default)]
pub(crate) struct ToolSlots {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    sent: Option<u32>,
    call: ToolCall,
}

/// Where a part went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Number of the call: 0, 1, 2 in the order of their first parts.
    pub(crate) index: u32,
    /// Whether the part is the first to name its id.
    pub(crate) new_id: bool,
    /// Whether the part is the first to name its function.
    pub(crate) new_name: bool,
}

impl ToolSlots {
    /// Finds or makes the call that a part belongs to, and appends the part to it. A new id is a new call whatever
    /// index it claims (case A01).
    pub(crate) fn place(&mut self, part: &ToolCallDelta) -> Placed {
        let at = self.find(part).unwrap_or_else(|| {
            self.slots.push(Slot { sent: part.index, call: ToolCall::default() });
            self.slots.len() - 1
        });
        let mut placed =
            Placed { index: u32::try_from(at).unwrap_or(u32::MAX), new_id: false, new_name: false };
        if let Some(Slot { call, .. }) = self.slots.get_mut(at) {
            placed.new_id = call.id.is_empty();
            placed.new_name = call.name.is_empty();
            if let (true, Some(id)) = (placed.new_id, &part.id) {
                call.id.clone_from(id);
            }
            if let (true, Some(name)) = (placed.new_name, &part.name) {
                call.name.clone_from(name);
            }
            call.arguments.push_str(&part.arguments);
        }
        placed
    }

    /// Whether no part came.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The calls.
    pub(crate) fn into_calls(self) -> Vec<ToolCall> {
        self.slots.into_iter().map(|slot| slot.call).collect()
    }

    fn find(&self, part: &ToolCallDelta) -> Option<usize> {
        match &part.id {
            Some(id) => self.slots.iter().rposition(|slot| slot.answers_to(id, part.index)),
            None => self.continued(part.index).filter(|at| !self.begins_another(*at, part)),
        }
    }

    /// The call that a part without id goes on with: the last one of its index, else the last one.
    fn continued(&self, index: Option<u32>) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        if index.is_none() {
            return Some(last);
        }
        let of_index = self.slots.iter().rposition(|slot| slot.sent == index);
        of_index.or_else(|| self.slots.get(last).is_some_and(|slot| slot.sent.is_none()).then_some(last))
    }

    /// A part without id that names a function again begins another call once the arguments so far are whole;
    /// before that it is a backend that repeats the name on every part.
    fn begins_another(&self, at: usize, part: &ToolCallDelta) -> bool {
        part.name.is_some()
            && self.slots.get(at).is_some_and(|slot| !slot.call.name.is_empty() && slot.is_whole())
    }
}

impl Slot {
    fn answers_to(&self, id: &str, index: Option<u32>) -> bool {
        let same_place = self.sent == index || self.sent.is_none() || index.is_none();
        same_place
            && (self.call.id == id || (self.call.id.is_empty() && self.sent == index && !self.is_whole()))
    }

    fn is_whole(&self) -> bool {
        let arguments = self.call.arguments.trim_end();
        arguments.ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
    }
}
