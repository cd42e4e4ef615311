//! The contract of an operating point for grounding: nothing is sent that the material at hand does not support.
//!
//! The answer is buffered and taken apart into statements; each must be supported by a sentence of the conversation that
//! no model wrote: documents, tool results, what the user states. One repair names what is not; what still is not, ends in
//! abstention. It knows no policy. **Invariant:** a statement that the checker does not call supported is not sent, also
//! where the checker fails.
//!
//! Source: DESIGN.md §4.7; support by shared words (`chorus_collab::fusion::KnownText`), which is weak evidence.

pub(crate) mod claims;

use crate::calls::LiveCalls;
use crate::fault::Fault;
use crate::loopers::as_reply;
use crate::record::Draft;
use chorus_collab::fusion::KnownText;
use chorus_collab::prompting::fill;
use chorus_collab::{Answer, Call, CallRole, ModelCalls, Reply};
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use claims::{material, statements, texts, unsupported};
use serde::Serialize;

/// The constraint of a point whose contract this is.
pub(crate) const GROUNDED: &str = "grounded";
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

/// What the checker says of an answer beside the material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its statements.
    pub statements: usize,
    /// Those that no sentence of the material supports.
    pub unsupported: Vec<String>,
}

impl Checked {
    /// Whether the answer may be sent.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.statements > 0 && self.unsupported.is_empty()
    }
}

/// Checks an answer against the material of a conversation, as a grounded point does.
#[must_use]
pub fn check(answer: &str, conversation: &ChatRequest) -> Checked {
    checked(answer, &KnownText::of(&material(conversation)))
}

fn checked(answer: &str, material: &KnownText) -> Checked {
    let claims = statements(answer);
    Checked { statements: claims.len(), unsupported: unsupported(&claims, material) }
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
    let material = KnownText::of(&material(ask));
    let mut found = checked(&texts(&reply.reply), &material);
    let mut trace = GroundTrace {
        statements: found.statements,
        unsupported: found.unsupported.len(),
        ..GroundTrace::default()
    };
    if !found.holds() {
        trace.repaired = true;
        match sent_back(&reply, &found.unsupported, ask, calls).await {
            Some(again) => {
                found = checked(&texts(&again.reply), &material);
                trace.abstained = !found.holds();
                reply = again;
            }
            None => trace.abstained = true,
        }
    }
    trace.left = found.unsupported.len();
    draft.degraded(trace.abstained.then(|| "grounding_abstained".to_owned()));
    if trace.abstained {
        reply.reply = ChatReply::text("", ask.model(), 0, ABSTENTION);
    }
    draft.looped(GROUNDED, serde_json::to_value(&trace).ok(), Vec::new());
    Ok(Answer::Finished(Box::new(reply)))
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
