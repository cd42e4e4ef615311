//! A Responses request → a chat request, its settings, and what was lost on the way.

use super::fields::{flag, string};
use super::{items, tools};
use crate::body::{RawObject, object};
use crate::chat::{ChatRequest, RequestLimits};
use crate::content::text;
use crate::fault::RequestFault;
use crate::loss::Losses;
use crate::raw::{Raw, elements, quoted, raw_or_null};

/// A request of the Responses protocol, read but not yet translated: what came before may be needed for that.
#[derive(Debug, Clone)]
pub struct ResponsesRequest {
    sent: RawObject,
    input: Vec<Raw>,
    /// What concerns the protocol itself.
    pub settings: Settings,
}

/// What concerns the protocol itself, and no model.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether the answer is kept (default: yes).
    pub store: bool,
    /// Whether the answer is made while nobody waits.
    pub background: bool,
    /// Whether the client wants a stream.
    pub stream: bool,
    /// The response that this one goes on from.
    pub previous: Option<String>,
    /// As sent, for the object of the answer: settings that it repeats.
    pub told: RawObject,
}

/// Fields that mean the same in a chat request. `plugins` is ours.
const SAME: &[&str] = &[
    "model",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
    "plugins",
    "seed",
    "stop",
    "top_k",
];

/// Fields with a translation of their own, or that concern the protocol itself.
const TRANSLATED: &[&str] = &[
    "input",
    "instructions",
    "previous_response_id",
    "store",
    "background",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "max_output_tokens",
    "top_logprobs",
    "metadata",
    "truncation",
    "include",
];

/// Fields that the object of an answer repeats.
const TOLD: &[&str] = &[
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "reasoning",
    "service_tier",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "safety_identifier",
    "prompt_cache_key",
];

impl ResponsesRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// The first [`RequestFault`], at a place of the request as it was sent.
    pub fn parse(bytes: &[u8]) -> Result<Self, RequestFault> {
        let sent = RawObject::parse(bytes)?;
        for unsupported in ["conversation", "prompt"] {
            if sent.get_set(unsupported).is_some() {
                let message =
                    format!("`{unsupported}` names what is kept elsewhere; send `input` and `instructions`");
                return Err(RequestFault::of(unsupported, message));
            }
        }
        let input = match sent.get_set("input") {
            Some(raw) => items::items(raw)?,
            None => return Err(RequestFault::of("input", "`input` is missing")),
        };
        let settings = Settings {
            store: flag(&sent, "store")?.unwrap_or(true),
            background: flag(&sent, "background")?.unwrap_or(false),
            stream: flag(&sent, "stream")?.unwrap_or(false),
            previous: string(&sent, "previous_response_id")?,
            told: told(&sent)?,
        };
        if settings.background && !settings.store {
            return Err(RequestFault::of("store", "an answer in the background is kept: leave `store` out"));
        }
        if settings.background && settings.stream {
            return Err(RequestFault::of(
                "stream",
                "an answer in the background is not streamed: ask for it later",
            ));
        }
        Ok(Self { sent, input, settings })
    }

    /// The client's own items.
    #[must_use]
    pub fn input(&self) -> &[Raw] {
        &self.input
    }

    /// The chat request, with the items of what came before in front; and what has no counterpart.
    ///
    /// # Errors
    /// The first [`RequestFault`].
    pub fn chat(
        &self,
        before: &[Raw],
        limits: &RequestLimits,
    ) -> Result<(ChatRequest, Losses), RequestFault> {
        let mut losses = Losses::default();
        let sent = &self.sent;
        let all: Vec<Raw> = before.iter().chain(&self.input).cloned().collect();
        if all.len() > limits.max_messages {
            let (len, most) = (all.len(), limits.max_messages);
            let message = format!("the conversation holds {len} items; the bound is {most} (max_messages)");
            return Err(RequestFault::of("input", message));
        }
        let mut messages = Vec::new();
        if let Some(instructions) = string(sent, "instructions")? {
            let system = object([("role", quoted("system")), ("content", quoted(&instructions))]);
            messages.push(raw_or_null(&system));
        }
        messages.extend(items::messages(&all, before.len(), &mut losses)?);
        if messages.is_empty() {
            return Err(RequestFault::of("input", "`input` says nothing"));
        }
        let mut chat = RawObject::default();
        for field in SAME {
            if let Some(value) = sent.get_set(field) {
                chat.set(field, value.clone());
            }
        }
        chat.set("messages", raw_or_null(&messages));
        if let Some(most) = sent.get_set("max_output_tokens") {
            chat.set("max_completion_tokens", most.clone());
        }
        if let Some(top) = sent.get_set("top_logprobs").filter(|raw| raw.get() != "0") {
            chat.set("logprobs", raw_or_null(&true));
            chat.set("top_logprobs", top.clone());
        }
        form(sent, &mut chat, &mut losses)?;
        tools::translate(sent, &mut chat, &mut losses)?;
        lost(sent, &mut losses);
        let mut chat = ChatRequest::of(chat, limits)?;
        chat.set_stream(self.settings.stream, self.settings.stream);
        Ok((chat, losses))
    }
}

