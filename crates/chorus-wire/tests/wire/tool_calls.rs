//! Streamed tool calls: which part belongs to which call, of which choice.

use crate::chunks::{all, assemble, call, calls, choice, chunk, delta, identity, mend};
use chorus_wire::Assembler;
use serde_json::{Value, json};

#[test]
fn a01_two_calls_of_one_index_stay_two() {
    for index in [json!(null), json!(0)] {
        let part = |id: &str, port: &str| {
            let arguments = json!({ "port": port }).to_string();
            call(
                &json!({"index": index, "id": id, "type": "function", "function": {"name": "tide", "arguments": arguments}}),
            )
        };
        let stream = [part("t1", "Brest"), part("t2", "Hull")];
        let (sent, repair) = mend(&stream);
        assert_eq!(all(&sent, "/choices/0/delta/tool_calls/0/index"), [0, 1]);
        assert_eq!(all(&sent, "/choices/0/delta/tool_calls/0/type"), ["function", "function"]);
        assert_eq!(sent.last().unwrap().pointer("/choices/0/finish_reason").unwrap(), "tool_calls");
        assert!(repair.is_complete());
        let reply = assemble(&stream);
        assert_eq!(
            calls(&reply),
            [("t1", "tide", r#"{"port":"Brest"}"#), ("t2", "tide", r#"{"port":"Hull"}"#)]
        );
        assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
    }
}

#[test]
fn a01_parts_find_their_call() {
    let part = |index: Value, id: Value, name: Value, arguments: &str| {
        call(&json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}))
    };
    let none = Value::Null;
    let two = [("a", "f", r#"{"x":1}"#), ("b", "g", r#"{"y":2}"#)];
    let no_ids = [("", "f", r#"{"x":1}"#), ("", "f", r#"{"y":2}"#)];
    for (what, parts, expect) in [
        (
            "interleaved by index",
            vec![
                part(json!(0), json!("a"), json!("f"), "{\"x\""),
                part(json!(1), json!("b"), json!("g"), "{\"y\""),
                part(json!(0), none.clone(), none.clone(), ":1}"),
                part(json!(1), json!(""), json!(""), ":2}"),
            ],
            two,
        ),
        (
            "no index on what goes on",
            vec![
                part(json!(5), json!("a"), json!("f"), "{\"x\":1}"),
                part(json!(7), json!("b"), json!("g"), "{\"y\""),
                part(none.clone(), none.clone(), none.clone(), ":2}"),
            ],
            two,
        ),
        (
            "id and name on every part, index always 0",
            vec![
                part(json!(0), json!("a"), json!("f"), "{\"x\""),
                part(json!(0), json!("a"), json!("f"), ":1}"),
                part(json!(0), json!("b"), json!("g"), "{\"y\""),
                part(json!(0), json!("b"), json!("g"), ":2}"),
            ],
            two,
        ),
        (
            "no ids, index always 0, name on every part",
            vec![
                part(json!(0), none.clone(), json!("f"), "{\"x\""),
                part(json!(0), none.clone(), json!("f"), ":1}"),
                part(json!(0), none.clone(), json!("f"), "{\"y\":2}"),
            ],
            no_ids,
        ),
        (
            "index always 0, what goes on belongs to the newest",
            vec![
                part(json!(0), json!("a"), json!("f"), "{\"x\":1}"),
                part(json!(0), json!("b"), json!("g"), "{\"y\""),
                part(json!(0), none.clone(), none.clone(), ":2}"),
            ],
            two,
        ),
        (
            "an index only on what goes on",
            vec![
                part(none.clone(), json!("a"), json!("f"), "{\"x\":1}"),
                part(none.clone(), json!("b"), json!("g"), "{\"y\""),
                part(json!(1), none.clone(), none.clone(), ":2}"),
            ],
            two,
        ),
        (
            "an id that comes after the name",
            vec![
                part(json!(0), none.clone(), json!("f"), ""),
                part(json!(0), json!("a"), none.clone(), "{\"x\":1}"),
                part(json!(1), json!("b"), json!("g"), "{\"y\":2}"),
            ],
            two,
        ),
        (
            "one id for every call, told apart by index",
            vec![
                part(json!(0), json!("c"), json!("f"), "{\"x\":1}"),
                part(json!(1), json!("c"), json!("f"), "{\"y\":2}"),
            ],
            [("c", "f", r#"{"x":1}"#), ("c", "f", r#"{"y":2}"#)],
        ),
        (
            "neither ids nor indices",
            vec![
                part(none.clone(), none.clone(), json!("f"), "{\"x\":1}"),
                part(none.clone(), none.clone(), json!("f"), "{\"y\":2}"),
            ],
            no_ids,
        ),
    ] {
        assert_eq!(calls(&assemble(&parts)), expect, "{what}");
    }
}

#[test]
fn repeated_ids_and_names_are_taken_off() {
    let part = |arguments: &str| {
        call(
            &json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments, "x": 1}, "y": 2}),
        )
    };
    let (sent, _) = mend(&[part("{"), part("}")]);
    assert_eq!(sent[0]["choices"][0]["delta"]["tool_calls"][0]["id"], "a");
    assert_eq!(
        sent[1]["choices"][0]["delta"]["tool_calls"][0],
        json!({"index": 0, "function": {"arguments": "}", "x": 1}, "y": 2})
    );
}

#[test]
fn a02_numbering_starts_at_zero_after_text() {
    let stream = [
        delta(&json!({"content": "ok"})),
        call(&json!({"index": 1, "id": "z9", "function": {"name": "roll", "arguments": "{}"}})),
    ];
    assert_eq!(all(&mend(&stream).0, "/choices/0/delta/tool_calls/0/index"), [0]);
    assert_eq!(calls(&assemble(&stream)), [("z9", "roll", "{}")]);
}

#[test]
fn a03_choices_keep_their_index_and_end_once() {
    let part = |index: u32, id: &str| {
        json!({"choices": [{"index": index, "delta": {"tool_calls": [
            {"index": 0, "id": id, "function": {"name": "f", "arguments": "{}"}}]}}]})
    };
    let end = |index: u32| json!({"choices": [{"index": index, "delta": {}, "finish_reason": "tool_calls"}]});
    let (sent, _) = mend(&[part(0, "a"), part(1, "b"), end(0), end(1), end(1)]);
    assert_eq!(all(&sent, "/choices/0/index"), [0, 1, 0, 1], "the second end of choice 1 is not sent");
    assert_eq!(all(&sent, "/choices/0/delta/role"), ["assistant", "assistant"]);
    let mut assembler = Assembler::default();
    sent.iter().for_each(|body| assembler.push(&chunk(body)));
    let reply: Value = serde_json::from_slice(&assembler.finish(&identity()).to_bytes()).unwrap();
    assert_eq!(reply.pointer("/choices/0/message/tool_calls/0/id").unwrap(), "a");
    assert_eq!(reply.pointer("/choices/1/message/tool_calls/0/id").unwrap(), "b");
}

#[test]
fn b15_parts_become_text_and_bare_arguments_become_strings() {
    let parts = delta(&json!({"role": "assistant", "content": [{"type": "text", "text": "Hi"}], "x": 1}));
    let (sent, _) = mend(&[parts]);
    assert_eq!(sent[0]["choices"][0]["delta"], json!({"role": "assistant", "content": "Hi", "x": 1}));
    let (sent, _) =
        mend(&[call(&json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"n": 1}}}))]);
    assert_eq!(sent[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"], r#"{"n":1}"#);
}

#[test]
fn b17_a_reason_that_the_backend_gave_stands() {
    let forced = choice(
        &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "mark", "arguments": "{}"}}]}),
        &json!("stop"),
    );
    let reply = assemble(std::slice::from_ref(&forced));
    assert_eq!((reply.finish_reason.as_deref(), reply.tool_calls.len()), (Some("stop"), 1));
}
