//! Whole replies, usage, errors and the model list.

use chorus_wire::{ChatReply, ErrorBody, ModelCard, ModelList, RawObject, Usage, finish};
use serde_json::{Value, json};

fn reply(message: &Value) -> ChatReply {
    let body =
        json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "x": 1});
    ChatReply::parse(body.to_string().as_bytes()).unwrap()
}

fn usage(body: &Value) -> Option<Usage> {
    let body = json!({"choices": [], "usage": body});
    ChatReply::parse(body.to_string().as_bytes()).unwrap().usage
}

#[test]
fn what_is_no_reply_is_an_error() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"choices":null}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[1]}"#,
        r#"{"choices":[[{}]]}"#,
        r#"{"error":{"message":"overloaded"}}"#,
        r#"{"choices":[{"message":{"content":7}}]}"#,
        r#"{"choices":[{"message":{"tool_calls":7}}]}"#,
        r#"{"choices":[],"choices":[]}"#,
        r#"{"choices":[]} x"#,
    ] {
        assert!(ChatReply::parse(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn reads_the_first_choice() {
    let calls = json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let full = reply(&json!({"role": "assistant", "content": null, "reasoning": "r", "tool_calls": calls}));
    assert_eq!((full.content.as_str(), full.reasoning.as_deref()), ("", Some("r")));
    assert_eq!((&*full.tool_calls[0].name, full.finish_reason.as_deref()), ("f", Some("stop")));
    for (message, usable) in [
        (json!({"content": "a"}), true),
        (json!({"content": " \n"}), false),
        (json!({"content": null}), false),
        (json!({}), false),
        (json!(null), false),
        (json!({"content": "", "reasoning_content": "hm"}), true),
        (json!({"content": "", "reasoning_content": null, "reasoning": ""}), false),
        (json!({"content": null, "tool_calls": calls}), true),
        (json!({"content": [{"type": "text", "text": "a"}]}), true),
        (json!({"content": [{"type": "thinking", "thinking": "a"}]}), false),
    ] {
        assert_eq!(reply(&message).is_usable(), usable, "{message}");
    }
    assert!(!ChatReply::parse(br#"{"choices":[]}"#).unwrap().is_usable());
}

#[test]
fn an_unedited_reply_keeps_its_text() {
    let body = r#"{"id":"x","choices":[{"message":{"content":"\u0061", "x":1.0}}],"usage":{"prompt_tokens":1e0},"y":0.10}"#;
    let mut reply = ChatReply::parse(body.as_bytes()).unwrap();
    reply.normalise();
    assert_eq!(String::from_utf8(reply.to_bytes()).unwrap(), body);
    reply.set("model", &"auto");
    reply.set("usage", &Usage { total_tokens: 7, ..Usage::default() });
    assert_eq!(reply.usage.unwrap().total_tokens, 7);
    reply.remove_all(&["y", "usage", "absent"]);
    assert_eq!(reply.usage, None);
    let expect = r#"{"id":"x","choices":[{"message":{"content":"\u0061", "x":1.0}}],"model":"auto"}"#;
    assert_eq!(String::from_utf8(reply.to_bytes()).unwrap(), expect);
}

#[test]
fn b15_parts_become_one_string_in_every_choice() {
    let body = r#"{"choices":[{"index":0,"x":1.0,"message":{"role":"assistant","content":[{"type":"text","text":"H"},{"type":"text","text":"i"}],"y":1e0}},{"index":1,"message":{"content":[]}},{"index":2,"message":{"content":null}}]}"#;
    let mut reply = ChatReply::parse(body.as_bytes()).unwrap();
    assert_eq!(reply.content, "Hi");
    reply.normalise();
    let expect = r#"{"choices":[{"index":0,"x":1.0,"message":{"role":"assistant","content":"Hi","y":1e0}},{"index":1,"message":{"content":""}},{"index":2,"message":{"content":null}}]}"#;
    assert_eq!(String::from_utf8(reply.to_bytes()).unwrap(), expect);
}

#[test]
fn b16_reasons_become_the_apis_words() {
    for (sent, expect) in [
        (json!("SAFETY"), json!("content_filter")),
        (json!("RECITATION"), json!("content_filter")),
        (json!("max_output"), json!("length")),
        (json!("MAX_TOKENS"), json!("length")),
        (json!("eos"), json!("stop")),
        (json!("end_turn"), json!("stop")),
        (json!("tool_use"), json!("tool_calls")),
        (json!("function_call"), json!("function_call")),
        (json!("weird"), json!("weird")),
        (json!(""), Value::Null),
        (Value::Null, Value::Null),
    ] {
        let calls = json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]);
        let body = json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": sent}]});
        let mut reply = ChatReply::parse(body.to_string().as_bytes()).unwrap();
        reply.normalise();
        assert_eq!(reply.finish_reason.as_deref(), expect.as_str(), "{sent}");
        let body: Value = serde_json::from_slice(&reply.to_bytes()).unwrap();
        assert_eq!(body["choices"][0]["finish_reason"], expect);
        assert_eq!(body["choices"][0]["message"]["tool_calls"], calls, "the call survives");
    }
    assert_eq!(finish::canonical("weird"), None);
}

#[test]
fn j02_usage_says_no_less_than_was_spent() {
    let tokens = |prompt_tokens, completion_tokens, total_tokens| {
        Some(Usage { prompt_tokens, completion_tokens, total_tokens, estimated: false })
    };
    for (body, expect) in [
        (json!({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 90}), tokens(10, 20, 90)),
        (json!({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 0}), tokens(10, 20, 30)),
        (json!({"prompt_tokens": 10.0, "completion_tokens": null}), tokens(10, 0, 10)),
        (json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}), tokens(0, 0, 0)),
        (json!({"total_tokens": 5, "prompt_tokens": -3}), tokens(0, 0, 5)),
        (json!({"prompt_tokens": u64::MAX, "completion_tokens": 1}), tokens(u64::MAX, 1, u64::MAX)),
        (json!({}), None),
        (json!({"prompt_tokens": "7"}), None),
        (json!([7, 3, 10]), None),
        (Value::Null, None),
    ] {
        assert_eq!(usage(&body), expect, "{body}");
    }
    let mut sum = Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: u64::MAX, estimated: false };
    sum += Usage { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, estimated: true };
    assert_eq!(
        sum,
        Usage { prompt_tokens: 2, completion_tokens: 3, total_tokens: u64::MAX, estimated: true }
    );
}