fn told(sent: &RawObject) -> Result<RawObject, RequestFault> {
    let mut told = RawObject::default();
    for field in TOLD {
        if let Some(value) = sent.get_set(field) {
            told.set(field, value.clone());
        }
    }
    for (field, opening, problem) in [
        ("metadata", '{', "must be an object"),
        ("text", '{', "must be an object"),
        ("reasoning", '{', "must be an object"),
        ("tools", '[', "must be a list of tools"),
    ] {
        if told.get(field).is_some_and(|raw| !raw.starts_with(opening)) {
            return Err(RequestFault::of(field, format!("`{field}` {problem}")));
        }
    }
    Ok(told)
}

/// `text` and `reasoning`: what the answer looks like, and how hard it is thought about.
fn form(sent: &RawObject, chat: &mut RawObject, losses: &mut Losses) -> Result<(), RequestFault> {
    let text_settings: RawObject = sent.read("text").ok().flatten().unwrap_or_default();
    if let Some(verbosity) = text_settings.get_set("verbosity") {
        chat.set("verbosity", verbosity.clone());
    }
    if let Some(format) = text_settings.get_set("format") {
        let format = RawObject::parse(format.as_bytes())
            .map_err(|_| RequestFault::of("text.format", "`text.format` must be an object with a `type`"))?;
        match string(&format, "type")?.as_deref() {
            Some("text") => {}
            Some("json_object") => {
                chat.set("response_format", raw_or_null(&object([("type", quoted("json_object"))])));
            }
            Some("json_schema") => {
                let mut schema = format.clone();
                schema.remove("type");
                let wrapped =
                    object([("type", quoted("json_schema")), ("json_schema", raw_or_null(&schema))]);
                chat.set("response_format", raw_or_null(&wrapped));
            }
            _ => {
                return Err(RequestFault::of(
                    "text.format.type",
                    "`text.format.type` must be text, json_schema or json_object",
                ));
            }
        }
    }
    let reasoning: RawObject = sent.read("reasoning").ok().flatten().unwrap_or_default();
    for (field, value) in reasoning.iter().filter(|(_, value)| value.get() != "null") {
        match field {
            "effort" => chat.set("reasoning_effort", value.clone()),
            other => losses.add_of("reasoning", other),
        }
    }
    Ok(())
}

