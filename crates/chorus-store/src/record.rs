//! What is kept of one request.
//!
//! The structs have no place for headers, credentials, addresses or a backend's raw text; prompts and answers only in
//! [`Content`], which is absent unless the operator asked for it.
//!
//! **Invariant:** a record of an older version reads: every field but the identifying ones has a default.

use chorus_wire::Usage;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Name of a run: `run_` and 32 hexadecimal digits, sortable by the time of creation to the millisecond.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new id of now. Within a process each one sorts after the one before.
    ///
    /// Source: RFC 9562 §5.7 (UUID version 7).
    #[must_use]
    pub fn new() -> Self {
        let mut digits = uuid::Uuid::encode_buffer();
        let mut text = String::with_capacity(36);
        text.push_str("run_");
        text.push_str(uuid::Uuid::now_v7().simple().encode_lower(&mut digits));
        Self(text)
    }

    /// Reads an id that a person or a client gave; `None` when it cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("run_")?;
        let fits =
            digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One request: what was asked for, what was found and decided, who was called, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// Milliseconds since 1970.
    pub started_at_ms: u64,
    /// From the first byte read to the last byte written, in milliseconds.
    pub duration_ms: u64,
    /// Live traffic, or a dry run that called no model.
    pub purpose: Purpose,
    /// The model name that the client sent.
    pub requested_model: SmolStr,
    /// The recipe that served it.
    pub recipe: Option<SmolStr>,
    /// The decision that won.
    pub decision: Option<SmolStr>,
    /// Its algorithm, such as `static` or `fusion`.
    pub algorithm: Option<SmolStr>,
    /// How the answer came about, such as `direct`, `auto`, `fusion` or `fast_response`.
    pub path: Option<SmolStr>,
    /// Logical models that had a part in the answer.
    pub models: Vec<SmolStr>,
    /// Digest of the configuration that was served.
    pub spec_digest: SmolStr,
    /// Identity of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<SmolStr>,
    /// Digest of the binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<SmolStr>,
    /// Digest of the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<SmolStr>,
    /// The operating point that the request named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operating_point: Option<SmolStr>,
    /// Whether the client asked for a stream.
    pub streaming: bool,
    /// How it ended.
    pub status: RunStatus,
    /// Code of the error (a word, not an HTTP status), when it failed.
    pub error_code: Option<SmolStr>,
    /// Signals that were looked at.
    pub signals: Vec<SignalRecord>,
    /// How long each family of signals took, in microseconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signals_us: BTreeMap<SmolStr, u64>,
    /// Projections that were computed.
    pub projections: Vec<ProjectionRecord>,
    /// Why the decision won.
    pub proof: Vec<Proof>,
    /// Every call, also failed and cancelled ones.
    pub calls: Vec<CallRecord>,
    /// All calls together.
    pub usage: Usage,
    /// All calls together, in millionths of a dollar.
    pub cost_micro_usd: u64,
    /// Constraints that were checked before and after.
    pub checks: Vec<CheckRecord>,
    /// What was given up on the way, such as `judge_unparsed`; empty for an undegraded answer.
    pub degraded: Vec<String>,
    /// Prompt and answer, only where the operator asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// What else an algorithm keeps, such as `fusion`'s trace, by name; written by the engine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub traces: BTreeMap<String, serde_json::Value>,
}

impl Default for RunRecord {
    fn default() -> Self {
        Self::of(RunId::new())
    }
}

impl RunRecord {
    /// A record of that name with nothing in it yet.
    #[must_use]
    pub fn of(id: RunId) -> Self {
        Self {
            id,
            started_at_ms: 0,
            duration_ms: 0,
            purpose: Purpose::Live,
            requested_model: SmolStr::default(),
            recipe: None,
            decision: None,
            algorithm: None,
            path: None,
            models: Vec::new(),
            spec_digest: SmolStr::default(),
            bundle: None,
            binding: None,
            lock: None,
            operating_point: None,
            streaming: false,
            status: RunStatus::Ok,
            error_code: None,
            signals: Vec::new(),
            signals_us: BTreeMap::new(),
            projections: Vec::new(),
            proof: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            cost_micro_usd: 0,
            checks: Vec::new(),
            degraded: Vec::new(),
            content: None,
            traces: BTreeMap::new(),
        }
    }
}

/// What a run was for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A client waited for the answer.
    #[default]
    Live,
    /// Signals and decision only; no model was called.
    DryRun,
    /// A copy of a live request, shown to a candidate; its answer reached nobody, and its cost is nobody's but the operator's.
    Shadow,
}

