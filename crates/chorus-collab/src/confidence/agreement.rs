//! Agreement: one model answers several times; the answer that most samples come to is the visible one, and its share of
//! the samples is its confidence. Tool calls agree by tool and arguments.
//!
//! Source: self-consistency (2203.11171), as a deferral rule in 2509.21837.

use super::evidence::Tried;
use super::plan::ConfidencePlan;
use crate::answers::sameness;
use crate::calls::{Call, CallFault, CallRole, FaultKind, GatherRule, Member, ModelCalls, Reply};
use crate::extract::final_answer;
use crate::finish;
use crate::salvage::split_thinking;
use chorus_wire::{ChatReply, ChatRequest, ToolCall};
use serde_json::Value;

/// Least temperature of the samples after the first: equal samples agree about nothing. Source: 2203.11171, §3.1.
const SAMPLE_TEMPERATURE: f64 = 0.7;

/// The leading answer of `samples` by `model`. It waits no longer once the leader is trusted.
///
/// # Errors
/// The first fault, when no sample is usable.
pub(super) async fn sampled(
    plan: &ConfidencePlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    model: &str,
    samples: usize,
) -> Result<Tried, CallFault> {
    let asked = (0..samples).map(|seat| sample(ask, model, seat)).collect();
    let rule = GatherRule { quorum: samples, max_concurrent: samples, timeout: None };
    let gathered = calls.gather_until(asked, rule, &trusted(samples, plan.threshold)).await;
    let Some((votes, leader)) = leading(&gathered.members) else {
        return Err(first_fault(gathered.members));
    };
    let mut reply = leader.clone();
    finish::whole(&mut reply.reply);
    Ok(Tried { reply, evidence: Ok(share(votes, samples)) })
}

/// Whether the leader needs no further vote.
fn trusted(samples: usize, threshold: f64) -> impl Fn(&[Member]) -> bool + Send + Sync + 'static {
    move |members| leading(members).is_some_and(|(votes, _)| share(votes, samples) >= threshold)
}

/// A failed sample counts as one that says something else.
fn share(votes: usize, samples: usize) -> f64 {
    votes as f64 / samples as f64
}

/// The first sample is asked as the client asked; the others are warmer, and differ in their seeds.
fn sample(ask: &ChatRequest, model: &str, seat: usize) -> Call {
    let mut ask = ask.clone();
    if seat > 0 {
        let own = ask.body().read::<Option<f64>>("temperature").ok().flatten().flatten();
        ask.set("temperature", &own.unwrap_or_default().max(SAMPLE_TEMPERATURE));
        if let Ok(Some(Some(seed))) = ask.body().read::<Option<i64>>("seed") {
            ask.set("seed", &seed.wrapping_add(i64::try_from(seat).unwrap_or_default()));
        }
    }
    let role = if seat == 0 { CallRole::Attempt } else { CallRole::Verifier };
    Call { model: model.to_owned(), role, ask, timeout: None }
}

/// The largest group of equal answers: its size, and its answer with the lowest seat. Ties go to the lower seat.
fn leading(members: &[Member]) -> Option<(usize, &Reply)> {
    let mut usable: Vec<(usize, &Reply)> =
        members.iter().filter_map(|m| Some((m.seat, m.outcome.as_ref().ok()?))).collect();
    usable.sort_by_key(|(seat, _)| *seat);
    let mut groups: Vec<(String, usize, &Reply)> = Vec::new();
    for (_, reply) in usable {
        let says = comes_to(&reply.reply);
        match groups.iter_mut().find(|(known, ..)| *known == says) {
            Some((_, votes, _)) => *votes += 1,
            None => groups.push((says, 1, reply)),
        }
    }
    let most = groups.iter().map(|(_, votes, _)| *votes).max()?;
    groups.into_iter().find(|(_, votes, _)| *votes == most).map(|(_, votes, reply)| (votes, reply))
}

/// What an answer comes to: its tool calls, else the short answer in it, else all of its text.
fn comes_to(reply: &ChatReply) -> String {
    if !reply.tool_calls.is_empty() {
        let call = |call: &ToolCall| {
            let read = serde_json::from_str::<Value>(&call.arguments).ok().map(|mut arguments| {
                arguments.sort_all_objects();
                arguments.to_string()
            });
            format!("{} {}", call.name, read.unwrap_or_else(|| call.arguments.clone()))
        };
        return reply.tool_calls.iter().map(call).collect::<Vec<_>>().join("\n");
    }
    let (_, text) = split_thinking(&reply.content);
    final_answer(text).unwrap_or_else(|| sameness(text))
}

fn first_fault(members: Vec<Member>) -> CallFault {
    let mut faults: Vec<CallFault> = members.into_iter().filter_map(|m| m.outcome.err()).collect();
    let at = faults.iter().position(|fault| fault.kind != FaultKind::Cancelled).unwrap_or(0);
    if at < faults.len() {
        return faults.swap_remove(at);
    }
    CallFault { kind: FaultKind::Empty, public: "no sample was answered".to_owned(), status: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(message: &Value) -> String {
        let body = json!({ "choices": [{ "index": 0, "message": message }] });
        comes_to(&ChatReply::parse(body.to_string().as_bytes()).unwrap())
    }

    fn calls(arguments: &str) -> String {
        let call =
            json!({ "id": "x", "type": "function", "function": { "name": "f", "arguments": arguments } });
        key(&json!({ "role": "assistant", "content": null, "tool_calls": [call] }))
    }

    #[test]
    fn g28_form_is_no_disagreement() {
        let text = |text: &str| key(&json!({ "role": "assistant", "content": text }));
        assert_eq!(text("42"), text("42."));
        assert_eq!(text("42"), text("Six times seven.\nThe answer is 42."));
        assert_eq!(text("<think>12? no</think>Answer: 42"), text("42"));
        assert_ne!(text("42"), text("24"));
        assert_eq!(calls("{\"a\":1,\"b\":2}"), calls("{ \"b\": 2, \"a\": 1 }"));
        assert_ne!(calls("{\"a\":1}"), calls("{\"a\":2}"));
    }
}