fn lost(sent: &RawObject, losses: &mut Losses) {
    let unknown = |field: &&str| !SAME.contains(field) && !TRANSLATED.contains(field);
    sent.iter().map(|(field, _)| field).filter(unknown).for_each(|field| losses.add(field));
    if sent.get("truncation").is_some_and(|raw| raw.get() == "\"auto\"") {
        losses.add("truncation.auto");
    }
    for wanted in sent.get_set("include").and_then(|raw| elements(raw)).unwrap_or_default() {
        losses.add_of("include", &text(wanted).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(body: &Value, before: &[Raw]) -> Result<(Value, Vec<String>), RequestFault> {
        let request = ResponsesRequest::parse(body.to_string().as_bytes())?;
        let (chat, losses) = request.chat(before, &RequestLimits::default())?;
        Ok((serde_json::from_slice(&chat.to_bytes()).unwrap(), losses.words().to_vec()))
    }

    #[test]
    fn items_become_turns() {
        let call =
            |id: &str| json!({"type": "function_call", "call_id": id, "name": "sky", "arguments": "{}"});
        let before = [raw_or_null(&json!({"role": "user", "content": "earlier"}))];
        let (chat, losses) = read(
            &json!({"model": "m", "instructions": "Be brief.", "input": [
                {"type": "reasoning", "summary": []},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
                call("c1"), call("c2"),
                {"type": "function_call_output", "call_id": "c1", "output": "8C"},
                {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "9C"}]},
                {"role": "user", "content": [{"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"}]}]}),
            &before,
        )
        .unwrap();
        let chat_call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "sky", "arguments": "{}"}});
        assert_eq!(
            chat["messages"],
            json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "earlier"},
                {"role": "assistant", "content": "Looking.", "tool_calls": [chat_call("c1"), chat_call("c2")]},
                {"role": "tool", "tool_call_id": "c1", "content": "8C"},
                {"role": "tool", "tool_call_id": "c2", "content": "9C"},
                {"role": "user", "content": [{"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}]},
            ])
        );
        assert_eq!(losses, ["item.reasoning"]);
    }

    #[test]
    fn b04_b10_settings_are_translated_or_named() {
        let schema = json!({"type": "object", "properties": {"knots": {"type": "number"}}, "additionalProperties": false});
        let (chat, losses) = read(
            &json!({"model": "m", "input": "hi", "max_output_tokens": 9, "temperature": 0, "stream": true,
                "text": {"format": {"type": "json_schema", "name": "ship", "strict": true, "schema": schema}},
                "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto", "max_tool_calls": 3,
                "tools": [{"type": "function", "name": "sky", "parameters": {"type": "object"}, "strict": true}, {"type": "web_search"}],
                "tool_choice": {"type": "function", "name": "sky"}, "include": ["reasoning.encrypted_content"]}),
            &[],
        )
        .unwrap();
        assert_eq!(chat["messages"], json!([{"role": "user", "content": "hi"}]));
        assert_eq!(
            chat["response_format"]["json_schema"],
            json!({"name": "ship", "strict": true, "schema": schema})
        );
        assert_eq!((&chat["max_completion_tokens"], &chat["temperature"]), (&json!(9), &json!(0)));
        assert_eq!(chat["reasoning_effort"], "low");
        assert_eq!(
            chat["tools"],
            json!([{"type": "function",
            "function": {"name": "sky", "parameters": {"type": "object"}, "strict": true}}])
        );
        assert_eq!(chat["tool_choice"]["function"]["name"], "sky");
        assert_eq!(chat["stream_options"]["include_usage"], true);
        assert_eq!(
            losses,
            [
                "reasoning.summary",
                "tool.web_search",
                "max_tool_calls",
                "truncation.auto",
                "include.reasoning.encrypted_content"
            ]
        );
    }

    #[test]
    fn bad_requests_are_refused_at_their_place() {
        for (body, param) in [
            (json!({"model": "m"}), "input"),
            (json!({"model": "m", "input": 7}), "input"),
            (json!({"model": "m", "input": []}), "input"),
            (json!({"model": "m", "input": [{"role": "user"}]}), "input[0]"),
            (json!({"model": "m", "input": [{"type": "item_reference", "id": "x"}]}), "input[0]"),
            (
                json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
                "input[0].content[0]",
            ),
            (json!({"input": "hi"}), "model"),
            (json!({"model": "m", "input": "hi", "store": 1}), "store"),
            (json!({"model": "m", "input": "hi", "background": true, "stream": true}), "stream"),
            (json!({"model": "m", "input": "hi", "background": true, "store": false}), "store"),
            (json!({"model": "m", "input": "hi", "conversation": "c"}), "conversation"),
            (json!({"model": "m", "input": "hi", "text": {"format": {"type": "xml"}}}), "text.format.type"),
            (json!({"model": "m", "input": "hi", "tools": [{"type": "function"}]}), "tools[0]"),
        ] {
            assert_eq!(read(&body, &[]).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
    }
}
