//! A Messages request → a chat request, and what was lost on the way.

use super::blocks;
use super::content::word;
use super::extras::{self, CACHE_CONTROL};
use super::turns;
use crate::body::{RawObject, object};
use crate::chat::{ChatRequest, RequestLimits};
use crate::fault::RequestFault;
use crate::loss::Losses;
use crate::raw::{Raw, count, elements, quoted, raw_or_null};

/// A request of the Messages protocol, translated.
#[derive(Debug, Clone)]
pub struct MessagesRequest {
    /// What it asks for, as a chat request.
    pub chat: ChatRequest,
    /// What has no counterpart there.
    pub losses: Losses,
}

/// Fields that mean the same under the same name. `top_k` is no field of OpenAI's, but of the servers of open weights.
/// `plugins` is ours.
const SAME: &[&str] = &["model", "max_tokens", "temperature", "top_p", "top_k", "plugins"];

/// Fields with a translation of their own.
const TRANSLATED: &[&str] = &[
    "messages",
    "system",
    "stop_sequences",
    "stream",
    "tools",
    "tool_choice",
    "output_config",
    "output_format",
];

impl MessagesRequest {
    /// Reads and translates a request. `max_tokens` must be there, as the protocol says.
    ///
    /// # Errors
    /// The first [`RequestFault`], at a place of the request as it was sent.
    pub fn parse(bytes: &[u8], limits: &RequestLimits) -> Result<Self, RequestFault> {
        let sent = RawObject::parse(bytes)?;
        let most = sent.get_set("max_tokens").ok_or_else(|| {
            RequestFault::of("max_tokens", "`max_tokens` is missing: say how long the answer may be")
        })?;
        if count(most).is_none_or(|n| n == 0) {
            return Err(RequestFault::of("max_tokens", "`max_tokens` must be a whole number of at least 1"));
        }
        translate(&sent, limits)
    }
}

/// A request whose tokens are to be counted: as above, without `max_tokens`.
///
/// # Errors
/// [`RequestFault`].
pub fn count_request(bytes: &[u8], limits: &RequestLimits) -> Result<ChatRequest, RequestFault> {
    let mut sent = RawObject::parse(bytes)?;
    sent.remove("max_tokens");
    translate(&sent, limits).map(|request| request.chat)
}

fn translate(sent: &RawObject, limits: &RequestLimits) -> Result<MessagesRequest, RequestFault> {
    let mut losses = Losses::default();
    let mut chat = RawObject::default();
    for field in SAME {
        if let Some(value) = sent.get_set(field) {
            chat.set(field, value.clone());
        }
    }
    chat.set("messages", raw_or_null(&messages(sent, limits, &mut losses)?));
    if let Some(stops) = sent.get_set("stop_sequences") {
        chat.set("stop", stops.clone());
    }
    if let Some(format) = format(sent, &mut losses) {
        chat.set("response_format", format);
    }
    tools(sent, &mut chat, &mut losses)?;
    for (field, value) in
        sent.iter().filter(|(field, _)| !SAME.contains(field) && !TRANSLATED.contains(field))
    {
        if extras::FIELDS.contains(&field) {
            chat.set(field, value.clone());
        }
        // Who the user is concerns no other backend.
        if field != "metadata" {
            losses.add(field);
        }
    }
    let mut chat = ChatRequest::of(chat, limits)?;
    match sent.get_set("stream").map(Raw::get) {
        None | Some("false") => {}
        Some("true") => chat.set_stream(true, true),
        Some(_) => return Err(RequestFault::of("stream", "`stream` must be true or false")),
    }
    chat.mark_extras(true);
    Ok(MessagesRequest { chat, losses })
}

fn messages(sent: &RawObject, limits: &RequestLimits, losses: &mut Losses) -> Result<Vec<Raw>, RequestFault> {
    let fault = |problem: String| RequestFault::of("messages", problem);
    let raw = sent.get_set("messages").ok_or_else(|| fault("`messages` is missing".to_owned()))?;
    let list = elements(raw).ok_or_else(|| fault("`messages` must be a list of messages".to_owned()))?;
    if list.is_empty() {
        return Err(fault("`messages` must hold at least one message".to_owned()));
    }
    if list.len() > limits.max_messages {
        let (len, most) = (list.len(), limits.max_messages);
        return Err(fault(format!("`messages` holds {len} messages; the bound is {most} (max_messages)")));
    }
    let mut all = Vec::with_capacity(list.len() + 1);
    if let Some(system) = sent.get_set("system") {
        all.extend(turns::system(&blocks::read(system, "system")?)?);
    }
    for (at, raw) in list.into_iter().enumerate() {
        all.extend(turns::read(raw, &format!("messages[{at}]"), losses)?);
    }
    Ok(all)
}

