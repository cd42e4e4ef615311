//! Anthropic Messages: the request translated, its answer and its events translated back.
//!
//! What the API has no words for is a fault where the answer would be another one without it (`n`, `logprobs`, audio,
//! `json_object`), and left out where it only tunes (`seed`, penalties, `logit_bias`). The page is
//! `docs/upstreams/anthropic.md`. Source: Anthropic's API reference, version 2023-06-01.
//!
//! **Invariant:** the words of the prompt and of the answer are never changed, only moved.

mod fields;
mod request;
mod stream;
mod turns;
mod whole;

pub(crate) use request::sent;
pub(crate) use stream::Events;
pub(crate) use whole::whole;

use chorus_wire::{ErrorBody, RawObject};
use serde_json::{Value, json};

/// The version of the API whose shapes these are; a deployment's `extra_headers` may name another.
pub(crate) const VERSION: &str = "2023-06-01";

/// Our word for a stop reason; the others are passed on as written.
fn finish_reason(stop: &str) -> &str {
    match stop {
        "end_turn" | "stop_sequence" => "stop",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        other => other,
    }
}

/// The API counts what its prompt cache gave and took apart from `input_tokens`; we count it within the prompt.
fn usage_of(usage: &Value) -> Value {
    let number = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or(0);
    let (read, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
    let prompt = number("input_tokens") + read + written;
    let completion = number("output_tokens");
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "cache_creation_tokens": written},
    })
}

/// The error that a body or an event carries. The API names no status in it; its type stands for one.
fn error_of(body: &[u8]) -> Option<ErrorBody> {
    let object = RawObject::parse(body).ok()?;
    object.get("error")?;
    let mut error = ErrorBody::parse(body)?;
    error.code = status_of(&error.kind).map(str::to_owned);
    Some(error)
}

fn status_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "invalid_request_error" => "400",
        "authentication_error" => "401",
        "billing_error" => "402",
        "permission_error" => "403",
        "not_found_error" => "404",
        "request_too_large" => "413",
        "rate_limit_error" => "429",
        "timeout_error" => "504",
        "overloaded_error" => "529",
        "api_error" => "500",
        _ => return None,
    })
}
