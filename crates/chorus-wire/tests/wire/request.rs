//! Requests: what is refused and by which name, what is accepted, and that what nobody edited is forwarded as sent.

use chorus_wire::{ChatRequest, Message, RequestFault, RequestLimits, Role, tokens};

fn parse(body: &str) -> Result<ChatRequest, RequestFault> {
    ChatRequest::parse(body.as_bytes(), &RequestLimits::default())
}

fn text(request: &ChatRequest) -> String {
    String::from_utf8(request.to_bytes()).unwrap()
}

/// A body with one user message and that further text.
fn with(fields: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}]{fields}}}"#)
}

#[test]
fn b07_bad_requests_name_their_field() {
    let message =
        |message: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"}},{message}]}}"#);
    let cases: Vec<(String, Option<&str>)> = vec![
        (String::new(), None),
        ("{".into(), None),
        ("[]".into(), None),
        ("null".into(), None),
        (r#"{"model":"m"} trailing"#.into(), None),
        ("\u{feff}{}".into(), None),
        (with(r#","temperature":NaN"#), None),
        (with(r#","a":1,"a":2"#), Some("a")),
        (with(r#","\u006dodel":"other""#), Some("model")),
        (r#"{"messages":[{"role":"user","content":"hi"}]}"#.into(), Some("model")),
        (r#"{"model":null,"messages":[{"role":"user"}]}"#.into(), Some("model")),
        (r#"{"model":"","messages":[{"role":"user"}]}"#.into(), Some("model")),
        (r#"{"model":["m"],"messages":[{"role":"user"}]}"#.into(), Some("model")),
        (r#"{"model":"m"}"#.into(), Some("messages")),
        (r#"{"model":"m","messages":null}"#.into(), Some("messages")),
        (r#"{"model":"m","messages":[]}"#.into(), Some("messages")),
        (r#"{"model":"m","messages":"hi"}"#.into(), Some("messages")),
        (r#"{"model":"m","messages":{"role":"user"}}"#.into(), Some("messages")),
        (message(r#""hi""#), Some("messages[1]")),
        (message(r#"["user","hi"]"#), Some("messages[1]")),
        (message("null"), Some("messages[1]")),
        (message(r#"{"role":"user","role":"system","content":"hi"}"#), Some("messages[1]")),
        (message(r#"{"content":"hi"}"#), Some("messages[1].role")),
        (message(r#"{"role":"","content":"hi"}"#), Some("messages[1].role")),
        (message(r#"{"role":7,"content":"hi"}"#), Some("messages[1].role")),
        (message(r#"{"role":"user","content":7}"#), Some("messages[1].content")),
        (message(r#"{"role":"user","content":{"type":"text"}}"#), Some("messages[1].content")),
        (message(r#"{"role":"user","content":[7]}"#), Some("messages[1].content")),
        (message(r#"{"role":"assistant","tool_calls":"x"}"#), Some("messages[1].tool_calls")),
        (message(r#"{"role":"assistant","tool_calls":[1]}"#), Some("messages[1].tool_calls")),
        (message(r#"{"role":"tool","tool_call_id":3}"#), Some("messages[1].tool_call_id")),
        (with(r#","temperature":9"#), Some("temperature")),
        (with(r#","temperature":-0.1"#), Some("temperature")),
        (with(r#","temperature":"1""#), Some("temperature")),
        (with(r#","temperature":1e999"#), Some("temperature")),
        (with(r#","top_p":1.5"#), Some("top_p")),
        (with(r#","n":0"#), Some("n")),
        (with(r#","n":1.5"#), Some("n")),
        (with(r#","n":129"#), Some("n")),
        (with(r#","max_tokens":0"#), Some("max_tokens")),
        (with(r#","max_tokens":-1"#), Some("max_tokens")),
        (with(r#","max_tokens":true"#), Some("max_tokens")),
        (with(r#","max_completion_tokens":0.5"#), Some("max_completion_tokens")),
        (with(r#","stream":"yes""#), Some("stream")),
        (with(r#","stream":1"#), Some("stream")),
        (with(r#","stream_options":true"#), Some("stream_options")),
        (with(r#","stop":7"#), Some("stop")),
        (with(r#","stop":["a",7]"#), Some("stop")),
        (with(r#","tools":{}"#), Some("tools")),
        (with(r#","tools":["web_search"]"#), Some("tools")),
        (with(r#","plugins":"fusion""#), Some("plugins")),
        (with(r#","plugins":[null]"#), Some("plugins")),
    ];
    for (body, param) in cases {
        let fault = parse(&body).expect_err(&body);
        assert_eq!(fault.param.as_deref(), param, "{body}: {fault}");
        assert!(!fault.message.is_empty(), "{body}");
    }
}

#[test]
fn accepts_what_the_api_accepts() {
    for fields in [
        "",
        r#","temperature":0,"top_p":1.0,"n":1e0,"max_tokens":1"#,
        r#","temperature":null,"top_p":null,"n":null,"max_tokens":null,"stream":null,"stop":null,"tools":null"#,
        r#","plugins":null,"stream_options":null,"max_completion_tokens":null"#,
        r#","stop":"\n\n""#,
        r#","stop":[],"tools":[],"plugins":[]"#,
        r#","stream":true,"stream_options":{"include_usage":true}"#,
        r#","unknown":{"deep":[1,2,{"x":null}]},"seed":-1,"user":"""#,
    ] {
        let body = with(fields);
        let request = parse(&body).unwrap_or_else(|fault| panic!("{body}: {fault}"));
        assert_eq!(text(&request), body);
    }
}

#[test]
fn max_messages_is_a_bound() {
    let body =
        |n: usize| format!(r#"{{"model":"m","messages":[{}]}}"#, vec![r#"{"role":"user"}"#; n].join(","));
    let limits = RequestLimits { max_messages: 3 };
    assert_eq!(ChatRequest::parse(body(3).as_bytes(), &limits).unwrap().messages().len(), 3);
    let fault = ChatRequest::parse(body(4).as_bytes(), &limits).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("messages"));
    assert!(fault.message.contains("max_messages"), "{fault}");
}

#[test]
fn deep_nesting_neither_crashes_nor_costs_the_request() {
    let open = "[".repeat(200_000);
    for body in [open.clone(), format!(r#"{{"x":{open}"#), with(&format!(r#","x":{open}"#))] {
        assert_eq!(parse(&body).unwrap_err().param, None);
    }
    let close = "]".repeat(200_000);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":{open}{close}}}]}}"#);
    assert_eq!(parse(&body).unwrap_err().param.as_deref(), Some("messages[0].content"));
    let body = with(&format!(r#","x":{open}{close}"#));
    assert_eq!(text(&parse(&body).unwrap()), body);
}

#[test]
fn a_million_keys_are_no_million_passes() {
    let fields: String = (0..300_000).map(|n| format!(r#","k{n}":0"#)).collect();
    assert!(parse(&with(&fields)).is_ok());
    assert_eq!(parse(&with(&format!(r#"{fields},"k7":1"#))).unwrap_err().param.as_deref(), Some("k7"));
}

#[test]
fn unedited_values_are_forwarded_byte_for_byte() {
    let body = r#"{"zeta":1.0,"model":"m\u0041","n":1e0,"messages":[ {"role" : "user","content":"caf\u00e9 \ud83d","name":null} ],"temperature":0.10,"big":123456789012345678901234567890,"f":false,"s":"","z":0,"nil":null,"tools":[{"type":"function","function":{"name":"b","parameters":{"z":1,"a":2}}}]}"#;
    let request = parse(body).unwrap();
    assert_eq!(text(&request), body);
    assert_eq!(request.model(), "mA");
    let spaced = body.replace("{\"zeta\":1.0,", " {\n \"zeta\" : 1.0 ,\t");
    assert_eq!(text(&parse(&spaced).unwrap()), body, "only whitespace between fields goes");
}

#[test]
fn setters_change_their_field_alone_and_keep_its_place() {
    let mut request =
        parse(r#"{"a":1.0,"model":"m","messages":[{"role":"user","content":"hi"}],"top_k":0}"#).unwrap();
    let before = request.clone();
    request.set_model("n\"m");
    request.set("top_k", &5);
    request.set("new", &"v");
    request.remove("a");
    assert_eq!(request.model(), "n\"m");
    let expect = r#"{"model":"n\"m","messages":[{"role":"user","content":"hi"}],"top_k":5,"new":"v"}"#;
    assert_eq!(text(&request), expect);
    assert!(text(&before).contains(r#""model":"m""#), "the clone is its own");
}

#[test]
fn edited_conversations_keep_each_message_as_written() {
    let body = r#"{"model":"m","messages":[{"role":"user", "content":"a\u0062","x":1.0},{"role":"assistant","content":null}],"n":1}"#;
    let mut request = parse(body).unwrap();
    let mut messages = request.messages().to_vec();
    messages.insert(0, Message::new(Role::System, "be \"brief\""));
    request.set_messages(messages);
    assert_eq!(request.messages().len(), 3);
    assert_eq!(
        text(&request),
        r#"{"model":"m","messages":[{"role":"system","content":"be \"brief\""},{"role":"user", "content":"a\u0062","x":1.0},{"role":"assistant","content":null}],"n":1}"#
    );
    assert_eq!(parse(&text(&request)).unwrap().messages().first().unwrap().role, Role::System);
}

#[test]
fn own_requests_read_back() {
    let request = ChatRequest::new("judge", vec![Message::new(Role::User, "line\nbreak")]);
    assert_eq!(text(&request), r#"{"model":"judge","messages":[{"role":"user","content":"line\nbreak"}]}"#);
    let again = parse(&text(&request)).unwrap();
    assert_eq!((again.model(), again.last_user_text()), ("judge", "line\nbreak"));
}

#[test]
fn streaming_is_switched_without_losing_other_options() {
    let usage = r#","stream":true,"stream_options":{"include_usage":true}"#;
    let mixed = r#","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}"#;
    for (before, stream, include_usage, after) in [
        ("", false, true, ""),
        ("", true, false, r#","stream":true"#),
        ("", true, true, usage),
        (r#","stream":null"#, false, false, r#","stream":null"#),
        (r#","stream":null,"x":1"#, true, false, r#","stream":true,"x":1"#),
        (r#","stream":false,"x":1"#, true, false, r#","stream":true,"x":1"#),
        (usage, true, true, usage),
        (usage, true, false, r#","stream":true"#),
        (usage, false, true, r#","stream":false"#),
        (mixed, true, false, r#","stream":true,"stream_options":{"include_obfuscation":false}"#),
        (
            r#","stream":true,"stream_options":{"include_usage":false,"x":1.0}"#,
            true,
            true,
            r#","stream":true,"stream_options":{"include_usage":true,"x":1.0}"#,
        ),
    ] {
        let mut request = parse(&with(before)).unwrap();
        request.set_stream(stream, include_usage);
        assert_eq!(text(&request), with(after), "{before} → {stream}, {include_usage}");
        assert_eq!((request.stream(), request.include_usage()), (stream, stream && include_usage));
    }
}

#[test]
fn b01_every_role_is_read_and_developer_text_is_not_the_users() {
    let names = ["system", "developer", "user", "assistant", "tool", "function"];
    let list: Vec<String> =
        names.iter().map(|r| format!(r#"{{"role":"{r}","content":"{r} text"}}"#)).collect();
    let request = parse(&format!(r#"{{"model":"m","messages":[{}]}}"#, list.join(","))).unwrap();
    let read: Vec<&str> = request.messages().iter().map(|message| message.role.as_str()).collect();
    assert_eq!(read, names);
    assert_eq!(request.messages().last().unwrap().role, Role::Other("function".into()));
    assert_eq!(request.last_user_text(), "user text");
    let only_developer = parse(r#"{"model":"m","messages":[{"role":"developer","content":"x"}]}"#).unwrap();
    assert_eq!(only_developer.last_user_text(), "");
}

#[test]
fn b02_text_parts_read_like_one_string() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Prove that sqrt(2) "},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"is irrational"},{"type":"input_image"},{"type":"image"},{"type":"input_audio","input_audio":{}},{"type":"input_text","text":"!"},{"type":"file","file":{}},{"type":"text"}]}]}"#;
    let request = parse(body).unwrap();
    let message = request.messages().first().unwrap();
    assert_eq!(message.text, "Prove that sqrt(2) is irrational!");
    assert_eq!((message.images, message.audio), (3, 1));
    assert_eq!(text(&request), body);
}

#[test]
fn b03_null_and_missing_content_are_forwarded_as_they_are() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"weather?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{\"c\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"8C"},{"role":"assistant","tool_calls":null},{"role":"user","content":"and tomorrow?"}]}"#;
    let request = parse(body).unwrap();
    let [_, call, result, bare, _] = request.messages() else { panic!("five messages") };
    assert_eq!((call.text.as_str(), bare.text.as_str()), ("", ""));
    let tool_call = call.tool_calls.first().unwrap();
    assert_eq!((&*tool_call.id, &*tool_call.name, &*tool_call.arguments), ("c1", "w", r#"{"c":1}"#));
    assert_eq!(result.tool_call_id.as_deref(), Some("c1"));
    assert_eq!(text(&request), body);
}

#[test]
fn half_a_surrogate_pair_is_read_and_forwarded() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"ok \ud83d"}]}"#;
    let request = parse(body).unwrap();
    assert!(request.last_user_text().starts_with("ok \u{fffd}"));
    assert_eq!(text(&request), body);
}

#[test]
fn reads_tools_and_the_smaller_output_bound() {
    let request =
        parse(&with(r#","tools":[{"a":1},{"b":2}],"max_tokens":40.0,"max_completion_tokens":50"#)).unwrap();
    assert_eq!((request.tool_count(), request.max_output_tokens()), (2, Some(40)));
    let request = parse(&with(r#","tools":null,"max_tokens":null"#)).unwrap();
    assert_eq!((request.tool_count(), request.max_output_tokens()), (0, None));
}

#[test]
fn token_estimates_count_every_part() {
    assert_eq!([0, 1, 4, 5].map(|n| tokens::of_text(&"x".repeat(n))), [0, 1, 1, 2]);
    let base = tokens::of_request(&parse(&with("")).unwrap());
    assert_eq!(base, 1 + 4, "two bytes of text, one message");
    let tool = r#"{"type":"f"}"#;
    let tools = parse(&with(&format!(r#","tools":[{tool},{tool}],"max_tokens":100"#))).unwrap();
    assert_eq!(tokens::of_request(&tools), base + 2 * (8 + 3) + 100);
    let image = r#"{"type":"image_url","image_url":{"url":"AAAAAAAAAAAAAAAAAAAA"}}"#;
    let call = r#"{"id":"c","function":{"name":"ab","arguments":"{}"}}"#;
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{image}]}},{{"role":"assistant","tool_calls":[{call}]}}]}}"#
    );
    assert_eq!(tokens::of_request(&parse(&body).unwrap()), 8192 + 4 + 4 + 8 + 1);
    let huge = parse(&with(r#","max_tokens":1e300"#)).unwrap();
    assert_eq!(tokens::of_request(&huge), u64::MAX);
}
