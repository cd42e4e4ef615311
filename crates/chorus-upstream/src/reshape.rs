//! Small translations between the shapes in which one answer comes: whole, as chunks, as an error.

use crate::UpstreamFault;
use chorus_wire::{ChatReply, Chunk, ErrorBody, RawObject, StreamIdentity};
use serde_json::Value;
use serde_json::value::RawValue;

/// A whole reply as one chunk: each `message` becomes a `delta`, everything else stays.
///
/// # Errors
/// [`UpstreamFault::Malformed`] when a choice is not an object.
pub(crate) fn chunk_of(reply: &ChatReply) -> Result<Chunk, UpstreamFault> {
    let mut body = reply.body().clone();
    let choices: Vec<Box<RawValue>> =
        body.read("choices").map_err(UpstreamFault::malformed)?.unwrap_or_default();
    let choices: Result<Vec<_>, _> = choices.iter().map(|choice| delta_choice(choice)).collect();
    body.write("choices", &choices?).map_err(UpstreamFault::malformed)?;
    body.write("object", &"chat.completion.chunk").map_err(UpstreamFault::malformed)?;
    Chunk::parse(&body.to_bytes()).map_err(UpstreamFault::malformed)
}

fn delta_choice(choice: &RawValue) -> Result<Box<RawValue>, UpstreamFault> {
    let mut choice = RawObject::parse(choice.get().as_bytes()).map_err(UpstreamFault::malformed)?;
    if let Some(message) = choice.remove("message") {
        let mut delta = RawObject::parse(message.get().as_bytes()).map_err(UpstreamFault::malformed)?;
        // Calls are told apart by `index` in a stream; a whole message has none.
        let calls: Option<Value> = delta.read("tool_calls").map_err(UpstreamFault::malformed)?;
        if let Some(Value::Array(mut calls)) = calls {
            for (index, call) in calls.iter_mut().enumerate() {
                if let Value::Object(call) = call {
                    call.insert("index".to_owned(), Value::from(index));
                }
            }
            delta.write("tool_calls", &calls).map_err(UpstreamFault::malformed)?;
        }
        choice.set("delta", raw(&delta)?.into());
    }
    raw(&choice)
}

fn raw(object: &RawObject) -> Result<Box<RawValue>, UpstreamFault> {
    let text = String::from_utf8(object.to_bytes()).map_err(UpstreamFault::malformed)?;
    RawValue::from_string(text).map_err(UpstreamFault::malformed)
}

/// The error that a body is or holds, as some backends send it with status 200.
pub(crate) fn error_of(body: &RawObject) -> Option<ErrorBody> {
    let holds = body.get_set("error").is_some();
    (holds || body.get("choices").is_none()).then(|| ErrorBody::of_object(body)).flatten()
}

/// What the backend calls its stream.
///
/// # Errors
/// [`UpstreamFault::Malformed`] when a field has the wrong type.
pub(crate) fn identity_of(chunk: &Chunk) -> Result<StreamIdentity, UpstreamFault> {
    let body = chunk.body();
    let text = |key| body.read::<Option<String>>(key).map(|v| v.flatten().unwrap_or_default());
    Ok(StreamIdentity {
        id: text("id").map_err(UpstreamFault::malformed)?,
        model: text("model").map_err(UpstreamFault::malformed)?,
        created: body
            .read::<Option<u64>>("created")
            .map_err(UpstreamFault::malformed)?
            .flatten()
            .unwrap_or(0),
    })
}
