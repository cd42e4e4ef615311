//! The messages of a chat → `system` and the turns of the Messages API.
//!
//! The API has two roles that take turns: messages of one role that follow each other become one turn, and the answers of
//! tools are the user's. Instructions, wherever they stand, go to the front.

use super::fields::{list, value};
use crate::UpstreamFault;
use chorus_wire::RawObject;
use chorus_wire::anthropic::extras::{CACHE_CONTROL, IS_ERROR, THINKING_BLOCKS};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Writes `system` and `messages`.
pub(super) fn write(chat: &RawObject, out: &mut RawObject) -> Result<(), UpstreamFault> {
    let mut system: Vec<Value> = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for raw in list(chat, "messages")? {
        let message = RawObject::parse(raw.get().as_bytes()).map_err(UpstreamFault::untranslatable)?;
        let (role, blocks) = match value(&message, "role").as_ref().and_then(Value::as_str) {
            Some("system" | "developer") => {
                system.extend(content(&message)?);
                continue;
            }
            Some("assistant") => ("assistant", assistant(&message)?),
            Some("tool" | "function") => ("user", vec![tool_result(&message)?]),
            _ => ("user", content(&message)?),
        };
        match turns.last_mut().filter(|(last, _)| *last == role) {
            Some((_, turn)) => turn.extend(blocks),
            None => turns.push((role, blocks)),
        }
    }
    if !system.is_empty() {
        out.write("system", &system).map_err(UpstreamFault::untranslatable)?;
    }
    // The API refuses a turn without content.
    turns.retain(|(_, blocks)| !blocks.is_empty());
    let turns: Vec<Value> =
        turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect();
    out.write("messages", &turns).map_err(UpstreamFault::untranslatable)
}

fn assistant(message: &RawObject) -> Result<Vec<Value>, UpstreamFault> {
    let thoughts: Vec<Box<RawValue>> = list(message, THINKING_BLOCKS)?;
    let mut blocks: Vec<Value> =
        thoughts.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    blocks.extend(content(message)?);
    for raw in list(message, "tool_calls")? {
        let call: Value = serde_json::from_str(raw.get()).map_err(UpstreamFault::untranslatable)?;
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
        // The API takes objects only; what a model wrote beside JSON stays readable.
        let input = match serde_json::from_str::<Value>(arguments) {
            Ok(input @ Value::Object(_)) => input,
            _ if arguments.trim().is_empty() => json!({}),
            _ => json!({"unparsed_arguments": arguments}),
        };
        let name = call.pointer("/function/name").cloned().unwrap_or_default();
        blocks.push(json!({"type": "tool_use", "id": call.get("id"), "name": name, "input": input}));
    }
    Ok(blocks)
}

fn tool_result(message: &RawObject) -> Result<Value, UpstreamFault> {
    let mut block = Map::new();
    block.insert("type".to_owned(), json!("tool_result"));
    block.insert("tool_use_id".to_owned(), value(message, "tool_call_id").unwrap_or_default());
    block.insert("content".to_owned(), content(message)?.into());
    if let Some(is_error) = value(message, IS_ERROR) {
        block.insert(IS_ERROR.to_owned(), is_error);
    }
    Ok(block.into())
}

/// A string, parts or `null` as blocks. Empty texts are left out: the API refuses them.
fn content(message: &RawObject) -> Result<Vec<Value>, UpstreamFault> {
    let blocks = match value(message, "content") {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(parts)) => parts.iter().map(block).collect::<Result<_, _>>()?,
        Some(_) => return Err(UpstreamFault::untranslatable("content that is neither text nor parts")),
    };
    Ok(blocks.into_iter().filter(|block| block.get("text") != Some(&json!(""))).collect())
}

fn block(part: &Value) -> Result<Value, UpstreamFault> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let mut block = match text("/type") {
        _ if part.is_string() => json!({"type": "text", "text": part}),
        Some("text" | "input_text" | "output_text") | None => {
            json!({"type": "text", "text": text("/text").unwrap_or_default()})
        }
        Some("refusal") => json!({"type": "text", "text": text("/refusal").unwrap_or_default()}),
        Some("image_url") => {
            let url = text("/image_url/url").or_else(|| text("/image_url")).unwrap_or_default();
            json!({"type": "image", "source": source(url)})
        }
        Some("file") if text("/file/file_data").is_some() => {
            let data = text("/file/file_data").unwrap_or_default();
            json!({"type": "document", "source": source(data), "title": text("/file/filename")})
        }
        Some(other) => return Err(UpstreamFault::untranslatable(format!("a part of type `{other}`"))),
    };
    if let (Some(mark), Some(fields)) = (part.get(CACHE_CONTROL), block.as_object_mut()) {
        fields.insert(CACHE_CONTROL.to_owned(), mark.clone());
    }
    Ok(block)
}

/// A `data:` URL is taken apart; any other is fetched by the API itself.
fn source(url: &str) -> Value {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        None => json!({"type": "url", "url": url}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(messages: &Value) -> RawObject {
        let chat = json!({"messages": messages}).to_string();
        let mut out = RawObject::default();
        write(&RawObject::parse(chat.as_bytes()).unwrap(), &mut out).unwrap();
        out
    }

    #[test]
    fn b01_b03_roles_take_turns_and_nothing_empty_is_sent() {
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "sky", "arguments": arguments}});
        let out = turns(&json!([
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": null, "tool_calls": [call("c1", "{\"at\":1}"), call("c2", "")],
                "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "8C"},
            {"role": "tool", "tool_call_id": "c2", "content": "9C", "is_error": true},
            {"role": "user", "content": [{"type": "text", "text": "and", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            {"role": "assistant", "content": ""},
        ]));
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(value(&out, "system").unwrap(), json!([text("Be brief.")]));
        assert_eq!(
            value(&out, "messages").unwrap(),
            json!([
                {"role": "user", "content": [text("weather?")]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "c1", "name": "sky", "input": {"at": 1}},
                    {"type": "tool_use", "id": "c2", "name": "sky", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [text("8C")]},
                    {"type": "tool_result", "tool_use_id": "c2", "content": [text("9C")], "is_error": true},
                    {"type": "text", "text": "and", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
            ])
        );
    }
}
