//! A chat completion request → a Messages request.

use super::fields::{list, value};
use super::turns;
use crate::UpstreamFault;
use crate::seam::Sent;
use chorus_wire::RawObject;
use chorus_wire::anthropic::extras::CACHE_CONTROL;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Longest answer where the request names no bound: the API wants one.
const DEFAULT_MAX_TOKENS: u64 = 4096;

/// Tokens to think with, an effort; the API takes no fewer than 1,024.
const EFFORTS: [(&str, u64); 3] = [("low", 1024), ("medium", 4096), ("high", 16384)];

/// The request as the API reads it.
pub(crate) fn sent(body: &[u8], stream: bool) -> Result<Sent, UpstreamFault> {
    let chat = RawObject::parse(body).map_err(UpstreamFault::untranslatable)?;
    refuse(&chat)?;
    let mut out = RawObject::default();
    let mut put = |field: &str, value: &Value| out.write(field, value).map_err(UpstreamFault::untranslatable);
    put("model", &value(&chat, "model").unwrap_or_default())?;
    let cap = ["max_tokens", "max_completion_tokens"];
    let cap =
        cap.iter().filter_map(|field| value(&chat, field)?.as_u64()).min().unwrap_or(DEFAULT_MAX_TOKENS);
    put("max_tokens", &json!(cap))?;
    let thinking = thinking(&chat, cap);
    // The API refuses both beside thinking.
    if thinking.is_none() {
        if let Some(temperature) = value(&chat, "temperature").and_then(|v| v.as_f64()) {
            // Ours goes to 2, the API's to 1.
            put("temperature", &json!(temperature.min(1.0)))?;
        }
        for field in ["top_p", "top_k"] {
            if let Some(value) = value(&chat, field) {
                put(field, &value)?;
            }
        }
    }
    if let Some(thinking) = thinking {
        put("thinking", &thinking)?;
    }
    if let Some(stop) = value(&chat, "stop") {
        put("stop_sequences", &if stop.is_array() { stop } else { json!([stop]) })?;
    }
    if let Some(user) = user(&chat) {
        put("metadata", &json!({"user_id": user}))?;
    }
    if let Some(tier) =
        value(&chat, "service_tier").filter(|tier| *tier == "auto" || *tier == "standard_only")
    {
        put("service_tier", &tier)?;
    }
    if stream {
        put("stream", &json!(true))?;
    }
    turns::write(&chat, &mut out)?;
    tools(&chat, &mut out)?;
    format(&chat, &mut out)?;
    let accept = if stream { "text/event-stream" } else { "application/json" };
    Ok(Sent { body: out.to_bytes().into(), path: None, accept })
}

/// Without these the answer would be another one than was asked for (case B12).
fn refuse(chat: &RawObject) -> Result<(), UpstreamFault> {
    let is = |field: &str, holds: fn(&Value) -> bool| value(chat, field).is_some_and(|value| holds(&value));
    let several = is("n", |n| n.as_u64().is_some_and(|n| n > 1));
    let wanted = [
        ("n", several),
        ("logprobs", is("logprobs", |v| *v == json!(true))),
        ("audio", is("audio", |_| true)),
    ];
    match wanted.iter().find(|(_, wanted)| *wanted) {
        Some((field, _)) => Err(UpstreamFault::untranslatable(format!("`{field}`"))),
        None => Ok(()),
    }
}

fn user(chat: &RawObject) -> Option<Value> {
    let own = value(chat, "metadata").and_then(|metadata| metadata.get("user_id").cloned());
    own.or_else(|| value(chat, "user")).filter(Value::is_string)
}

/// What the request says itself, or its effort in tokens, as far as the answer has room for them.
fn thinking(chat: &RawObject, cap: u64) -> Option<Value> {
    if let Some(own) = value(chat, "thinking") {
        return Some(own).filter(|own| own.get("type") != Some(&json!("disabled")));
    }
    let effort = value(chat, "reasoning_effort")?;
    let (_, budget) = EFFORTS.iter().find(|(word, _)| effort == *word)?;
    let least = EFFORTS.first().map_or(0, |(_, least)| *least);
    let budget = if *budget < cap { *budget } else { cap / 2 };
    (budget >= least).then(|| json!({"type": "enabled", "budget_tokens": budget}))
}

fn tools(chat: &RawObject, out: &mut RawObject) -> Result<(), UpstreamFault> {
    let tools: Vec<Box<RawValue>> = list(chat, "tools")?;
    let tools: Vec<RawObject> = tools.iter().filter_map(|raw| tool(raw)).collect();
    if tools.is_empty() {
        return Ok(());
    }
    out.write("tools", &tools).map_err(UpstreamFault::untranslatable)?;
    let mut choice = match value(chat, "tool_choice") {
        Some(Value::String(word)) if word == "required" => json!({"type": "any"}),
        Some(Value::String(word)) => json!({"type": word}),
        Some(named) => json!({"type": "tool", "name": named.pointer("/function/name")}),
        None => json!({"type": "auto"}),
    };
    let one_at_a_time = value(chat, "parallel_tool_calls") == Some(json!(false));
    let is_none = choice.get("type") == Some(&json!("none"));
    if let (true, false, Some(fields)) = (one_at_a_time, is_none, choice.as_object_mut()) {
        fields.insert("disable_parallel_tool_use".to_owned(), json!(true));
    }
    if one_at_a_time || value(chat, "tool_choice").is_some() {
        out.write("tool_choice", &choice).map_err(UpstreamFault::untranslatable)?;
    }
    Ok(())
}

