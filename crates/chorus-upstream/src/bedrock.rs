//! Amazon Bedrock's `Converse` and `ConverseStream`.
//!
//! What it cannot say is a fault (`n`, `logprobs`, audio, images by address, `response_format`, `tool_choice: none` beside
//! calls in the history); what only tunes and has no counterpart is left out. The page is `docs/upstreams/bedrock.md`.
//! Source: Amazon Bedrock API reference, `Converse` and `ConverseStream`.

use crate::UpstreamFault;
use crate::path::path_segment;
use crate::seam::{Reader, Said, Sent};
use crate::spoken::{self, Spoken};
use crate::turns::{Block, Chat, Choice, Tool, Turn, elements, text};
use chorus_wire::{ChatReply, Chunk, ErrorBody, SseEvent};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The request, at its model's path.
pub(crate) fn sent(body: &[u8], stream: bool) -> Result<Sent, UpstreamFault> {
    let chat = Chat::read(body)?;
    let wants_form = chat.given("response_format").map(|format| text(format, "/type"));
    if wants_form.is_some_and(|kind| kind != "text") {
        return Err(UpstreamFault::untranslatable("`response_format`"));
    }
    let turns: Vec<Value> = chat.turns.iter().map(message).collect::<Result<_, _>>()?;
    let mut out = Map::from_iter([("messages".to_owned(), json!(turns))]);
    if !chat.system.is_empty() {
        let blocks: Vec<Value> = chat.system.iter().map(|text| json!({"text": text})).collect();
        out.insert("system".to_owned(), json!(blocks));
    }
    out.insert("inferenceConfig".to_owned(), Value::Object(settings(&chat)));
    if let Some(config) = tool_config(&chat)? {
        out.insert("toolConfig".to_owned(), config);
    }
    let method = if stream { "converse-stream" } else { "converse" };
    Ok(Sent {
        body: Value::Object(out).to_string().into(),
        path: Some(format!("/model/{}/{method}", path_segment(&chat.model))),
        accept: if stream { "application/vnd.amazon.eventstream" } else { "application/json" },
    })
}

fn message(turn: &Turn) -> Result<Value, UpstreamFault> {
    let role = if turn.by_model { "assistant" } else { "user" };
    let content: Vec<Value> = turn.blocks.iter().map(block).collect::<Result<_, _>>()?;
    Ok(json!({"role": role, "content": content}))
}

fn block(block: &Block) -> Result<Value, UpstreamFault> {
    Ok(match block {
        Block::Text(text) => json!({"text": text}),
        Block::Image { media_type, data } => {
            let format = media_type.strip_prefix("image/");
            let format = format.filter(|format| ["png", "jpeg", "gif", "webp"].contains(format));
            let format = format.ok_or_else(|| {
                UpstreamFault::untranslatable(format!("an image of the type `{media_type}`"))
            })?;
            json!({"image": {"format": format, "source": {"bytes": data}}})
        }
        Block::Call { id, name, arguments, .. } => {
            json!({"toolUse": {"toolUseId": id, "name": name, "input": arguments}})
        }
        Block::Result { id, text, .. } => {
            json!({"toolResult": {"toolUseId": id, "content": [{"text": text}]}})
        }
    })
}

fn settings(chat: &Chat) -> Map<String, Value> {
    let same = [("temperature", "temperature"), ("top_p", "topP")];
    let same = same
        .iter()
        .filter_map(|(ours, theirs)| chat.given(ours).map(|value| ((*theirs).to_owned(), value.clone())));
    let mut out: Map<String, Value> = same.collect();
    out.extend(chat.cap().map(|cap| ("maxTokens".to_owned(), json!(cap))));
    out.extend(chat.stop().map(|stop| ("stopSequences".to_owned(), stop)));
    out
}

fn tool_config(chat: &Chat) -> Result<Option<Value>, UpstreamFault> {
    if chat.tools.is_empty() {
        return Ok(None);
    }
    let mut config = Map::new();
    match &chat.choice {
        Choice::Auto => {}
        Choice::None => {
            let in_history = chat.turns.iter().flat_map(|turn| &turn.blocks);
            let mut calls = in_history.filter(|it| matches!(it, Block::Call { .. } | Block::Result { .. }));
            // The API wants the tools of a history that has calls, and then cannot forbid them.
            return match calls.next() {
                Some(_) => Err(UpstreamFault::untranslatable("`tool_choice: none` beside calls")),
                None => Ok(None),
            };
        }
        Choice::Any => drop(config.insert("toolChoice".to_owned(), json!({"any": {}}))),
        Choice::One(name) => {
            config.insert("toolChoice".to_owned(), json!({"tool": {"name": name}}));
        }
    }
    let tools: Vec<Value> = chat.tools.iter().map(tool).collect();
    config.insert("tools".to_owned(), json!(tools));
    Ok(Some(Value::Object(config)))
}

