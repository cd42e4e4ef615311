//! A choice: one of the contract's texts.

use super::Found;
use crate::extract;
use crate::salvage::objects;
use crate::template::fill;
use chorus_spec::{OutputContract, OutputRender};
use serde_json::Value;

/// The option that a text chooses, rendered.
pub(super) fn find(contract: &OutputContract, options: &[String], text: &str) -> Option<Found> {
    let at = if contract.extract.json_object {
        objects(text, |object| chosen(object, options)).pop()?
    } else {
        extract::choice(text, options)?
    };
    let option = options.get(at)?;
    let text = match &contract.render {
        Some(OutputRender::Template(template)) => fill(template, &[("choice", option)]),
        Some(OutputRender::Value) | None => option.clone(),
    };
    Some(Found { value: Value::String(option.clone()), text })
}

/// The only option that stands as a value in an object.
fn chosen(object: &serde_json::Map<String, Value>, options: &[String]) -> Option<usize> {
    let texts: Vec<&str> = object.values().filter_map(Value::as_str).collect();
    let holds = |option: &String| texts.iter().any(|text| text.trim().eq_ignore_ascii_case(option));
    let mut found = options.iter().enumerate().filter(|(_, option)| holds(option)).map(|(at, _)| at);
    found.next().filter(|_| found.next().is_none())
}
