//! A pointer at one of the candidates' answers.

use super::{Found, Written};
use crate::extract::{final_answer, last_number};
use crate::salvage::{objects, split_thinking};
use chorus_spec::{OutputContract, ReferenceFormat};
use serde_json::Value;

/// The pointer in a text, if there is such a candidate; dereferenced where the contract says so.
pub(super) fn find(
    contract: &OutputContract,
    format: ReferenceFormat,
    text: &str,
    candidates: &[Written<'_>],
) -> Option<Found> {
    let number = if contract.extract.json_object {
        objects(text, |object| only_number(object.values())).pop()?
    } else {
        let answer = final_answer(text);
        last_number(answer.as_deref().unwrap_or(text))?.parse().ok()?
    };
    let first = match format {
        ReferenceFormat::Index => 0,
        ReferenceFormat::ReferenceNumber => 1,
    };
    let candidate = candidates.get(usize::try_from(number).ok()?.checked_sub(first)?)?;
    let text = if contract.dereference {
        split_thinking(candidate.content).1.to_owned()
    } else {
        number.to_string()
    };
    Some(Found { value: Value::from(number), text })
}

/// The only whole number among the values.
fn only_number<'a>(values: impl Iterator<Item = &'a Value>) -> Option<u64> {
    let mut numbers = values.filter_map(|value| match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    });
    numbers.next().filter(|_| numbers.next().is_none())
}
