//! Google's `generateContent` and `streamGenerateContent` (Gemini API and Vertex AI's models of that shape).
//!
//! What it cannot say is a fault (`n`, `logprobs`, audio, images by address); what only tunes and has no counterpart
//! (`logit_bias`, `user`) is left out. The page is `docs/upstreams/gemini.md`.
//! Source: Gemini API reference, `v1beta/models.generateContent`; thinking budgets of efforts from its page on OpenAI
//! compatibility.

use crate::UpstreamFault;
use crate::path::path_segment;
use crate::seam::{Reader, Said, Sent};
use crate::spoken::{self, Spoken};
use crate::turns::{Block, Chat, Choice, Tool, Turn, elements, text};
use chorus_wire::{ChatReply, ErrorBody, SseEvent};
use serde_json::{Map, Value, json};

/// Tokens of thought for each effort.
const EFFORTS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 1024), ("low", 1024), ("medium", 8192), ("high", 24_576)];

/// The request, at its model's path.
pub(crate) fn sent(body: &[u8], stream: bool) -> Result<Sent, UpstreamFault> {
    let chat = Chat::read(body)?;
    let mut out = Map::new();
    let contents: Vec<Value> = chat.turns.iter().map(content).collect();
    out.insert("contents".to_owned(), json!(contents));
    if !chat.system.is_empty() {
        let parts: Vec<Value> = chat.system.iter().map(|text| json!({"text": text})).collect();
        out.insert("systemInstruction".to_owned(), json!({"parts": parts}));
    }
    if !chat.tools.is_empty() {
        let functions: Vec<Value> = chat.tools.iter().map(function).collect();
        out.insert("tools".to_owned(), json!([{"functionDeclarations": functions}]));
        out.insert("toolConfig".to_owned(), json!({"functionCallingConfig": calling(&chat.choice)}));
    }
    out.insert("generationConfig".to_owned(), Value::Object(settings(&chat)));
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    Ok(Sent {
        body: Value::Object(out).to_string().into(),
        path: Some(format!("/models/{}:{method}", path_segment(&chat.model))),
        accept: if stream { "text/event-stream" } else { "application/json" },
    })
}

fn content(turn: &Turn) -> Value {
    let role = if turn.by_model { "model" } else { "user" };
    let parts: Vec<Value> = turn.blocks.iter().map(part).collect();
    json!({"role": role, "parts": parts})
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"text": text}),
        Block::Image { media_type, data } => json!({"inlineData": {"mimeType": media_type, "data": data}}),
        Block::Call { name, arguments, extra, .. } => {
            let mut part = json!({"functionCall": {"name": name, "args": arguments}});
            let signature = extra.as_ref().and_then(|extra| extra.pointer("/google/thought_signature"));
            if let (Some(fields), Some(signature)) = (part.as_object_mut(), signature) {
                fields.insert("thoughtSignature".to_owned(), signature.clone());
            }
            part
        }
        Block::Result { name, text, .. } => {
            // The API takes an object; a text that is one is given as it is.
            let object = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            let response = object.unwrap_or_else(|| json!({"result": text}));
            json!({"functionResponse": {"name": name, "response": response}})
        }
    }
}

fn function(tool: &Tool) -> Value {
    let mut it = json!({"name": tool.name, "parametersJsonSchema": tool.schema});
    if let (Some(fields), Some(description)) = (it.as_object_mut(), &tool.description) {
        fields.insert("description".to_owned(), description.clone());
    }
    it
}

