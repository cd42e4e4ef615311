//! Output contracts: the final answer of any looper is read for the value that its route promises, and written in the
//! promised form. A value that the final answer lacks is taken from the majority of the members' answers.
//!
//! It knows no model and makes no call: whoever has a broken contract decides whether to ask once more. Source: contract
//! §1.6.
//!
//! **Invariant:** what is written either fulfils the contract or is marked as a violation.

mod choice;
mod form;
mod reference;
mod schema;
mod structured;

use crate::salvage::split_thinking;
use chorus_spec::{OutputContract, OutputKind, OutputSource};
use serde::Serialize;
use serde_json::Value;

pub use form::Form;
pub use schema::{FormatFault, JsonForm, MAX_SCHEMA_BYTES};

/// What a model wrote.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// Its text.
    pub content: &'a str,
    /// Its reasoning, where the backend gives it apart.
    pub reasoning: Option<&'a str>,
}

/// What a contract makes of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    /// The answer for the client.
    pub text: String,
    /// The value in it; absent where none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether the text is another one than the model wrote.
    pub repaired: bool,
    /// What is broken, in a sentence; the text is then the contract's fallback, or as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
    /// Whether the value is the members' and not the final answer's.
    pub by_majority: bool,
}

/// A value and how it is written.
struct Found {
    value: Value,
    text: String,
}

/// Applies a contract to a final answer; `candidates` are the members' answers behind it, in seat order.
#[must_use]
pub fn apply(contract: &OutputContract, answer: Written<'_>, candidates: &[Written<'_>]) -> Applied {
    let read = |written: &str| match &contract.kind {
        OutputKind::Choice(options) => choice::find(contract, options, written),
        OutputKind::StructuredJson { .. } => structured::find(contract, written),
        OutputKind::ReferenceSelection { id_format, .. } => {
            reference::find(contract, *id_format, written, candidates)
        }
    };
    let own = contract.extract.sources.iter().find_map(|source| match source {
        OutputSource::Content => read(split_thinking(answer.content).1),
        OutputSource::ReasoningContent => reasoning(&answer).and_then(read),
        OutputSource::CandidateResponses => None,
    });
    if let Some(found) = own {
        return fulfilled(found, answer.content, false);
    }
    // A member's answer points at nobody: only values of its own can be counted.
    let counted = !matches!(contract.kind, OutputKind::ReferenceSelection { .. });
    match counted.then(|| majority(candidates, read)).flatten() {
        Some(found) => fulfilled(found, answer.content, true),
        None => broken(contract, answer.content),
    }
}

fn reasoning<'a>(written: &Written<'a>) -> Option<&'a str> {
    written.reasoning.or_else(|| split_thinking(written.content).0)
}

fn fulfilled(found: Found, content: &str, by_majority: bool) -> Applied {
    let repaired = found.text != content;
    Applied { text: found.text, value: Some(found.value), repaired, violated: None, by_majority }
}

/// The value that most candidates give; of equally frequent ones the first.
fn majority(candidates: &[Written<'_>], read: impl Fn(&str) -> Option<Found>) -> Option<Found> {
    let mut tally: Vec<(Found, usize)> = Vec::new();
    for found in candidates.iter().filter_map(|candidate| read(split_thinking(candidate.content).1)) {
        match tally.iter_mut().find(|(known, _)| known.value == found.value) {
            Some((_, votes)) => *votes += 1,
            None => tally.push((found, 1)),
        }
    }
    let most = tally.iter().map(|(_, votes)| *votes).max()?;
    tally.into_iter().find(|(_, votes)| *votes == most).map(|(found, _)| found)
}

fn broken(contract: &OutputContract, content: &str) -> Applied {
    let expected = match &contract.kind {
        OutputKind::Choice(options) => format!("one of {}", options.join(", ")),
        OutputKind::StructuredJson { schema_ref } => format!("a JSON object of the form `{schema_ref}`"),
        OutputKind::ReferenceSelection { .. } => "the number of a candidate".to_owned(),
    };
    let text = contract.fallback.clone().unwrap_or_else(|| content.to_owned());
    Applied {
        repaired: text != content,
        text,
        value: None,
        violated: Some(format!("the answer is not {expected}")),
        by_majority: false,
    }
}