/// A schema for the answer: `output_config.format`, before that `output_format`.
fn format(sent: &RawObject, losses: &mut Losses) -> Option<Raw> {
    let config: Option<RawObject> = sent.read("output_config").ok().flatten();
    let others = config.iter().flat_map(RawObject::iter).filter(|(field, _)| *field != "format");
    others.for_each(|(field, _)| losses.add_of("output_config", field));
    let format = config
        .as_ref()
        .and_then(|config| config.get_set("format"))
        .or_else(|| sent.get_set("output_format"))?;
    let format = RawObject::parse(format.as_bytes()).ok()?;
    let schema = format.get_set("schema")?;
    let named =
        object([("name", quoted("answer")), ("strict", raw_or_null(&true)), ("schema", schema.clone())]);
    Some(raw_or_null(&object([("type", quoted("json_schema")), ("json_schema", raw_or_null(&named))])))
}

fn tools(sent: &RawObject, chat: &mut RawObject, losses: &mut Losses) -> Result<(), RequestFault> {
    let mut tools = Vec::new();
    if let Some(raw) = sent.get_set("tools") {
        let list =
            elements(raw).ok_or_else(|| RequestFault::of("tools", "`tools` must be a list of tools"))?;
        for (at, raw) in list.into_iter().enumerate() {
            tools.extend(tool(raw, at, losses)?);
        }
    }
    let none_left = tools.is_empty();
    if !none_left {
        chat.set("tools", raw_or_null(&tools));
    }
    let Some(choice) = sent.get_set("tool_choice").filter(|_| !none_left) else {
        return Ok(());
    };
    let choice: RawObject = serde_json::from_str(choice)
        .map_err(|_| RequestFault::of("tool_choice", "`tool_choice` must be an object with a `type`"))?;
    let translated = match word(&choice, "type").as_deref() {
        Some("auto") => quoted("auto"),
        Some("any") => quoted("required"),
        Some("none") => quoted("none"),
        Some("tool") => {
            let name = word(&choice, "name").unwrap_or_default();
            let function = object([("name", quoted(&name))]);
            raw_or_null(&object([("type", quoted("function")), ("function", raw_or_null(&function))]))
        }
        _ => {
            return Err(RequestFault::of(
                "tool_choice",
                "`tool_choice.type` must be auto, any, tool or none",
            ));
        }
    };
    chat.set("tool_choice", translated);
    if choice.get("disable_parallel_tool_use").is_some_and(|raw| raw.get() == "true") {
        chat.set("parallel_tool_calls", raw_or_null(&false));
    }
    Ok(())
}

