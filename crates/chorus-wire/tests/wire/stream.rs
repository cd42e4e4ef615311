//! Streams: what backends get wrong in the order, the ends and the shape of chunks.

use crate::chunks::{all, assemble, choice, chunk, delta, identity, mend};
use chorus_wire::{Assembler, StreamRepair};
use serde_json::{Value, json};

#[test]
fn one_chunk_may_carry_several_choices() {
    let both = json!({"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]});
    let ends = json!({"choices": [
        {"index": 0, "delta": {"content": "!"}, "finish_reason": "stop"},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
        {"index": 1, "delta": {}, "finish_reason": "length"}]});
    let (sent, repair) = mend(&[both, ends]);
    assert_eq!(sent[0]["choices"][1]["delta"], json!({"content": "b", "role": "assistant"}));
    let indices: Vec<&Value> = sent[1]["choices"].as_array().unwrap().iter().map(|c| &c["index"]).collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!((sent.len(), repair.is_complete()), (2, true));
}

#[test]
fn a06_both_spellings_of_reasoning_are_output() {
    for key in ["reasoning", "reasoning_content"] {
        let mut stream: Vec<Value> = (0..60).map(|k| delta(&json!({ key: format!("step {k}") }))).collect();
        stream.push(delta(&json!({"content": "42"})));
        stream.push(choice(&json!({}), &json!("stop")));
        assert!(chunk(&stream[0]).has_output());
        let (sent, _) = mend(&stream);
        assert_eq!(all(&sent, &format!("/choices/0/delta/{key}")).len(), 60);
        let reply = assemble(&stream);
        assert_eq!(reply.content, "42");
        assert!(reply.reasoning.unwrap().ends_with("step 59"));
    }
    let both = chunk(&delta(&json!({"reasoning": "r", "reasoning_content": "r"})));
    assert_eq!(both.choices[0].reasoning.as_deref(), Some("r"), "not twice");
}

#[test]
fn a11_reports_pass_and_are_no_output() {
    let stream = [
        json!({"id": "", "choices": [], "prompt_filter_results": []}),
        json!({"choices": [{"index": 0, "finish_reason": null, "content_filter_results": {}}]}),
        delta(&json!({"content": "fine"})),
        choice(&json!({}), &json!("stop")),
    ];
    assert!(!chunk(&stream[0]).has_output() && !chunk(&stream[1]).has_output());
    let (sent, _) = mend(&stream);
    assert_eq!(sent[0]["prompt_filter_results"], json!([]));
    assert_eq!(sent[1]["choices"][0]["delta"], json!({"role": "assistant"}));
    assert_eq!(sent[1]["choices"][0]["content_filter_results"], json!({}));
    assert_eq!(assemble(&stream).content, "fine");
    let (pings, _) = mend(&[json!({"type": "ping"}), json!({"choices": null, "x": 1}), json!({})]);
    assert_eq!(pings, Vec::<Value>::new());
}

#[test]
fn a12_an_error_is_read_and_not_forwarded() {
    for body in [
        json!({"error": {"message": "overloaded", "type": "server_error", "code": 529}}),
        json!({"error": "overloaded"}),
        json!({"object": "error", "message": "overloaded", "code": 500}),
        json!({"choices": [], "error": {"message": "overloaded"}}),
    ] {
        let mut repair = StreamRepair::new(identity());
        repair.push(chunk(&delta(&json!({"content": "The capital is "}))));
        let parsed = chunk(&body);
        assert_eq!(parsed.error.as_ref().unwrap().message, "overloaded", "{body}");
        assert!(repair.push(parsed).is_none());
        assert!(!repair.is_complete());
        assert!(repair.finish().is_empty(), "no invented end (case A13)");
    }
    let fine = chunk(&json!({"choices": [], "error": null, "message": "not an error beside choices"}));
    assert_eq!(fine.error, None);
}

#[test]
fn a13_a_cut_stream_is_not_complete() {
    let mut repair = StreamRepair::new(identity());
    assert!(repair.is_complete(), "nothing was promised");
    repair.push(chunk(&delta(&json!({"content": "The capital is "}))));
    assert!(!repair.is_complete());
}

#[test]
fn a20_a21_one_identity_and_one_role() {
    let stream = ["a", "b", "c", "d"].map(
        |text| json!({"model": "acme/llama-x-fp8", "choices": [{"index": 0, "delta": {"content": text}}]}),
    );
    let (sent, _) = mend(&stream);
    for body in &sent {
        assert_eq!(body["id"], "chatcmpl-1");
        assert_eq!(body["model"], "vllm-sr/auto");
        assert_eq!(body["created"], 1_700_000_000_u64);
        assert_eq!(body["object"], "chat.completion.chunk");
    }
    assert_eq!(all(&sent, "/choices/0/delta/role"), ["assistant"]);
    let eager: Vec<Value> = (0..3).map(|_| delta(&json!({"role": "assistant", "content": "x"}))).collect();
    assert_eq!(all(&mend(&eager).0, "/choices/0/delta/role"), ["assistant"]);
}

#[test]
fn a25_empty_reasons_are_null() {
    let stream = [
        choice(&json!({"content": "a"}), &json!("")),
        choice(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}), &json!("")),
        choice(&json!({}), &json!("tool_calls")),
    ];
    let (sent, _) = mend(&stream);
    assert_eq!(all(&sent, "/choices/0/finish_reason"), [Value::Null, Value::Null, json!("tool_calls")]);
    assert_eq!(sent[0]["choices"][0].get("finish_reason_inferred"), None);
}