fn calling(choice: &Choice) -> Value {
    match choice {
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::None => json!({"mode": "NONE"}),
        Choice::Any => json!({"mode": "ANY"}),
        Choice::One(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

fn settings(chat: &Chat) -> Map<String, Value> {
    const SAME: [(&str, &str); 6] = [
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("top_k", "topK"),
        ("presence_penalty", "presencePenalty"),
        ("frequency_penalty", "frequencyPenalty"),
        ("seed", "seed"),
    ];
    let same = SAME
        .iter()
        .filter_map(|(ours, theirs)| chat.given(ours).map(|value| ((*theirs).to_owned(), value.clone())));
    let mut out: Map<String, Value> = same.collect();
    out.extend(chat.cap().map(|cap| ("maxOutputTokens".to_owned(), json!(cap))));
    out.extend(chat.stop().map(|stop| ("stopSequences".to_owned(), stop)));
    if let Some(format) = chat.given("response_format") {
        let kind = text(format, "/type");
        if kind == "json_object" || kind == "json_schema" {
            out.insert("responseMimeType".to_owned(), json!("application/json"));
        }
        let schema = format.pointer("/json_schema/schema").filter(|_| kind == "json_schema");
        out.extend(schema.map(|schema| ("responseJsonSchema".to_owned(), schema.clone())));
    }
    let effort = chat.given("reasoning_effort").and_then(Value::as_str);
    if let Some((_, budget)) = EFFORTS.iter().find(|(word, _)| Some(*word) == effort) {
        out.insert(
            "thinkingConfig".to_owned(),
            json!({"thinkingBudget": budget, "includeThoughts": *budget > 0}),
        );
    }
    out
}

/// A whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
    let body = answer(bytes)?;
    let mut spoken = Spoken::default();
    let (id, mut count) = (text(&body, "/responseId"), 0);
    for part in elements(&body, "/candidates/0/content/parts") {
        match piece(part, &id, &mut count) {
            Piece::Text(text) => spoken.text(&text),
            Piece::Thought(text) => spoken.reasoning(&text),
            Piece::Call(call) => spoken.call(call),
            Piece::Other => {}
        }
    }
    let finish = finish(&body, spoken.calls_any()).unwrap_or_else(|| "stop".to_owned());
    let model = body.get("modelVersion").cloned().unwrap_or_default();
    spoken.reply(&json!(id), &model, Some(&finish), usage(&body))
}

/// The answer, unless it is an error, or nothing of the kind.
fn answer(bytes: &[u8]) -> Result<Value, UpstreamFault> {
    let body: Value = serde_json::from_slice(bytes).map_err(UpstreamFault::malformed)?;
    if body.get("error").is_some() {
        let error = ErrorBody::parse(bytes);
        return Err(error.map_or_else(|| UpstreamFault::malformed("an error"), UpstreamFault::in_band));
    }
    if ["candidates", "promptFeedback", "usageMetadata"].iter().all(|key| body.get(key).is_none()) {
        return Err(UpstreamFault::malformed("it has neither candidates nor a reason for having none"));
    }
    Ok(body)
}

enum Piece {
    Text(String),
    Thought(String),
    Call(Value),
    Other,
}

/// One part; calls are numbered in the order in which they come.
fn piece(part: &Value, answer_id: &str, calls: &mut usize) -> Piece {
    if let Some(function) = part.get("functionCall") {
        let own = text(function, "/id");
        let id = if own.is_empty() { format!("call_{answer_id}_{calls}") } else { own };
        let arguments = function.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
        let mut call = spoken::call(*calls, &id, &text(function, "/name"), &arguments);
        if let (Some(fields), Some(signature)) = (call.as_object_mut(), part.get("thoughtSignature")) {
            let extra = json!({"google": {"thought_signature": signature}});
            fields.insert("extra_content".to_owned(), extra);
        }
        *calls += 1;
        return Piece::Call(call);
    }
    match part.get("text").and_then(Value::as_str) {
        Some(words) if part.get("thought") == Some(&json!(true)) => Piece::Thought(words.to_owned()),
        Some(words) => Piece::Text(words.to_owned()),
        None => Piece::Other,
    }
}

/// Our word for why it ended; `None` while it goes on (cases B16, B17).
fn finish(body: &Value, has_calls: bool) -> Option<String> {
    if body.pointer("/promptFeedback/blockReason").is_some() {
        return Some("content_filter".to_owned());
    }
    let reason = body.pointer("/candidates/0/finishReason").and_then(Value::as_str)?;
    Some(match reason {
        "STOP" if has_calls => "tool_calls".to_owned(),
        "STOP" => "stop".to_owned(),
        "MAX_TOKENS" => "length".to_owned(),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => "content_filter".to_owned(),
        other => other.to_ascii_lowercase(),
    })
}

/// Thoughts are counted beside the candidates, and billed as output.
fn usage(body: &Value) -> Option<Value> {
    let usage = body.get("usageMetadata")?;
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    let (prompt, thoughts) = (number("promptTokenCount"), number("thoughtsTokenCount"));
    let completion = number("candidatesTokenCount") + thoughts;
    Some(json!({
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": number("totalTokenCount").max(prompt + completion),
        "prompt_tokens_details": {"cached_tokens": number("cachedContentTokenCount")},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }))
}

/// Reads one stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    calls: usize,
}

impl Reader for Events {
    fn event(&mut self, event: &SseEvent) -> Result<Said, UpstreamFault> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Said::Nothing);
        }
        let body = answer(&event.data)?;
        let (id, model) = (text(&body, "/responseId"), body.get("modelVersion").cloned().unwrap_or_default());
        let chunk = |choices: &Value, usage| spoken::chunk(&json!(id), &model, choices, usage);
        let mut chunks = Vec::new();
        for part in elements(&body, "/candidates/0/content/parts") {
            let news = match piece(part, &id, &mut self.calls) {
                Piece::Text(text) => json!({"content": text}),
                Piece::Thought(text) => json!({"reasoning_content": text}),
                Piece::Call(call) => json!({"tool_calls": [call]}),
                Piece::Other => continue,
            };
            chunks.push(chunk(&spoken::delta(&news), None)?);
        }
        if let Some(reason) = finish(&body, self.calls > 0) {
            chunks.push(chunk(&spoken::finish(&reason), None)?);
            chunks.push(chunk(&json!([]), usage(&body))?);
        }
        Ok(Said::Chunks(chunks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &Value) -> Value {
        serde_json::from_slice(&sent(body.to_string().as_bytes(), false).unwrap().body).unwrap()
    }

    #[test]
    fn the_path_names_model_and_method() {
        let body = br#"{"model":"gemini-2.5-pro","messages":[{"role":"user","content":"hi"}]}"#;
        let path = |stream| sent(body, stream).unwrap().path.unwrap();
        assert_eq!(path(false), "/models/gemini-2.5-pro:generateContent");
        assert_eq!(path(true), "/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    }

    #[test]
    fn a_conversation_with_tools_is_said_in_its_words() {
        let call = json!({"id": "c1", "function": {"name": "sky", "arguments": "{\"at\":1}"},
            "extra_content": {"google": {"thought_signature": "sig"}}});
        let body = asked(&json!({
            "model": "m", "max_tokens": 9, "temperature": 0, "stop": "END7", "reasoning_effort": "low",
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
            "tools": [{"type": "function", "function": {"name": "sky", "parameters": {"type": "object"}}}],
            "tool_choice": {"type": "function", "function": {"name": "sky"}},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "8C"},
            ],
        }));
        assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
        assert_eq!(
            body["contents"],
            json!([
                {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
                {"role": "model", "parts": [{"functionCall": {"name": "sky", "args": {"at": 1}}, "thoughtSignature": "sig"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "sky", "response": {"result": "8C"}}}]},
            ])
        );
        assert_eq!(
            body["generationConfig"],
            json!({"temperature": 0, "maxOutputTokens": 9, "stopSequences": ["END7"],
                "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
                "thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": true}})
        );
        assert_eq!(body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"], json!(["sky"]));
    }

    #[test]
    fn an_answer_in_our_words_with_thoughts_billed() {
        let body = json!({
            "responseId": "r1", "modelVersion": "gemini-x",
            "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "hm", "thought": true}, {"text": "Let me look."},
                {"functionCall": {"name": "sky", "args": {"at": 1}}}]}}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 5, "totalTokenCount": 15},
        });
        let reply = whole(body.to_string().as_bytes()).unwrap();
        assert_eq!((reply.content.as_str(), reply.reasoning.as_deref()), ("Let me look.", Some("hm")));
        assert_eq!(reply.tool_calls[0].arguments, "{\"at\":1}");
        assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(reply.usage.map(|usage| (usage.completion_tokens, usage.total_tokens)), Some((8, 15)));
    }

    #[test]
    fn b16_a_blocked_prompt_and_a_policy_stop_are_content_filter() {
        for body in [
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            json!({"candidates": [{"finishReason": "SAFETY"}]}),
        ] {
            let reply = whole(body.to_string().as_bytes()).unwrap();
            assert_eq!(reply.finish_reason.as_deref(), Some("content_filter"), "{body}");
        }
    }

    #[test]
    fn a_stream_ends_in_a_reason_and_totals() {
        let mut events = Events::default();
        let mut said = |body: Value| {
            let event = SseEvent { event: None, data: body.to_string().into_bytes() };
            match events.event(&event).unwrap() {
                Said::Chunks(chunks) => chunks,
                _ => panic!("{body}"),
            }
        };
        let part =
            |text: &str| json!({"responseId": "r", "candidates": [{"content": {"parts": [{"text": text}]}}]});
        assert_eq!(said(part("Hel"))[0].choices[0].content.as_deref(), Some("Hel"));
        let mut last = part("lo");
        last["candidates"][0]["finishReason"] = json!("MAX_TOKENS");
        last["usageMetadata"] = json!({"promptTokenCount": 1, "candidatesTokenCount": 2});
        let chunks = said(last);
        assert_eq!(chunks[1].choices[0].finish_reason.as_deref(), Some("length"));
        assert_eq!(chunks[2].usage.map(|usage| usage.total_tokens), Some(3));
    }

    #[test]
    fn an_error_keeps_its_status() {
        let body =
            json!({"error": {"code": 429, "message": "quota of key AIza-1", "status": "RESOURCE_EXHAUSTED"}});
        let fault = whole(body.to_string().as_bytes()).unwrap_err();
        assert_eq!(fault.status(), Some(429));
        assert!(!fault.public().contains("AIza"), "{}", fault.public());
        assert!(whole(b"{}").is_err());
    }
}