fn tool(tool: &Tool) -> Value {
    let mut spec = json!({"name": tool.name, "inputSchema": {"json": tool.schema}});
    if let (Some(fields), Some(description)) = (spec.as_object_mut(), &tool.description) {
        fields.insert("description".to_owned(), description.clone());
    }
    json!({"toolSpec": spec})
}

/// A whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
    let body: Value = serde_json::from_slice(bytes).map_err(UpstreamFault::malformed)?;
    if body.pointer("/output/message/content").is_none() {
        let error = ErrorBody::parse(bytes);
        return Err(
            error.map_or_else(|| UpstreamFault::malformed("it holds no message"), UpstreamFault::in_band)
        );
    }
    let mut spoken = Spoken::default();
    for block in elements(&body, "/output/message/content") {
        if let Some(words) = block.get("text").and_then(Value::as_str) {
            spoken.text(words);
        }
        spoken.reasoning(&text(block, "/reasoningContent/reasoningText/text"));
        if let Some(call) = block.get("toolUse") {
            let arguments = call.get("input").map_or_else(|| "{}".to_owned(), Value::to_string);
            spoken.call(spoken::call(0, &text(call, "/toolUseId"), &text(call, "/name"), &arguments));
        }
    }
    let finish = body.get("stopReason").and_then(Value::as_str).map(finish_reason);
    spoken.reply(&json!(""), &json!(""), finish, body.get("usage").map(usage))
}

/// Our word for a stop reason; others are passed on as written.
fn finish_reason(stop: &str) -> &str {
    match stop {
        "end_turn" | "stop_sequence" => "stop",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "guardrail_intervened" | "content_filtered" => "content_filter",
        other => other,
    }
}

/// The API counts what its prompt cache gave and took apart from the input.
fn usage(usage: &Value) -> Value {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    let (read, written) = (number("cacheReadInputTokens"), number("cacheWriteInputTokens"));
    let prompt = number("inputTokens") + read + written;
    let completion = number("outputTokens");
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": number("totalTokens").max(prompt + completion),
        "prompt_tokens_details": {"cached_tokens": read, "cache_creation_tokens": written},
    })
}

/// Reads one stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Number of the call of each block that is one, and whether arguments have come.
    calls: BTreeMap<u64, (usize, bool)>,
}

impl Reader for Events {
    fn event(&mut self, event: &SseEvent) -> Result<Said, UpstreamFault> {
        let Some(name) = event.event.as_deref() else { return Ok(Said::Nothing) };
        if let Some(exception) = name.strip_prefix('!') {
            return Err(in_band(exception, &event.data));
        }
        let body: Value = serde_json::from_slice(&event.data).map_err(UpstreamFault::malformed)?;
        let at = body.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or(0);
        match name {
            "messageStart" => one(&spoken::delta(&json!({"role": "assistant", "content": ""}))),
            "contentBlockStart" => self.started(at, body.pointer("/start/toolUse")),
            "contentBlockDelta" => self.news(at, body.get("delta").unwrap_or(&Value::Null)),
            "contentBlockStop" => match self.calls.get(&at) {
                // A call without arguments is a call with an empty object of them.
                Some((index, false)) => one(&arguments(*index, "{}")),
                _ => Ok(Said::Nothing),
            },
            "messageStop" => {
                let reason = text(&body, "/stopReason");
                one(&spoken::finish(finish_reason(&reason)))
            }
            "metadata" => Ok(Said::Chunk(chunk(&json!([]), body.get("usage").map(usage))?)),
            // What the API may add later.
            _ => Ok(Said::Nothing),
        }
    }
}

impl Events {
    fn started(&mut self, at: u64, call: Option<&Value>) -> Result<Said, UpstreamFault> {
        let Some(call) = call else { return Ok(Said::Nothing) };
        let index = self.calls.len();
        self.calls.insert(at, (index, false));
        let call = spoken::call(index, &text(call, "/toolUseId"), &text(call, "/name"), "");
        one(&spoken::delta(&json!({"tool_calls": [call]})))
    }

    fn news(&mut self, at: u64, delta: &Value) -> Result<Said, UpstreamFault> {
        if let Some(words) = delta.get("text").and_then(Value::as_str) {
            return one(&spoken::delta(&json!({"content": words})));
        }
        if let Some(words) = delta.pointer("/reasoningContent/text").and_then(Value::as_str) {
            return one(&spoken::delta(&json!({"reasoning_content": words})));
        }
        let piece = text(delta, "/toolUse/input");
        match self.calls.get_mut(&at).filter(|_| !piece.is_empty()) {
            Some((index, begun)) => {
                *begun = true;
                one(&arguments(*index, &piece))
            }
            None => Ok(Said::Nothing),
        }
    }
}

fn arguments(index: usize, piece: &str) -> Value {
    spoken::delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
}

fn chunk(choices: &Value, usage: Option<Value>) -> Result<Chunk, UpstreamFault> {
    spoken::chunk(&json!(""), &json!(""), choices, usage)
}

fn one(choices: &Value) -> Result<Said, UpstreamFault> {
    Ok(Said::Chunk(chunk(choices, None)?))
}

