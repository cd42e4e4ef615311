//! What a decision carries beside its candidates: output contracts, hints for the client, annotations.
//!
//! It knows no model. **Invariant:** a contract that is read can be fulfilled: it names a form, and every
//! part of it belongs to that form.

use super::cursor::Cursor;
use super::yaml::{Kind, Node};
use crate::diagnostic::code;
use crate::{
    AdaptationMode, Adaptations, CandidateSet, OutputContract, OutputExtract, OutputKind, OutputRender,
    OutputSource, ReferenceFormat, Retention,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Schemas that a structured contract can name (contract §1.6).
const SCHEMAS: [&str; 1] = ["terminal_action_v1"];
/// Where the value stands in a rendered template.
const CHOICE: &str = "{{choice}}";
/// Most annotations of a decision (contract §1.6).
const ANNOTATIONS_MOST: usize = 32;
/// Most bytes of a decision's annotations as JSON (contract §1.6).
const ANNOTATION_BYTES_MOST: usize = 4096;

/// Reads `output_contract_spec`.
pub(super) fn contract(decision: &Cursor<'_>) -> Option<OutputContract> {
    let at = decision.get("output_contract_spec")?;
    let (kind, render, extract) = (kind(&at), render(&at), extract(&at));
    let (violation, normalize) = (at.get("on_violation"), at.get("normalize"));
    let defaults = normalize.as_ref().and_then(|it| it.get("defaults"));
    let written = defaults.iter().flat_map(Cursor::entries);
    let default = |(name, _, value): (&str, _, Cursor<'_>)| Some((name.to_owned(), value.text()?));
    let dereference = at.items("postprocess").iter().any(|step| {
        step.required("type").is_some()
            && step.word("type", &[("dereference_selected_reference", true)]).unwrap_or(false)
    });
    Some(OutputContract {
        kind: kind?,
        render,
        extract,
        field_order: normalize.as_ref().map(|it| it.strings("field_order")).unwrap_or_default(),
        defaults: written.filter_map(default).collect(),
        repair: violation.as_ref().and_then(|it| it.boolean("repair")).unwrap_or(false),
        fallback: violation.and_then(|it| it.string("fallback")),
        dereference,
    })
}

fn kind(at: &Cursor<'_>) -> Option<OutputKind> {
    const KINDS: [(&str, u8); 3] = [("choice", 0), ("structured_json", 1), ("reference_selection", 2)];
    const FORMATS: [(&str, ReferenceFormat); 2] =
        [("index", ReferenceFormat::Index), ("reference_number", ReferenceFormat::ReferenceNumber)];
    at.needed("type")?;
    match at.word("type", &KINDS)? {
        0 => {
            let values = at.needed("choice_set")?.some_strings("values");
            if values.len() == 1 {
                at.error(code::BAD_VALUE, "a choice has at least two values");
            }
            Some(OutputKind::Choice(values))
        }
        1 => {
            let schema = at.needed("json_schema")?;
            schema.required("schema_ref")?;
            let schema_ref = schema.word("schema_ref", &SCHEMAS.map(|name| (name, name)))?.to_owned();
            Some(OutputKind::StructuredJson { schema_ref })
        }
        _ => {
            let reference = at.needed("reference")?;
            let id_format = reference.word("id_format", &FORMATS).unwrap_or_default();
            Some(OutputKind::ReferenceSelection { source: reference.required("source")?, id_format })
        }
    }
}

fn render(at: &Cursor<'_>) -> Option<OutputRender> {
    let render = at.get("render")?;
    if !render.word("mode", &[("value", false), ("template", true)])? {
        return Some(OutputRender::Value);
    }
    let template = render.required("template")?;
    if !template.contains(CHOICE) {
        render.warn(code::TEMPLATE_PLACEHOLDER, format!("`template` lacks `{CHOICE}`"));
    }
    Some(OutputRender::Template(template))
}

fn extract(at: &Cursor<'_>) -> OutputExtract {
    const SOURCES: [(&str, OutputSource); 3] = [
        ("content", OutputSource::Content),
        ("reasoning_content", OutputSource::ReasoningContent),
        ("candidate_responses", OutputSource::CandidateResponses),
    ];
    let Some(extract) = at.get("extract") else {
        return OutputExtract::default();
    };
    let sources: Vec<OutputSource> =
        extract.items("sources").iter().filter_map(|source| source.one_of(&SOURCES)).collect();
    OutputExtract {
        json_object: extract.word("mode", &[("exact", false), ("json_object", true)]).unwrap_or(false),
        sources: if sources.is_empty() { OutputExtract::default().sources } else { sources },
    }
}

/// Reads `emits`.
pub(super) fn emits(decision: &Cursor<'_>) -> Vec<Retention> {
    let read = |at: &Cursor<'_>| {
        at.needed("kind")?;
        at.word("kind", &[("retention", ())])?;
        let it = at.needed("retention")?;
        Some(Retention {
            drop: it.boolean("drop"),
            ttl_turns: it.integer_in("ttl_turns", 1, i64::MAX).and_then(|turns| u64::try_from(turns).ok()),
            keep_current_model: it.boolean("keep_current_model"),
            prefer_prefix_retention: it.boolean("prefer_prefix_retention"),
        })
    };
    decision.items("emits").iter().filter_map(read).collect()
}

/// Reads `adaptations`.
pub(super) fn adaptations(decision: &Cursor<'_>) -> Option<Adaptations> {
    const MODES: [(&str, AdaptationMode); 3] = [
        ("apply", AdaptationMode::Apply),
        ("observe", AdaptationMode::Observe),
        ("bypass", AdaptationMode::Bypass),
    ];
    let at = decision.get("adaptations")?;
    let (adaptation, protection) = (at.get("adaptation"), at.get("protection"));
    let weight = |key: &str| protection.as_ref().and_then(|it| it.float_in(key, 0.0, f64::MAX));
    Some(Adaptations {
        mode: at.word("mode", &MODES).unwrap_or_default(),
        adaptation: adaptation.as_ref().and_then(|it| it.word("mode", &MODES)),
        candidates: adaptation.as_ref().and_then(|it| it.word("candidate_set", &CandidateSet::WORDS)),
        protection: protection.as_ref().and_then(|it| it.word("mode", &MODES)),
        stability_weight: weight("stability_weight"),
        switch_margin: weight("switch_margin"),
    })
}

/// Reads `annotations`.
pub(super) fn annotations(decision: &Cursor<'_>) -> BTreeMap<String, Value> {
    let Some(at) = decision.get("annotations") else {
        return BTreeMap::new();
    };
    if !matches!(at.node().kind, Kind::Map(_)) {
        at.error(code::WRONG_TYPE, format!("expected a mapping, found {}", at.node().shape()));
    }
    let all: BTreeMap<String, Value> =
        at.entries().into_iter().map(|(name, _, value)| (name.to_owned(), json(value.node()))).collect();
    if all.len() > ANNOTATIONS_MOST {
        let message = format!("{} annotations; {ANNOTATIONS_MOST} are the most", all.len());
        at.error(code::BAD_RANGE, message);
    }
    let bytes = serde_json::to_vec(&all).map(|json| json.len()).unwrap_or_default();
    if bytes > ANNOTATION_BYTES_MOST {
        let message = format!("the annotations have {bytes} bytes; {ANNOTATION_BYTES_MOST} are the most");
        at.error(code::BAD_RANGE, message);
    }
    all
}

/// A value as JSON: only bare scalars can be null, a truth value or a number.
fn json(node: &Node) -> Value {
    match &node.kind {
        Kind::Map(entries) => {
            Value::Object(entries.iter().map(|e| (e.key.clone(), json(&e.value))).collect::<Map<_, _>>())
        }
        Kind::Seq(items) => Value::Array(items.iter().map(json).collect()),
        Kind::Scalar { .. } if node.is_null() => Value::Null,
        Kind::Scalar { text, plain } => {
            let bare =
                || serde_json::from_str::<Value>(text).ok().filter(|v| v.is_boolean() || v.is_number());
            plain.then(bare).flatten().unwrap_or_else(|| Value::String(text.clone()))
        }
    }
}