/// How a run ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// With an answer, degraded or not.
    #[default]
    Ok,
    /// With an error.
    Failed,
    /// The client left.
    Cancelled,
}

impl RunStatus {
    /// The word that is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One signal.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalRecord {
    /// `type:name`, such as `domain:research`.
    pub key: SmolStr,
    /// What was found.
    pub state: SignalState,
    /// Why it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<SmolStr>,
    /// How sure, in 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The raw value, in the signal's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<f64>,
}

/// What a signal found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalState {
    /// It holds.
    Matched,
    /// It does not hold.
    Unmatched,
    /// It could not be told.
    #[default]
    Absent,
}

/// One projection.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectionRecord {
    /// Its name.
    pub name: String,
    /// Its score, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The output or member that it chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
}

/// What became of one decision that was looked at.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proof {
    /// The decision.
    pub decision: SmolStr,
    /// `true`, `false` or `unknown`.
    pub verdict: SmolStr,
    /// Why, in a few words.
    pub because: String,
}

/// One call to one model.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallRecord {
    /// What it was for: `direct`, `panel`, `judge`, `synthesis`.
    pub role: SmolStr,
    /// The logical model.
    pub model: SmolStr,
    /// The backend's name within the model; never its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<SmolStr>,
    /// Why it was made, where it is not the first of its call: `retry: …`, `fallback: …`, `hedge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How it ended.
    pub status: CallStatus,
    /// Tokens, reported or estimated.
    pub usage: Usage,
    /// In millionths of a dollar.
    pub cost_micro_usd: u64,
    /// When it began, in milliseconds since the run did.
    pub began_ms: u64,
    /// To the end of the answer, in milliseconds.
    pub latency_ms: u64,
    /// To the first output, in milliseconds; streams only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Code of its fault, when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SmolStr>,
}

/// How a call ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// With a usable answer.
    #[default]
    Ok,
    /// With a fault.
    Failed,
    /// Nobody waited for it any more.
    Cancelled,
}

/// One constraint that was checked.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckRecord {
    /// Its name, such as `context_window`.
    pub name: SmolStr,
    /// Whether it held.
    pub held: bool,
    /// What it removed or found, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Prompt and answer.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Text of the last user message.
    pub prompt: String,
    /// Text of the answer.
    pub answer: String,
    /// The request as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body: Option<Excerpt>,
    /// The answer as it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_body: Option<Excerpt>,
    /// Calls of tools and their results, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_steps: Vec<ToolStep>,
    /// Steps that a bound left out, the oldest ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_tool_steps: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The beginning of a text.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Excerpt {
    /// The text, cut at the end of a character.
    pub text: String,
    /// Whether there is more of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl Excerpt {
    /// At most so many bytes of a text.
    #[must_use]
    pub fn of(text: &str, most: usize) -> Self {
        let mut end = text.len().min(most);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { text: text.get(..end).unwrap_or_default().to_owned(), truncated: end < text.len() }
    }
}

/// A call of a tool, or its result.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolStep {
    /// `call` or `result`.
    pub kind: String,
    /// The tool; empty where a result does not say.
    pub tool: String,
    /// The call's id.
    pub call_id: String,
    /// Arguments, or output.
    pub text: Excerpt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation() {
        let ids: Vec<RunId> = (0..1000).map(|_| RunId::new()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| RunId::parse(id.as_str()).as_ref() == Some(id)));
        for not in ["", "run_", "run_12", "RUN_0", "run_zz3456789012345678901234567890ab", "x' OR 1=1"] {
            assert_eq!(RunId::parse(not), None, "{not}");
        }
    }

    #[test]
    fn an_excerpt_ends_with_a_whole_character() {
        let of = |most| Excerpt::of("zażółć", most);
        assert_eq!((of(3).text.as_str(), of(3).truncated), ("za", true));
        assert_eq!((of(100).text.as_str(), of(100).truncated), ("zażółć", false));
    }

    #[test]
    fn a_record_with_little_in_it_reads() {
        let run: RunRecord =
            serde_json::from_str(r#"{"id":"run_1","calls":[{"model":"m"}],"later":1}"#).unwrap();
        assert_eq!((run.id.as_str(), run.calls[0].model.as_str()), ("run_1", "m"));
        assert_eq!(run.content, None);
        assert!(!serde_json::to_string(&run).unwrap().contains("\"content\""));
    }
}