fn tool(raw: &RawValue) -> Option<RawObject> {
    let tool = RawObject::parse(raw.get().as_bytes()).ok()?;
    let function = RawObject::parse(tool.get("function")?.get().as_bytes()).ok()?;
    let mut out = RawObject::default();
    out.set("name", function.get("name")?.clone());
    if let Some(description) = function.get_set("description") {
        out.set("description", description.clone());
    }
    match function.get_set("parameters") {
        Some(schema) => out.set("input_schema", schema.clone()),
        // The API wants a schema also of a tool that takes nothing.
        None => out.write("input_schema", &json!({"type": "object", "properties": {}})).ok()?,
    }
    for (field, from) in [("strict", &function), (CACHE_CONTROL, &tool)] {
        if let Some(value) = from.get_set(field) {
            out.set(field, value.clone());
        }
    }
    Some(out)
}

fn format(chat: &RawObject, out: &mut RawObject) -> Result<(), UpstreamFault> {
    let Some(format) = value(chat, "response_format") else {
        return Ok(());
    };
    match format.get("type").and_then(Value::as_str) {
        Some("json_schema") => {
            let schema = format.pointer("/json_schema/schema").cloned().unwrap_or_default();
            let format = json!({"format": {"type": "json_schema", "schema": schema}});
            out.write("output_config", &format).map_err(UpstreamFault::untranslatable)
        }
        Some("text") | None => Ok(()),
        Some(other) => Err(UpstreamFault::untranslatable(format!("`response_format` of type `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chat: &Value) -> Value {
        let sent = sent(chat.to_string().as_bytes(), false).unwrap();
        serde_json::from_slice(&sent.body).unwrap()
    }

    fn ask(extra: &Value) -> Value {
        let mut chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        for (key, value) in extra.as_object().unwrap() {
            chat[key] = value.clone();
        }
        chat
    }

    #[test]
    fn parameters_have_the_names_and_ranges_of_the_api() {
        for (chat, want) in [
            (json!({}), json!({"max_tokens": 4096})),
            (json!({"max_tokens": 9, "max_completion_tokens": 7}), json!({"max_tokens": 7})),
            (json!({"temperature": 1.7}), json!({"temperature": 1.0})),
            (json!({"temperature": 0}), json!({"temperature": 0.0})),
            (json!({"stop": "END7"}), json!({"stop_sequences": ["END7"]})),
            (json!({"stop": ["a", "b"]}), json!({"stop_sequences": ["a", "b"]})),
            (json!({"user": "u"}), json!({"metadata": {"user_id": "u"}})),
            (
                json!({"metadata": {"user_id": "v", "x": 1}, "user": "u"}),
                json!({"metadata": {"user_id": "v"}}),
            ),
            (
                json!({"reasoning_effort": "low", "temperature": 0}),
                json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": null}),
            ),
            (
                json!({"reasoning_effort": "high", "max_tokens": 3000}),
                json!({"thinking": {"type": "enabled", "budget_tokens": 1500}}),
            ),
            (json!({"reasoning_effort": "high", "max_tokens": 100}), json!({"thinking": null})),
            (json!({"thinking": {"type": "adaptive"}}), json!({"thinking": {"type": "adaptive"}})),
            (
                json!({"seed": 1, "logit_bias": {"1": 2}, "x_custom": 1}),
                json!({"seed": null, "logit_bias": null, "x_custom": null}),
            ),
        ] {
            let body = read(&ask(&chat));
            for (field, value) in want.as_object().unwrap() {
                assert_eq!(body.get(field).unwrap_or(&Value::Null), value, "{field} of {chat}");
            }
        }
    }

    #[test]
    fn tools_keep_their_schema_and_their_marks() {
        let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
        let tools = json!([
            {"type": "function", "function": {"name": "sky", "description": "d",
                "parameters": serde_json::from_str::<Value>(schema).unwrap()}, "cache_control": {"type": "ephemeral"}},
            {"type": "function", "function": {"name": "now"}}]);
        let named = json!({"type": "function", "function": {"name": "sky"}});
        for (choice, parallel, want) in [
            (Value::Null, Value::Null, Value::Null),
            (json!("auto"), Value::Null, json!({"type": "auto"})),
            (json!("none"), json!(false), json!({"type": "none"})),
            (json!("required"), Value::Null, json!({"type": "any"})),
            (named, json!(false), json!({"type": "tool", "name": "sky", "disable_parallel_tool_use": true})),
            (Value::Null, json!(false), json!({"type": "auto", "disable_parallel_tool_use": true})),
        ] {
            let body =
                read(&ask(&json!({"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel})));
            assert_eq!(body.get("tool_choice").unwrap_or(&Value::Null), &want);
            assert_eq!(body["tools"][0]["input_schema"].to_string(), schema, "b18: order is kept");
            assert_eq!(body["tools"][0]["cache_control"]["type"], "ephemeral");
            assert_eq!(body["tools"][1]["input_schema"]["type"], "object");
        }
    }

    #[test]
    fn b04_b12_what_has_no_words_is_a_fault_and_a_schema_keeps_every_layer() {
        let schema = json!({"type": "object", "properties": {"knots": {"type": "number"}}});
        let format =
            json!({"type": "json_schema", "json_schema": {"name": "ship", "strict": true, "schema": schema}});
        assert_eq!(
            read(&ask(&json!({"response_format": format})))["output_config"]["format"]["schema"],
            schema
        );
        for chat in [
            json!({"n": 2}),
            json!({"logprobs": true}),
            json!({"audio": {"voice": "x"}}),
            json!({"response_format": {"type": "json_object"}}),
        ] {
            let fault = sent(ask(&chat).to_string().as_bytes(), false).unwrap_err();
            assert!(matches!(fault, UpstreamFault::Untranslatable { .. }), "{chat}: {fault}");
        }
    }
}
