//! `response_format`: a JSON object, or JSON by a schema of the client's.
//!
//! A schema is read without network and without files, and its patterns run in linear time, because it comes from
//! outside. **Invariant:** what is found is valid by the schema, exactly as it is written.

use super::{Applied, Written};
use crate::salvage::{objects, split_thinking};
use chorus_wire::ChatRequest;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Longest schema, in bytes of its JSON text.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// Most problems of an answer that are told.
const MOST_PROBLEMS: usize = 5;
/// Longest text of one problem, in characters: it may repeat the answer.
const PROBLEM_CHARS: usize = 200;

/// What `response_format` asks for.
#[derive(Clone)]
pub struct JsonForm {
    /// The schema and its text; any object where there is none.
    schema: Option<(Arc<jsonschema::Validator>, String)>,
}

impl fmt::Debug for JsonForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonForm").field("schema", &self.schema.as_ref().map(|(_, text)| text)).finish()
    }
}

/// Why a `response_format` cannot be held. The message is meant for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatFault {
    /// No schema where one is asked for.
    #[error("`response_format` is `json_schema`, and `json_schema.schema` is not an object")]
    NoSchema,
    /// A schema that is longer than any form needs.
    #[error("the schema of `response_format` has {0} bytes; at most {MAX_SCHEMA_BYTES} are read")]
    TooLong(usize),
    /// A schema that is none.
    #[error("the schema of `response_format` cannot be used: {0}")]
    Schema(String),
}

impl JsonForm {
    /// What a request asks for; `None` for text, and for a type that is not known here.
    ///
    /// # Errors
    /// [`FormatFault`].
    pub fn of(ask: &ChatRequest) -> Result<Option<Self>, FormatFault> {
        let Ok(Some(format)) = ask.body().read::<Value>("response_format") else { return Ok(None) };
        match format.get("type").and_then(Value::as_str) {
            Some("json_object") => Ok(Some(Self { schema: None })),
            Some("json_schema") => {
                let schema = format.pointer("/json_schema/schema").filter(|schema| schema.is_object());
                Self::by(schema.ok_or(FormatFault::NoSchema)?).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn by(schema: &Value) -> Result<Self, FormatFault> {
        let text = schema.to_string();
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(FormatFault::TooLong(text.len()));
        }
        let validator = jsonschema::options()
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .with_retriever(Nowhere)
            .build(schema)
            .map_err(|fault| FormatFault::Schema(told(&fault.to_string())))?;
        Ok(Self { schema: Some((Arc::new(validator), text)) })
    }

    /// The form in words, for whoever is asked to keep to it.
    pub(super) fn described(&self) -> String {
        match &self.schema {
            Some((_, text)) => {
                format!("JSON that is valid by this JSON schema, without a code fence:\n{text}")
            }
            None => "one JSON object, without a code fence".to_owned(),
        }
    }

    /// The answer as it is where it is valid; else the last valid object in it, written alone.
    pub(super) fn apply(&self, answer: Written<'_>) -> Applied {
        let said = split_thinking(answer.content).1;
        let whole = serde_json::from_str::<Value>(said).ok();
        if let Some(value) = whole.as_ref().filter(|value| self.problems(value).is_none()) {
            let (text, value) = (said.to_owned(), Some(value.clone()));
            let repaired = text != answer.content.trim();
            return Applied { text, value, repaired, violated: None, by_majority: false };
        }
        let valid = |object: &serde_json::Map<String, Value>| {
            let value = Value::Object(object.clone());
            self.problems(&value).is_none().then_some(value)
        };
        if let Some(value) = objects(said, valid).pop() {
            let text = value.to_string();
            return Applied { text, value: Some(value), repaired: true, violated: None, by_majority: false };
        }
        let problem = whole.as_ref().map_or_else(
            || "the answer is not JSON".to_owned(),
            |value| self.problems(value).unwrap_or_default(),
        );
        let violated = Some(problem);
        Applied {
            text: answer.content.to_owned(),
            value: None,
            repaired: false,
            violated,
            by_majority: false,
        }
    }

    /// What is wrong with a value; `None` when it is valid.
    fn problems(&self, value: &Value) -> Option<String> {
        let Some((validator, _)) = &self.schema else {
            return (!value.is_object()).then(|| "the answer is JSON, but not an object".to_owned());
        };
        let mut faults = validator.iter_errors(value).take(MOST_PROBLEMS).map(|fault| {
            let place = fault.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            format!("at {place}: {}", told(&fault.to_string()))
        });
        let first = faults.next()?;
        Some(faults.fold(first, |all, next| format!("{all}; {next}")))
    }
}

/// A schema of a client's reaches for nothing outside itself.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        _uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("a reference to another document is not followed".into())
    }
}

