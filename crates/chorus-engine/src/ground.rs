//! The contract of an operating point for grounding: nothing is sent that the material at hand does not support.
//!
//! The answer is buffered and taken apart into statements; each must be supported by a sentence of the conversation that
//! no model wrote: documents, tool results, what the user states. One repair names what is not; what still is not, ends in
//! abstention. It knows no policy. **Invariant:** a statement that the checker does not call supported is not sent, also
//! where the checker fails.
//!
//! Source: DESIGN.md §4.7; support by shared words (`chorus_collab::fusion::OverlapScorer`), which is weak evidence.

use crate::calls::LiveCalls;
use crate::fault::Fault;
use crate::loopers::as_reply;
use crate::record::Draft;
use chorus_collab::fusion::{OverlapScorer, SupportScorer};
use chorus_collab::prompting::fill;
use chorus_collab::{Answer, Call, CallRole, ModelCalls, Reply};
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use serde::Serialize;

/// The constraint of a point whose contract this is.
pub(crate) const GROUNDED: &str = "grounded";
/// Share of a statement's content words that one sentence of the material must hold: more than half, so that of two
/// words both must be there. On the safe side, not fitted to data.
const SUPPORTED: f64 = 0.7;
/// Share of them from which a sentence that disagrees in a number or a negation contradicts the statement.
const CONTRADICTED: f64 = 0.5;
/// What is said where the material does not support an answer.
pub(crate) const ABSTENTION: &str = "The material at hand does not support an answer to this.";
const REPAIR: &str = include_str!("ground/repair.md");

/// What was done; it holds no word of the answer.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
struct GroundTrace {
    /// Statements of the first answer.
    statements: usize,
    /// Those that the material does not support.
    unsupported: usize,
    /// Whether the answer was sent back.
    repaired: bool,
    /// Statements that were still not supported.
    left: usize,
    /// Whether the answer was withheld.
    abstained: bool,
}

/// Holds the answer to the contract.
///
/// # Errors
/// The fault that ends a held stream.
pub(crate) async fn hold(
    answer: Answer,
    ask: &ChatRequest,
    calls: &LiveCalls,
    draft: &mut Draft,
) -> Result<Answer, Fault> {
    let mut reply = match answer {
        Answer::Finished(reply) => *reply,
        Answer::Live(live) => as_reply(live).await?,
    };
    let calls_tools = !reply.reply.tool_calls.is_empty() && reply.reply.content.trim().is_empty();
    if calls_tools {
        return Ok(Answer::Finished(Box::new(reply)));
    }
    let material = material(ask);
    let claims = statements(&texts(&reply));
    let mut trace = GroundTrace { statements: claims.len(), ..GroundTrace::default() };
    let mut left = unsupported(&claims, &material);
    trace.unsupported = left.len();
    if !left.is_empty() || claims.is_empty() {
        trace.repaired = true;
        if let Some(again) = sent_back(&reply, &left, ask, calls).await {
            let claims = statements(&texts(&again));
            left = unsupported(&claims, &material);
            if left.is_empty() && !claims.is_empty() {
                reply = again;
            } else {
                trace.abstained = true;
            }
        } else {
            trace.abstained = true;
        }
    }
    trace.left = left.len();
    draft.degraded(trace.abstained.then(|| "grounding_abstained".to_owned()));
    if trace.abstained {
        reply.reply = ChatReply::text("", ask.model(), 0, ABSTENTION);
    }
    draft.looped(GROUNDED, serde_json::to_value(&trace).ok(), Vec::new());
    Ok(Answer::Finished(Box::new(reply)))
}

/// The text of every choice; each must hold.
fn texts(reply: &Reply) -> String {
    let choices: Option<Vec<serde_json::Value>> = reply.reply.body().read("choices").ok().flatten();
    let of = |choice: &serde_json::Value| {
        choice.pointer("/message/content").and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    let all: Vec<String> = choices.iter().flatten().filter_map(of).collect();
    if all.is_empty() { reply.reply.content.clone() } else { all.join("\n") }
}

async fn sent_back(reply: &Reply, left: &[String], ask: &ChatRequest, calls: &LiveCalls) -> Option<Reply> {
    let listed: String = left.iter().map(|it| format!("- {it}\n")).collect();
    let slots = [("unsupported", listed.trim_end())];
    let mut again = ask.clone();
    let mut messages = ask.messages().to_vec();
    messages.push(Message::new(Role::Assistant, &reply.reply.content));
    messages.push(Message::new(Role::User, &fill(REPAIR, &slots)));
    again.set_messages(messages);
    again.set_stream(false, false);
    let call = Call { model: reply.model.clone(), role: CallRole::Repair, ask: again, timeout: None };
    calls.complete(call).await.ok()
}

/// What no model wrote, without the questions that it was asked for.
fn material(ask: &ChatRequest) -> String {
    let texts = ask.messages().iter().filter(|it| it.role != Role::Assistant && it.role != Role::System);
    let all = texts.flat_map(|it| statements(&it.text)).filter(|it| !it.ends_with(['?', '？']));
    all.collect::<Vec<_>>().join("\n")
}

/// Statements that no sentence of the material supports.
fn unsupported(claims: &[String], material: &str) -> Vec<String> {
    let is_supported = |claim: &&String| {
        let support = OverlapScorer.support(claim, material);
        support.is_some_and(|it| it.entailed >= SUPPORTED && it.contradicted < CONTRADICTED)
    };
    claims.iter().filter(|claim| !is_supported(claim)).cloned().collect()
}

/// Sentences, and lines, of a text.
fn statements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim();
        while !rest.is_empty() {
            let end = end_of_sentence(rest);
            let (sentence, after) = rest.split_at(end);
            all.push(sentence.trim().to_owned());
            rest = after.trim_start();
        }
    }
    // A line of marks alone, such as a rule or a fence, states nothing.
    all.retain(|it| it.chars().any(char::is_alphanumeric));
    all
}

/// After a full stop that a blank follows, so that `3.5` and `e.g.x` stay whole; or the end.
fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends || matches!(c, '。' | '！' | '？') {
            return at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATERIAL: &str = "The bridge was opened in 1932. It spans the harbour of Sydney.";

    #[test]
    fn what_the_material_says_is_supported_and_nothing_else() {
        for (claim, is_supported) in [
            ("The bridge was opened in 1932.", true),
            ("The bridge was opened in 1950.", false),
            ("The bridge was not opened in 1932.", false),
            ("Penguins live in Antarctica.", false),
            ("A penguin opened it.", false),
            ("Yes.", false),
        ] {
            let left = unsupported(&[claim.to_owned()], MATERIAL);
            assert_eq!(left.is_empty(), is_supported, "{claim}");
        }
        assert_eq!(unsupported(&["The bridge was opened in 1932.".to_owned()], "").len(), 1);
    }

    #[test]
    fn a_question_is_no_material_and_neither_is_what_a_model_wrote() {
        let ask = ChatRequest::new(
            "m",
            vec![
                Message::new(Role::System, "Rules of the house apply."),
                Message::new(Role::Tool, "The bridge was opened in 1932."),
                Message::new(Role::Assistant, "It was painted green."),
                Message::new(Role::User, "It spans the harbour. Was the bridge painted green in 1950?"),
            ],
        );
        assert_eq!(material(&ask), "The bridge was opened in 1932.\nIt spans the harbour.");
    }

    #[test]
    fn sentences_end_where_a_blank_follows() {
        let text = "It is 3.5 m high. Is it?\n---\n- Yes!";
        assert_eq!(statements(text), ["It is 3.5 m high.", "Is it?", "- Yes!"]);
    }
}
