//! Streams: what must reach the client or the reply unchanged, unforged and counted once.

use crate::chunks::{all, assemble, call, choice, chunk, delta, identity, json_of, mend};
use chorus_wire::{Assembler, ChatReply, Chunk, StreamRepair, Usage};
use serde_json::{Value, json};

#[test]
fn a04_usage_is_held_back_for_a_chunk_of_its_own() {
    let mut last = choice(&json!({}), &json!("stop"));
    last["usage"] =
        json!({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}});
    let mut first = delta(&json!({"content": "hi"}));
    first["usage"] = Value::Null;
    let (sent, repair) = mend(&[first, last, json!({"id": "x", "choices": []})]);
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(all(&sent, "/usage"), Vec::<Value>::new());
    let expect = Usage { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10, estimated: false };
    assert_eq!(repair.last_usage(), Some(expect));
    let usage = json_of(&repair.usage_chunk().unwrap());
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["total_tokens"], 10);
    assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
    assert_eq!(usage["id"], "chatcmpl-1");
}

#[test]
fn a04_what_came_with_the_usage_waits_with_it() {
    let totals =
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "timings": {"n": 1}});
    let (sent, repair) = mend(&[choice(&json!({"content": "a"}), &json!("stop")), totals]);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(json_of(&repair.usage_chunk().unwrap())["timings"], json!({"n": 1}));
    assert!(mend(&[]).1.usage_chunk().is_none());
}

#[test]
fn a04_a_usage_chunk_of_our_own_reads_back() {
    let mut own =
        Chunk::usage(Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, estimated: true });
    identity().stamp(&mut own);
    own.set("fusion", &json!({"panel": 3}));
    let body = json_of(&own);
    assert_eq!(
        (&body["choices"], &body["model"], &body["fusion"]["panel"]),
        (&json!([]), &json!("vllm-sr/auto"), &json!(3))
    );
    assert_eq!(chunk(&body).usage, own.usage);
}

#[test]
fn a07_log_probabilities_are_appended() {
    let tokens = [("A", -0.1), ("B", -2.3), ("C", -0.2), ("D", -0.4)];
    let stream = tokens.map(|(token, logprob)| {
        let mut body = delta(&json!({ "content": token }));
        body["choices"][0]["logprobs"] =
            json!({"content": [{"token": token, "logprob": logprob}], "refusal": null});
        body
    });
    let reply: Value = serde_json::from_slice(&assemble(&stream).to_bytes()).unwrap();
    let list = reply.pointer("/choices/0/logprobs/content").unwrap().as_array().unwrap();
    let values: Vec<f64> = list.iter().map(|entry| entry["logprob"].as_f64().unwrap()).collect();
    assert_eq!(values, tokens.map(|(_, logprob)| logprob));
}

