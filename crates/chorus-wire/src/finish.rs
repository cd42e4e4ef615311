//! Finish reasons: the words of the API, and what backends write in their place. It knows no choices and no chunks.

/// The API's word for a backend's finish reason; `None` for a reason that this table does not know, which is passed on
/// as written. Letter case does not matter.
///
/// Source: case B16; a policy stop that reads `stop` looks like a complete answer, and one that reads `error` is
/// retried for ever.
#[must_use]
pub fn canonical(reason: &str) -> Option<&'static str> {
    Some(match reason.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "stop_token" | "complete"
        | "completed" => "stop",
        "length" | "max_tokens" | "max_output" | "max_output_tokens" | "max_length" | "model_length" => {
            "length"
        }
        "tool_calls" | "tool_call" | "tool_use" => "tool_calls",
        "function_call" => "function_call",
        "content_filter"
        | "content_filtered"
        | "safety"
        | "image_safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "refusal"
        | "guardrail_intervened" => "content_filter",
        _ => return None,
    })
}

/// [`canonical`], or the reason as written.
pub(crate) fn mended(reason: &str) -> String {
    canonical(reason).unwrap_or(reason).to_owned()
}