#[test]
fn our_own_reply_reads_back() {
    let own = ChatReply::text("id", "auto", 7, "Hi \"you\"");
    let again = ChatReply::parse(&own.to_bytes()).unwrap();
    assert_eq!((&again.content, &again.finish_reason), (&own.content, &own.finish_reason));
    let body: Value = serde_json::from_slice(&own.to_bytes()).unwrap();
    assert_eq!((&body["object"], &body["created"]), (&json!("chat.completion"), &json!(7)));
    assert_eq!(body["choices"][0]["message"], json!({"role": "assistant", "content": "Hi \"you\""}));
}

#[test]
fn b07_errors_of_every_shape_are_read() {
    for (body, message, kind, code) in [
        (r#"{"error":{"message":"m","type":"t","param":"p","code":"c"}}"#, "m", "t", Some("c")),
        (r#"{"error":{"message":"m","type":null,"code":429}}"#, "m", "api_error", Some("429")),
        (r#"{"error":"m"}"#, "m", "api_error", None),
        (r#"{"error":"m","code":7,"type":"t"}"#, "m", "t", Some("7")),
        (r#"{"message":"m","type":"BadRequestError","code":400}"#, "m", "BadRequestError", Some("400")),
        (r#"{"detail":"m"}"#, "m", "api_error", None),
        (r#"{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}"#, "m", "api_error", None),
        (r#"[{"error":{"code":400,"message":"m","status":"INVALID"}}]"#, "m", "api_error", Some("400")),
        (r#""m""#, "m", "api_error", None),
        (r#"{"error":{"type":"overloaded"}}"#, "overloaded", "overloaded", None),
        (r#"{"error":{"code":503}}"#, "error 503", "api_error", Some("503")),
        (r#"{"error":{"message":{"why":1}}}"#, r#"{"why":1}"#, "api_error", None),
        (r#"{"error":true}"#, "an error without a message", "api_error", None),
    ] {
        let error = ErrorBody::parse(body.as_bytes()).unwrap_or_else(|| panic!("{body}"));
        assert_eq!((&*error.message, &*error.kind, error.code.as_deref()), (message, kind, code), "{body}");
    }
    for body in ["", "<html>", "7", "[]", "null", "{}", r#"{"error":null}"#, r#"{"choices":[]}"#] {
        assert_eq!(ErrorBody::parse(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn errors_are_written_with_all_four_fields() {
    let error = ErrorBody { message: "m\n".into(), kind: "t".into(), param: None, code: Some("c".into()) };
    let text = String::from_utf8(error.to_bytes()).unwrap();
    assert_eq!(text, r#"{"error":{"message":"m\n","type":"t","param":null,"code":"c"}}"#);
    assert_eq!(ErrorBody::parse(text.as_bytes()), Some(error));
}

#[test]
fn b19_an_empty_model_list_is_a_list() {
    let empty = serde_json::to_value(ModelList::new(Vec::new())).unwrap();
    assert_eq!(empty, json!({"object": "list", "data": []}));
    let card = ModelCard {
        id: "vllm-sr/auto".into(),
        object: "model",
        created: 1,
        owned_by: "chorus".into(),
        description: None,
        context_window: Some(8192),
    };
    let list = serde_json::to_value(ModelList::new(vec![card])).unwrap();
    let expect = json!({"id": "vllm-sr/auto", "object": "model", "created": 1, "owned_by": "chorus", "context_window": 8192});
    assert_eq!(list["data"][0], expect);
}

#[test]
fn objects_are_edited_in_place() {
    let mut object = RawObject::parse(br#"{"a":1.0,"\u0062":"x","c":null}"#).unwrap();
    assert_eq!(object.read::<f64>("a").unwrap(), Some(1.0));
    assert!(object.read::<u8>("b").is_err());
    assert_eq!(object.read::<u8>("none").unwrap(), None);
    assert!(object.get("c").is_some() && object.get_set("c").is_none());
    object.write("b", &[1, 2]).unwrap();
    assert!(object.write("a", &std::collections::BTreeMap::from([((), 1)])).is_err());
    assert_eq!(object.remove("c").unwrap().get(), "null");
    assert!(object.remove("c").is_none());
    // However a key is written: `b` came with an escape.
    let mut other = object.clone();
    other.remove_all(&["b", "c"]);
    assert_eq!(other.to_bytes(), br#"{"a":1.0}"#);
    object.write("\"q\"", &true).unwrap();
    assert_eq!(object.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b", "\"q\""]);
    assert_eq!(object.to_bytes(), br#"{"a":1.0,"b":[1,2],"\"q\"":true}"#);
    assert!(RawObject::parse(b"{}").unwrap().is_empty());
}