#[test]
fn a08_log_probabilities_pass_once_whatever_they_belong_to() {
    let with = |mut body: Value, entry: &Value| {
        body["choices"][0]["logprobs"] = entry.clone();
        body
    };
    let (x, y) = (json!({"content": [{"token": "x"}]}), json!({"content": [{"token": "y"}]}));
    let stream = [
        with(delta(&json!({"reasoning": "r"})), &x),
        with(delta(&json!({"content": "c"})), &y),
        call(&json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
    ];
    assert_eq!(all(&mend(&stream).0, "/choices/0/logprobs"), [x, y]);
    let reply: Value = serde_json::from_slice(&assemble(&stream).to_bytes()).unwrap();
    assert_eq!(
        reply.pointer("/choices/0/logprobs/content").unwrap(),
        &json!([{"token": "x"}, {"token": "y"}])
    );
    let none: Value = serde_json::from_slice(&assemble(&stream[2..]).to_bytes()).unwrap();
    assert_eq!(none.pointer("/choices/0/logprobs"), Some(&Value::Null), "no evidence is not certainty");
}

#[test]
fn a22_odd_log_probabilities_pass_and_infinity_is_not_json() {
    let body = br#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"x"},"logprobs":{"content":[{"logprob":-0.1},{"logprob":null},{"logprob":-9999.0}]}}]}"#;
    let sent = StreamRepair::new(identity()).push(Chunk::parse(body).unwrap()).unwrap();
    let text = String::from_utf8(sent.to_bytes()).unwrap();
    assert!(text.contains(r#"{"logprob":-0.1},{"logprob":null},{"logprob":-9999.0}"#), "{text}");
    for value in ["NaN", "-Infinity", "Infinity"] {
        let body = format!(
            r#"{{"choices":[{{"index":0,"delta":{{}},"logprobs":{{"content":[{{"logprob":{value}}}]}}}}]}}"#
        );
        assert!(Chunk::parse(body.as_bytes()).is_err(), "{value}");
        assert!(ChatReply::parse(body.as_bytes()).is_err(), "{value}");
    }
}

#[test]
fn g19_our_trace_names_cannot_be_forged() {
    let mut body = delta(&json!({"content": "a"}));
    body["fusion"] = json!({"forged": true});
    body["provider"] = json!("p");
    let mut repair = StreamRepair::new(identity()).with_stripped(&["fusion"]);
    let sent = json_of(&repair.push(chunk(&body)).unwrap());
    assert_eq!((sent.get("fusion"), &sent["provider"]), (None, &json!("p")));
}

#[test]
fn i04_running_totals_are_not_summed() {
    let stream: Vec<Value> = (1..=10)
        .map(|n| {
            let mut body = delta(&json!({"content": "x"}));
            body["usage"] = json!({"prompt_tokens": 5, "completion_tokens": n, "total_tokens": 5 + n});
            body
        })
        .chain([
            json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}),
        ])
        .collect();
    let (sent, repair) = mend(&stream);
    assert_eq!(repair.last_usage().unwrap().completion_tokens, 10);
    assert_eq!(sent.len(), 11, "ten chunks and the inferred end");
    let mut assembler = Assembler::default();
    stream.iter().for_each(|body| assembler.push(&chunk(body)));
    assert_eq!(assembler.finish(&identity()).usage.unwrap().completion_tokens, 10);
}

#[test]
fn a_right_choice_keeps_its_text() {
    let first = br#"{"choices":[{ "delta":{"role":"assistant", "content":""},"index":0,"logprobs":null,"finish_reason":null,"x":1.0}]}"#;
    let next = br#"{"system_fingerprint":"fp","choices":[{ "delta":{"content":"\u0061"},"index":0,"x":1e0 }],"y":1.0}"#;
    let mut repair = StreamRepair::new(identity());
    for sent in [first.as_slice(), next] {
        let sent = std::str::from_utf8(sent).unwrap();
        let out = repair.push(Chunk::parse(sent.as_bytes()).unwrap()).unwrap();
        let out = String::from_utf8(out.to_bytes()).unwrap();
        let choices = &sent[sent.find('[').unwrap()..=sent.rfind(']').unwrap()];
        assert!(out.contains(choices), "{out}");
    }
}

#[test]
fn our_own_chunks_are_a_stream() {
    let mut repair = StreamRepair::new(identity());
    let mut assembler = Assembler::default();
    let own = [Chunk::role(), Chunk::content("Hel"), Chunk::content("lo\n"), Chunk::finish("stop")];
    for chunk in own {
        let before: Value = json_of(&chunk)["choices"].clone();
        let sent = repair.push(chunk).unwrap();
        assert_eq!(json_of(&sent)["choices"], before, "nothing to mend");
        assembler.push(&sent);
    }
    assert!(repair.is_complete() && repair.finish().is_empty());
    assert_eq!(assembler.content(), "Hello\n");
    let reply = assembler.finish(&identity());
    assert_eq!(reply.finish_reason.as_deref(), Some("stop"));
    let again = ChatReply::parse(&reply.to_bytes()).unwrap();
    assert_eq!((again.content, again.finish_reason), (reply.content, reply.finish_reason));
}

#[test]
fn a_mended_stream_needs_no_second_mending() {
    let stream = [
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}]}, "finish_reason": ""}]}),
        call(&json!({"id": "t1", "function": {"name": "f", "arguments": {}}})),
        call(&json!({"id": "t2", "function": {"name": "f", "arguments": "{}"}})),
        choice(&json!({}), &json!("tool_use")),
    ];
    let (once, _) = mend(&stream);
    assert_eq!(mend(&once).0, once);
}
