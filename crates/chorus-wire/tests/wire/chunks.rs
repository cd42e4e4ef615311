//! Stream chunks for tests: written, mended and put together again.

use chorus_wire::{Assembler, ChatReply, Chunk, StreamIdentity, StreamRepair};
use serde_json::{Value, json};

pub(crate) fn identity() -> StreamIdentity {
    StreamIdentity { id: "chatcmpl-1".into(), model: "vllm-sr/auto".into(), created: 1_700_000_000 }
}

pub(crate) fn chunk(body: &Value) -> Chunk {
    Chunk::parse(body.to_string().as_bytes()).unwrap()
}

pub(crate) fn json_of(chunk: &Chunk) -> Value {
    serde_json::from_slice(&chunk.to_bytes()).unwrap()
}

/// A chunk of one choice.
pub(crate) fn choice(delta: &Value, reason: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

pub(crate) fn delta(delta: &Value) -> Value {
    choice(delta, &Value::Null)
}

/// What a client gets of a whole stream, and the repair after it.
pub(crate) fn mend(chunks: &[Value]) -> (Vec<Value>, StreamRepair) {
    let mut repair = StreamRepair::new(identity());
    let mut sent: Vec<Value> =
        chunks.iter().filter_map(|body| repair.push(chunk(body))).map(|chunk| json_of(&chunk)).collect();
    sent.extend(repair.finish().iter().map(json_of));
    (sent, repair)
}

/// Puts together what a client got, and what the backend sent; they must agree.
pub(crate) fn assemble(chunks: &[Value]) -> ChatReply {
    let put = |chunks: &[Value]| {
        let mut assembler = Assembler::default();
        chunks.iter().for_each(|body| assembler.push(&chunk(body)));
        assembler.finish(&identity())
    };
    let mended = put(&mend(chunks).0);
    let raw = put(chunks);
    assert_eq!(
        (&mended.content, &mended.reasoning, &mended.tool_calls),
        (&raw.content, &raw.reasoning, &raw.tool_calls)
    );
    mended
}

/// Every value at a JSON pointer.
pub(crate) fn all(chunks: &[Value], pointer: &str) -> Vec<Value> {
    chunks.iter().filter_map(|chunk| chunk.pointer(pointer)).cloned().collect()
}

pub(crate) fn calls(reply: &ChatReply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

pub(crate) fn call(fields: &Value) -> Value {
    delta(&json!({"tool_calls": [fields]}))
}