fn told(problem: &str) -> String {
    match problem.char_indices().nth(PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", problem.get(..end).unwrap_or_default()),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;
    use serde_json::json;

    fn form(format: &Value) -> Result<Option<JsonForm>, FormatFault> {
        let body =
            json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "response_format": format});
        JsonForm::of(&ChatRequest::parse(body.to_string().as_bytes(), &RequestLimits::default()).unwrap())
    }

    fn by(schema: &Value) -> Result<Option<JsonForm>, FormatFault> {
        form(&json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}}))
    }

    fn applied(form: &JsonForm, content: &str) -> Applied {
        form.apply(Written { content, reasoning: None })
    }

    #[test]
    fn only_json_formats_are_forms() {
        for format in [json!({"type": "text"}), json!(null), json!({"type": "grammar"})] {
            assert!(form(&format).unwrap().is_none(), "{format}");
        }
        assert!(form(&json!({"type": "json_object"})).unwrap().is_some());
    }

    #[test]
    fn schemas_that_cannot_be_used_are_refused() {
        assert_eq!(form(&json!({"type": "json_schema"})).unwrap_err(), FormatFault::NoSchema);
        for schema in [json!({"type": "objekt"}), json!({"$ref": "http://example.com/x.json"})] {
            assert!(matches!(by(&schema), Err(FormatFault::Schema(_))), "{schema}");
        }
        let long = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
        assert!(matches!(by(&long), Err(FormatFault::TooLong(_))));
    }

    #[test]
    fn b06_a_valid_object_is_found_within_fences_and_prose() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let form = by(&schema).unwrap().unwrap();
        for (content, text, repaired) in [
            ("{\"n\": 1}", "{\"n\": 1}", false),
            (" {\"n\": 1}\n", "{\"n\": 1}", false),
            ("```json\n{\"n\": 1}\n```", "{\"n\":1}", true),
            ("<think>{\"n\": 9}</think>{\"n\": 1}", "{\"n\": 1}", true),
            ("First {\"n\": \"x\"}, no: {\"n\": 2}.", "{\"n\":2}", true),
        ] {
            let it = applied(&form, content);
            assert_eq!((it.text.as_str(), it.repaired, it.violated), (text, repaired, None), "{content}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_bounded() {
        let form = by(&json!({"type": "object", "required": ["n"]})).unwrap().unwrap();
        assert_eq!(applied(&form, "plain").violated.unwrap(), "the answer is not JSON");
        assert!(applied(&form, "{}").violated.unwrap().contains("\"n\" is a required property"));
        let form = by(&json!({"type": "object", "properties": {"n": {"const": 1}}})).unwrap().unwrap();
        let long = applied(&form, &json!({"n": "x".repeat(9000)}).to_string()).violated.unwrap();
        assert!(long.chars().count() < 300 && long.starts_with("at /n: "), "{long}");
        let object = form_of_any_object();
        assert_eq!(applied(&object, "[1]").violated.unwrap(), "the answer is JSON, but not an object");
        assert_eq!(applied(&object, "{\"a\":1}").violated, None);
    }

    fn form_of_any_object() -> JsonForm {
        form(&json!({"type": "json_object"})).unwrap().unwrap()
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let form =
            by(&json!({"type": "object", "properties": {"n": {"pattern": "^(a+)+$"}}})).unwrap().unwrap();
        let content = json!({"n": format!("{}!", "a".repeat(50_000))}).to_string();
        assert!(applied(&form, &content).violated.is_some());
    }
}
