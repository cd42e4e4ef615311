//! A JSON object of a named form.

use super::Found;
use crate::salvage::objects;
use chorus_spec::{OutputContract, OutputKind};
use serde_json::{Map, Value};

/// Fields of `terminal_action_v1`, in order: what an agent at a terminal does next. Source: vLLM Semantic Router's
/// terminal agents.
const TERMINAL_ACTION: [&str; 4] = ["analysis", "plan", "commands", "task_complete"];

/// The form in words, for whoever is asked to keep to it.
pub(super) const DESCRIPTION: &str = "one JSON object with `analysis` (text), `plan` (text), `commands` (a list of objects \
     with `keystrokes` and, if need be, a number `duration`) and `task_complete` (true or false), without a code fence";

/// The last object of a text that has the form once the contract's defaults are filled in; written in the contract's
/// order of fields.
pub(super) fn find(contract: &OutputContract, text: &str) -> Option<Found> {
    let object = objects(text, |object| {
        let filled = filled(contract, object.clone());
        has_form(contract, &filled).then_some(filled)
    })
    .pop()?;
    let value = Value::Object(ordered(contract, object));
    Some(Found { text: value.to_string(), value })
}

fn filled(contract: &OutputContract, mut object: Map<String, Value>) -> Map<String, Value> {
    for (field, default) in &contract.defaults {
        if object.get(field).is_none_or(Value::is_null) {
            // A default is written as text: `false` and `[]` mean themselves where they are JSON.
            let value = serde_json::from_str(default).unwrap_or_else(|_| Value::String(default.clone()));
            object.insert(field.clone(), value);
        }
    }
    object
}

fn has_form(contract: &OutputContract, object: &Map<String, Value>) -> bool {
    let is_terminal = matches!(&contract.kind, OutputKind::StructuredJson { schema_ref } if schema_ref == "terminal_action_v1");
    let listed = contract.field_order.iter().all(|field| object.contains_key(field));
    listed && !object.is_empty() && (!is_terminal || is_terminal_action(object))
}

fn is_terminal_action(object: &Map<String, Value>) -> bool {
    let text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let command = |command: &Value| {
        let duration = command.get("duration");
        command.get("keystrokes").is_some_and(Value::is_string) && duration.is_none_or(Value::is_number)
    };
    text("analysis")
        && text("plan")
        && object
            .get("commands")
            .and_then(Value::as_array)
            .is_some_and(|commands| commands.iter().all(command))
        && object.get("task_complete").is_some_and(Value::is_boolean)
}

/// The listed fields first, the others after them as they stood.
fn ordered(contract: &OutputContract, mut object: Map<String, Value>) -> Map<String, Value> {
    let own: Vec<&str> = contract.field_order.iter().map(String::as_str).collect();
    let order = if own.is_empty() { TERMINAL_ACTION.to_vec() } else { own };
    let mut sorted = Map::new();
    for field in order {
        if let Some(value) = object.shift_remove(field) {
            sorted.insert(field.to_owned(), value);
        }
    }
    sorted.extend(object);
    sorted
}
