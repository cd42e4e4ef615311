//! The form of the final answer is held: read for what its route promises or its client asks for, mended where it can be,
//! sent back once where that is allowed, and marked or refused where it stays broken.
//!
//! It knows answers and the one call of a repair. What a form is stands in `chorus_collab::contract`.
//! **Invariant:** an answer under a form leaves in that form, or marked as a violation, or not at all; calls of tools and
//! refusals are no answers in any form, and pass.

use crate::calls::LiveCalls;
use crate::fault::{Code, Fault};
use crate::loopers::{FORM_FIELD, as_reply};
use crate::record::Draft;
use chorus_collab::contract::{Applied, Form, Written};
use chorus_collab::{Answer, Call, CallRole, ModelCalls, Reply};
use chorus_wire::{ChatReply, ChatRequest};
use serde::Serialize;
use serde_json::{Map, Value};

/// What was done to the form of an answer. It holds no word of it: records keep it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FormTrace {
    /// The kind of form.
    kind: &'static str,
    /// Whether the text is another one than the model wrote.
    repaired: bool,
    /// Whether a model was asked to mend it.
    sent_back: bool,
    /// Whether the value is the majority's of the members.
    by_majority: bool,
    /// Whether the contract stayed broken.
    violated: bool,
}

/// What is needed to hold a form.
pub(crate) struct Holding<'a> {
    /// The form.
    pub(crate) form: &'a Form,
    /// What the client asked.
    pub(crate) ask: &'a ChatRequest,
    /// For the call of a repair.
    pub(crate) calls: &'a LiveCalls,
    /// The members' answers behind it, in seat order.
    pub(crate) candidates: &'a [String],
}

/// The request for whoever answers: whole, not streamed, where a form needs the whole answer.
pub(crate) fn held(form: Option<&Form>, request: &ChatRequest) -> ChatRequest {
    let mut ask = request.clone();
    if form.is_some() && ask.stream() {
        ask.set_stream(false, false);
    }
    ask
}

impl Holding<'_> {
    /// The answer in its form, and what was done for it.
    ///
    /// # Errors
    /// [`Code::OutputInvalid`] for a form that the client asked for and that stays broken.
    pub(crate) async fn hold(&self, answer: Answer, draft: &mut Draft) -> Result<(Answer, FormTrace), Fault> {
        let reply = whole(answer).await?;
        let mut trace = FormTrace { kind: self.form.kind(), ..FormTrace::default() };
        let held = self.every_choice(reply, &mut trace).await;
        let kept = trace.clone();
        draft.looped(FORM_FIELD, serde_json::to_value(kept).ok(), Vec::new());
        draft.degraded(trace.violated.then(|| format!("{FORM_FIELD}_violated")));
        Ok((Answer::Finished(Box::new(held?)), trace))
    }

    async fn every_choice(&self, reply: Reply, trace: &mut FormTrace) -> Result<Reply, Fault> {
        let choices = reply.reply.body().read::<Vec<Map<String, Value>>>("choices").ok().flatten();
        let mut choices = choices.unwrap_or_default();
        let alone = choices.len() == 1;
        let mut changed = false;
        for choice in &mut choices {
            let Some(message) = choice.get("message").filter(|message| is_answer(message)) else { continue };
            let applied = self.one(message, &reply.model, alone, trace).await?;
            changed |= applied.repaired;
            if applied.repaired {
                rewrite(choice, &applied.text);
            }
        }
        if !changed {
            return Ok(reply);
        }
        let mut body = reply.reply;
        body.set("choices", &choices);
        // The views of the reply are read again from what it has become.
        let read = ChatReply::parse(&body.to_bytes()).unwrap_or(body);
        Ok(Reply { reply: read, ..reply })
    }

    /// One choice: as it is, mended here, or sent back where it stands alone.
    async fn one(
        &self,
        message: &Value,
        author: &str,
        alone: bool,
        trace: &mut FormTrace,
    ) -> Result<Applied, Fault> {
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        let content = text("content").unwrap_or_default();
        let reasoning = text("reasoning_content").or_else(|| text("reasoning"));
        let mut applied = self.apply(content, reasoning);
        if let Some(problem) = applied.violated.clone().filter(|_| alone && self.form.repairs()) {
            trace.sent_back = true;
            if let Some(again) = self.sent_back(author, content, &problem).await {
                applied = Applied { repaired: true, ..again };
            }
        }
        trace.repaired |= applied.repaired;
        trace.by_majority |= applied.by_majority;
        trace.violated |= applied.violated.is_some();
        match applied.violated {
            Some(problem) if self.form.is_strict() => {
                let text =
                    format!("the answer does not have the form that `response_format` asks for: {problem}");
                Err(Fault::new(Code::OutputInvalid, text))
            }
            _ => Ok(applied),
        }
    }

    /// What the author makes of the answer once it is told what is wrong; `None` where that is no better.
    async fn sent_back(&self, author: &str, content: &str, problem: &str) -> Option<Applied> {
        let ask = self.form.repair(self.ask, content, problem);
        let call = Call { model: author.to_owned(), role: CallRole::Repair, ask, timeout: None };
        let reply = self.calls.complete(call).await.ok()?.reply;
        let again = self.apply(&reply.content, reply.reasoning.as_deref());
        again.violated.is_none().then_some(again)
    }

    fn apply(&self, content: &str, reasoning: Option<&str>) -> Applied {
        let candidates: Vec<Written<'_>> =
            self.candidates.iter().map(|content| Written { content, reasoning: None }).collect();
        self.form.apply(Written { content, reasoning }, &candidates)
    }
}

/// A held answer is never a stream; one that is all the same is put together.
async fn whole(answer: Answer) -> Result<Reply, Fault> {
    match answer {
        Answer::Finished(reply) => Ok(*reply),
        Answer::Live(live) => as_reply(live).await.map_err(Fault::from),
    }
}

/// Calls of tools and refusals answer in no form.
fn is_answer(message: &Value) -> bool {
    let calls = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    let refuses = message.get("refusal").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    !calls && !refuses
}

/// Another text; log-probabilities of the old one are none of it.
fn rewrite(choice: &mut Map<String, Value>, text: &str) {
    if let Some(fields) = choice.get_mut("message").and_then(Value::as_object_mut) {
        fields.insert("content".to_owned(), text.into());
    }
    if choice.contains_key("logprobs") {
        choice.insert("logprobs".to_owned(), Value::Null);
    }
}