/// An exception of the stream; the API names no status in it, its name stands for one.
fn in_band(exception: &str, data: &[u8]) -> UpstreamFault {
    let status = match exception {
        "validationException" => "400",
        "throttlingException" => "429",
        "modelTimeoutException" => "408",
        "modelStreamErrorException" => "424",
        "serviceUnavailableException" => "503",
        _ => "500",
    };
    let told = ErrorBody::parse(data).map(|error| error.message).unwrap_or_default();
    UpstreamFault::in_band(ErrorBody {
        message: told,
        kind: exception.to_owned(),
        param: None,
        code: Some(status.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_tools_is_said_in_its_words() {
        let call = json!({"id": "c1", "function": {"name": "sky", "arguments": ""}});
        let body = json!({
            "model": "anthropic.claude:0", "max_tokens": 9, "top_p": 0.5, "stop": ["a"],
            "tools": [{"type": "function", "function": {"name": "sky", "description": "looks up"}}],
            "tool_choice": "required",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "8C"},
            ],
        });
        let sent = sent(body.to_string().as_bytes(), true).unwrap();
        assert_eq!(sent.path.as_deref(), Some("/model/anthropic.claude%3A0/converse-stream"));
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        let tool = json!({"toolSpec": {"name": "sky", "description": "looks up",
            "inputSchema": {"json": {"type": "object", "properties": {}}}}});
        assert_eq!(
            body,
            json!({
                "system": [{"text": "Be brief."}],
                "messages": [
                    {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": "AA=="}}}]},
                    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "sky", "input": {}}}]},
                    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "8C"}]}}]},
                ],
                "inferenceConfig": {"topP": 0.5, "maxTokens": 9, "stopSequences": ["a"]},
                "toolConfig": {"toolChoice": {"any": {}}, "tools": [tool]},
            })
        );
    }

    #[test]
    fn b12_what_it_has_no_words_for_is_refused() {
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        let history = json!([{"role": "tool", "tool_call_id": "c", "content": "x"}]);
        for body in [
            json!({"response_format": {"type": "json_object"}}),
            json!({"tools": tools, "tool_choice": "none", "messages": history}),
        ] {
            let fault = sent(body.to_string().as_bytes(), false).unwrap_err();
            assert!(matches!(fault, UpstreamFault::Untranslatable { .. }), "{body}");
        }
    }

    #[test]
    fn a_whole_answer() {
        let body = json!({
            "output": {"message": {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "Let me look."},
                {"toolUse": {"toolUseId": "t1", "name": "sky", "input": {"at": 1}}}]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10, "cacheReadInputTokens": 2},
        });
        let reply = whole(body.to_string().as_bytes()).unwrap();
        assert_eq!((reply.content.as_str(), reply.reasoning.as_deref()), ("Let me look.", Some("hm")));
        assert_eq!(
            (reply.tool_calls[0].id.as_str(), reply.finish_reason.as_deref()),
            ("t1", Some("tool_calls"))
        );
        assert_eq!(reply.usage.map(|usage| (usage.prompt_tokens, usage.total_tokens)), Some((9, 12)));
        assert!(whole(b"{\"message\":\"no such model\"}").is_err());
    }

    fn event(name: &str, data: &Value) -> SseEvent {
        SseEvent { event: Some(name.to_owned()), data: data.to_string().into_bytes() }
    }

    #[test]
    fn a_stream_of_words_and_of_a_call_without_arguments() {
        let mut events = Events::default();
        let mut chunk = |name: &str, data: Value| match events.event(&event(name, &data)).unwrap() {
            Said::Chunk(chunk) => Some(chunk),
            _ => None,
        };
        assert!(chunk("messageStart", json!({"role": "assistant"})).is_some());
        let words = chunk("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "Hi"}}));
        assert_eq!(words.unwrap().choices[0].content.as_deref(), Some("Hi"));
        let start = json!({"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}});
        assert_eq!(
            chunk("contentBlockStart", start).unwrap().choices[0].tool_calls[0].id.as_deref(),
            Some("t1")
        );
        let empty = chunk("contentBlockStop", json!({"contentBlockIndex": 1})).unwrap();
        assert_eq!(empty.choices[0].tool_calls[0].arguments, "{}");
        let end = chunk("messageStop", json!({"stopReason": "tool_use"})).unwrap();
        assert_eq!(end.choices[0].finish_reason.as_deref(), Some("tool_calls"));
        let totals = chunk("metadata", json!({"usage": {"inputTokens": 1, "outputTokens": 2}})).unwrap();
        assert_eq!(totals.usage.map(|usage| usage.total_tokens), Some(3));
    }

    #[test]
    fn an_exception_amid_the_stream_is_a_fault_with_its_status() {
        let event = event("!throttlingException", &json!({"message": "too fast"}));
        let fault = Events::default().event(&event).err().unwrap();
        assert_eq!(fault.status(), Some(429));
    }
}