/// A tool of the client's. Those that Anthropic's own servers run have no counterpart.
fn tool(raw: &str, at: usize, losses: &mut Losses) -> Result<Option<Raw>, RequestFault> {
    let place = format!("tools[{at}]");
    let fault = |problem: &str| RequestFault::of(&*place, format!("`{place}` {problem}"));
    let tool = RawObject::parse(raw.as_bytes()).map_err(|_| fault("must be an object"))?;
    let kind = word(&tool, "type");
    if let Some(hosted) = kind.filter(|kind| kind != "custom") {
        losses.add_of("tool", &hosted);
        return Ok(None);
    }
    let name = word(&tool, "name").ok_or_else(|| fault("needs a string `name`"))?;
    let mut function = object([("name", quoted(&name))]);
    for (from, to) in [("description", "description"), ("input_schema", "parameters"), ("strict", "strict")] {
        if let Some(value) = tool.get_set(from) {
            function.set(to, value.clone());
        }
    }
    let mut translated = object([("type", quoted("function")), ("function", raw_or_null(&function))]);
    if let Some(mark) = tool.get_set(CACHE_CONTROL) {
        translated.set(CACHE_CONTROL, mark.clone());
    }
    Ok(Some(raw_or_null(&translated)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(body: &Value) -> Result<(Value, Vec<String>), RequestFault> {
        let request = MessagesRequest::parse(body.to_string().as_bytes(), &RequestLimits::default())?;
        let chat = serde_json::from_slice(&request.chat.to_bytes()).unwrap();
        Ok((chat, request.losses.words().to_vec()))
    }

    fn ask(messages: &Value) -> Value {
        json!({"model": "m", "max_tokens": 9, "messages": messages})
    }

    #[test]
    fn a_turn_with_answers_of_tools_is_several_messages() {
        let (chat, losses) = read(&ask(&json!([
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "sky", "input": {"b": 1, "a": 2}},
                {"type": "tool_use", "id": "t2", "name": "sky", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "8C"},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
                    "content": [{"type": "text", "text": "no"}]},
                {"type": "text", "text": "and tomorrow?"}]},
        ])))
        .unwrap();
        let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
        let call = |id: &str, function: Value| json!({"id": id, "type": "function", "function": function});
        assert_eq!(
            chat["messages"],
            json!([
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": "Looking.",
                    "tool_calls": [call("t1", function("sky", "{\"b\":1,\"a\":2}")), call("t2", function("sky", "{}"))],
                    "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
                {"role": "tool", "tool_call_id": "t1", "content": "8C"},
                {"role": "tool", "tool_call_id": "t2", "content": "no", "is_error": true},
                {"role": "user", "content": "and tomorrow?"},
            ])
        );
        assert_eq!(losses, ["block.thinking", "tool_result.is_error"]);
    }

    #[test]
    fn c07_media_is_translated_or_refused() {
        let image =
            |source: Value| json!([{"role": "user", "content": [{"type": "image", "source": source}]}]);
        let inline = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
        let (chat, losses) = read(&ask(&image(inline.clone()))).unwrap();
        assert_eq!(chat["messages"][0]["content"][0]["image_url"]["url"], "data:image/png;base64,AA==");
        assert!(losses.is_empty());
        let (chat, _) = read(&ask(&image(json!({"type": "url", "url": "https://x/y.png"})))).unwrap();
        assert_eq!(chat["messages"][0]["content"][0]["image_url"]["url"], "https://x/y.png");
        let fault = read(&ask(&image(json!({"type": "file", "file_id": "f"})))).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("messages[0].content[0]"));
        let (chat, losses) = read(&ask(&json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": inline}]}]}])))
        .unwrap();
        assert_eq!(chat["messages"][0], json!({"role": "tool", "tool_call_id": "t", "content": ""}));
        assert_eq!(chat["messages"][1]["content"][0]["type"], "image_url");
        assert_eq!(losses, ["tool_result.image_moved"]);
    }

    #[test]
    fn the_rest_of_a_request_is_translated_or_named() {
        let body = json!({
            "model": "m", "max_tokens": 5, "temperature": 0, "top_k": 3, "stream": true,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "stop_sequences": ["END7"], "metadata": {"user_id": "u"}, "container": "c", "thinking": {"type": "adaptive"},
            "tool_choice": {"type": "tool", "name": "sky", "disable_parallel_tool_use": true},
            "tools": [
                {"name": "sky", "description": "d", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"}],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"},
            "messages": [{"role": "user", "content": "hi"}],
        });
        let (chat, losses) = read(&body).unwrap();
        assert_eq!(chat["stop"], json!(["END7"]), "b10");
        assert_eq!(chat["temperature"], 0, "b13");
        assert_eq!(chat["stream_options"]["include_usage"], true);
        assert_eq!(chat["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
        assert_eq!(chat["tools"].as_array().unwrap().len(), 1);
        assert_eq!(chat["tools"][0]["function"]["parameters"], json!({"type": "object"}));
        assert_eq!(chat["tool_choice"], json!({"type": "function", "function": {"name": "sky"}}));
        assert_eq!(chat["parallel_tool_calls"], false);
        assert_eq!(chat["response_format"]["json_schema"]["schema"], json!({"type": "object"}));
        assert!(chat.get("container").is_none() && chat.get("system").is_none());
        assert_eq!(losses, ["output_config.effort", "tool.web_search_20250305", "container", "thinking"]);
    }

    #[test]
    fn b22_extras_go_to_no_other_backend() {
        let body = json!({
            "model": "m", "max_tokens": 5, "metadata": {"user_id": "u"}, "thinking": {"type": "adaptive"},
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "tools": [{"name": "sky", "input_schema": {}, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "yes"}]}],
        });
        let parsed = MessagesRequest::parse(body.to_string().as_bytes(), &RequestLimits::default());
        let mut chat = parsed.unwrap().chat;
        chat.strip_extras();
        let text = String::from_utf8(chat.to_bytes()).unwrap();
        for word in ["metadata", "thinking", "cache_control", "redacted"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(text.contains("Be brief.") && text.contains("sky") && text.contains("yes"), "{text}");
    }

    #[test]
    fn bad_requests_are_refused_at_their_place() {
        for (body, param) in [
            (json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}), "max_tokens"),
            (
                json!({"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "x"}]}),
                "max_tokens",
            ),
            (json!({"model": "m", "max_tokens": 1}), "messages"),
            (ask(&json!([])), "messages"),
            (ask(&json!([{"role": "robot", "content": "x"}])), "messages[0]"),
            (ask(&json!([{"role": "user"}])), "messages[0]"),
            (ask(&json!([{"role": "user", "content": [{"text": "x"}]}])), "messages[0].content[0]"),
            (ask(&json!([{"role": "user", "content": [{"type": "text"}]}])), "messages[0].content[0].text"),
            (ask(&json!([{"role": "user", "content": 7}])), "messages[0].content"),
            (json!({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}), "model"),
        ] {
            assert_eq!(read(&body).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
    }
}
