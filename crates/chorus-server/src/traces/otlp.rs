//! A run record as spans, and spans as a message to a collector.
//!
//! Source: OpenTelemetry protocol 1.x, JSON encoding (ids in hex, 64-bit numbers as text); semantic conventions of
//! generative AI for the names of attributes. What has no name there begins with `chorus.`.
//!
//! A run is a span of kind *server*; below it the decision, below that one span a family of signals; and one of kind *client*
//! a call. Signals' spans are as long as was measured; they stand one after another, because a record does not say which of
//! them ran at once.

use chorus_engine::TraceParent;
use chorus_engine::trace_context::{call_span_id, span_id, trace_id};
use chorus_spec::TraceExport;
use chorus_store::{CallRecord, CallStatus, RunRecord, RunStatus};
use serde::Serialize;
use serde_json::{Value, json};

const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const FAILED: u8 = 2;

/// One span.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    parent_span_id: String,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    status: Value,
}

/// All spans of a run.
pub(super) fn spans(run: &RunRecord, parent: Option<&TraceParent>) -> Vec<Span> {
    let id = run.id.as_str();
    let trace = trace_id(id, parent);
    let at = |us: u64| Nanos(run.started_at_ms * 1_000_000 + us * 1_000);
    let part = |span_id: String, below: &str, name: String, kind: u8, from: Nanos, to: Nanos| Span {
        trace_id: trace.clone(),
        span_id,
        parent_span_id: below.to_owned(),
        name,
        kind,
        start_time_unix_nano: from.0.to_string(),
        end_time_unix_nano: to.0.to_string(),
        attributes: Vec::new(),
        status: json!({}),
    };
    let (root_id, decision_id) = (span_id(id, "run"), span_id(id, "decide"));
    let above = parent.map(|parent| parent.span.clone()).unwrap_or_default();
    let end = at(run.duration_ms * 1_000);
    let name = |model: &str| format!("{} {model}", operation(run));
    let mut root = part(root_id.clone(), &above, name(&run.requested_model), SERVER, at(0), end);
    (root.attributes, root.status) =
        (run_attributes(run), status(run.error_code.as_deref(), run.status == RunStatus::Ok));
    let all_us: u64 = run.signals_us.values().sum();
    let mut decision = part(decision_id.clone(), &root_id, "decide".to_owned(), INTERNAL, at(0), at(all_us));
    decision.attributes = decision_attributes(run);
    let mut spans = vec![root, decision];
    let mut from_us = 0;
    for (family, us) in &run.signals_us {
        let name = format!("signal {family}");
        spans.push(part(
            span_id(id, &name),
            &decision_id,
            name.clone(),
            INTERNAL,
            at(from_us),
            at(from_us + us),
        ));
        from_us += us;
    }
    for (number, call) in run.calls.iter().enumerate() {
        let (from, to) = (call.began_ms * 1_000, (call.began_ms + call.latency_ms) * 1_000);
        let mut span = part(call_span_id(id, number), &root_id, name(&call.model), CLIENT, at(from), at(to));
        span.attributes = call_attributes(call, operation(run));
        span.status = status(call.error.as_deref(), call.status == CallStatus::Ok);
        spans.push(span);
    }
    spans
}

/// What is asked of models. Source: OpenTelemetry's conventions for generative AI, `gen_ai.operation.name`.
fn operation(run: &RunRecord) -> &'static str {
    if run.path.as_deref() == Some("embeddings") { "embeddings" } else { "chat" }
}

/// Nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Nanos(u64);

fn status(error: Option<&str>, is_ok: bool) -> Value {
    match error {
        Some(code) => json!({"code": FAILED, "message": code}),
        None if is_ok => json!({}),
        None => json!({"code": FAILED}),
    }
}

fn run_attributes(run: &RunRecord) -> Vec<Value> {
    let mut all = vec![
        text("gen_ai.operation.name", operation(run)),
        text("gen_ai.provider.name", "chorus"),
        text("gen_ai.request.model", &run.requested_model),
        number("gen_ai.usage.input_tokens", run.usage.prompt_tokens),
        number("gen_ai.usage.output_tokens", run.usage.completion_tokens),
        text("chorus.run.id", run.id.as_str()),
        number("chorus.cost_micro_usd", run.cost_micro_usd),
        text("chorus.models", &run.models.join(",")),
    ];
    all.extend(run.path.as_ref().map(|path| text("chorus.path", path)));
    all.extend(run.error_code.as_ref().map(|code| text("error.type", code)));
    all
}

fn decision_attributes(run: &RunRecord) -> Vec<Value> {
    let named = [
        ("chorus.decision", &run.decision),
        ("chorus.algorithm", &run.algorithm),
        ("chorus.recipe", &run.recipe),
    ];
    named.into_iter().filter_map(|(key, value)| Some(text(key, value.as_ref()?))).collect()
}

fn call_attributes(call: &CallRecord, operation: &str) -> Vec<Value> {
    let mut all = vec![
        text("gen_ai.operation.name", operation),
        // A record names the backend and not whose product it is.
        text("gen_ai.provider.name", call.backend.as_deref().unwrap_or("unknown")),
        text("gen_ai.request.model", &call.model),
        number("gen_ai.usage.input_tokens", call.usage.prompt_tokens),
        number("gen_ai.usage.output_tokens", call.usage.completion_tokens),
        text("chorus.call.role", &call.role),
        number("chorus.cost_micro_usd", call.cost_micro_usd),
    ];
    all.extend(call.first_token_ms.map(|ms| number("chorus.first_token_ms", ms)));
    all.extend(call.cause.as_ref().map(|cause| text("chorus.call.cause", cause)));
    all.extend(call.error.as_ref().map(|error| text("error.type", error)));
    all
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// The message that carries these spans.
pub(super) fn message(export: &TraceExport, spans: &[Span]) -> Vec<u8> {
    let own = env!("CARGO_PKG_VERSION");
    let version = export.service_version.as_deref().unwrap_or(own);
    let mut resource = vec![text("service.name", &export.service_name), text("service.version", version)];
    resource.extend(export.environment.as_ref().map(|it| text("deployment.environment.name", it)));
    let scope = json!({"name": "chorus", "version": own});
    let message = json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}]
    }]});
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_request_is_in_a_span() {
        let content = chorus_store::Content {
            prompt: "secret".to_owned(),
            answer: "secret".to_owned(),
            ..Default::default()
        };
        let run = RunRecord { content: Some(content), ..RunRecord::default() };
        let text = serde_json::to_string(&spans(&run, None)).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }
}