#[test]
fn a25_the_first_reason_stands_and_later_text_still_passes() {
    let stream = [
        choice(&json!({"content": "a"}), &json!("stop")),
        choice(&json!({"content": "b"}), &json!("length")),
        choice(&json!({}), &json!("length")),
    ];
    let (sent, _) = mend(&stream);
    assert_eq!(all(&sent, "/choices/0/finish_reason"), [json!("stop"), Value::Null]);
    let mut assembler = Assembler::default();
    stream.iter().for_each(|body| assembler.push(&chunk(body)));
    let reply = assembler.finish(&identity());
    assert_eq!((reply.content.as_str(), reply.finish_reason.as_deref()), ("ab", Some("stop")));
}

#[test]
fn a_missing_choice_index_is_the_place() {
    let (sent, _) = mend(&[json!({"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]})]);
    assert_eq!((&sent[0]["choices"][0]["index"], &sent[0]["choices"][1]["index"]), (&json!(0), &json!(1)));
}

#[test]
fn a25_a_missing_reason_is_inferred_and_marked() {
    let (sent, repair) = mend(&[choice(&json!({"content": "a"}), &json!(""))]);
    let end = sent.last().unwrap();
    assert_eq!(
        end["choices"],
        json!([{"index": 0, "delta": {}, "finish_reason": "stop", "finish_reason_inferred": true}])
    );
    assert_eq!(end["id"], "chatcmpl-1");
    assert!(repair.is_complete());
    let (silent, _) = mend(&[delta(&json!({"role": "assistant", "content": ""}))]);
    assert_eq!(silent.len(), 1, "a choice without output has nothing to end");
}

#[test]
fn b16_reasons_become_the_apis_words() {
    for (sent, expect) in
        [("SAFETY", "content_filter"), ("max_output", "length"), ("eos", "stop"), ("weird", "weird")]
    {
        let parsed = chunk(&choice(&json!({}), &json!(sent)));
        assert_eq!(parsed.choices[0].finish_reason.as_deref(), Some(expect));
        let (out, _) = mend(&[choice(&json!({"content": "a"}), &json!(sent))]);
        assert_eq!(out[0]["choices"][0]["finish_reason"], expect);
    }
}
