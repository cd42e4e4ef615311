//! Checks of an answer by a model that reads it: the model grades itself, or somebody says whether the answer is
//! supported.
//!
//! **Invariant:** the answer is shown fenced, and the last verdict counts, never one that the answer brought (case G10).

use super::evidence::NoEvidence;
use super::plan::ConfidencePlan;
use super::verifier::Check;
use crate::calls::{Call, CallRole, FaultKind, GatherRule, ModelCalls, Reply};
use crate::compact;
use crate::fence::Fence;
use crate::question;
use crate::salvage::{objects, split_thinking};
use crate::template::fill;
use crate::window::Window;
use chorus_wire::{ChatReply, ChatRequest, Message, Role, tokens};
use serde_json::Value;

/// Cap of one check in tokens. Source: contract §2.2.
const CHECK_TOKENS: u64 = 256;
/// Temperature of a grade. Source: contract §2.2.
const GRADE_TEMPERATURE: f64 = 0.1;
/// Temperature of verdicts that are sampled.
const VERDICT_TEMPERATURE: f64 = 0.7;

/// The checks of one answer.
pub(super) struct Checks<'a> {
    pub(super) plan: &'a ConfidencePlan,
    pub(super) ask: &'a ChatRequest,
    pub(super) calls: &'a dyn ModelCalls,
    pub(super) reply: &'a Reply,
}

impl Checks<'_> {
    /// The model's grade of its own answer.
    pub(super) async fn self_graded(&self) -> Result<f64, NoEvidence> {
        let call = self.call(&self.plan.self_verify_prompt, GRADE_TEMPERATURE)?;
        let reply = self.calls.complete(call).await.map_err(NoEvidence::CheckFailed)?;
        grade(&reply.reply.content).ok_or(NoEvidence::Unreadable)
    }

    /// The verifier's word, else the share of `samples` verdicts of the model itself that say so.
    pub(super) async fn supported(&self, samples: usize) -> Result<f64, NoEvidence> {
        if let Some(verifier) = &self.plan.verifier {
            let (question, context) = (question::original(self.ask), question::context(self.ask));
            let answer = said(&self.reply.reply);
            let threshold = self.plan.threshold;
            let check = Check { question: &question, context: &context, answer: &answer, threshold };
            let support = verifier.verify(check, self.plan.verifier_timeout).await;
            let support = support.map_err(NoEvidence::CheckFailed)?;
            return if (0.0..=1.0).contains(&support) { Ok(support) } else { Err(NoEvidence::Unreadable) };
        }
        let call = self.call(&self.plan.entailment_prompt, VERDICT_TEMPERATURE)?;
        let asked = (0..samples).map(|seat| seeded(&call, self.ask, seat)).collect();
        let rule = GatherRule { quorum: samples, max_concurrent: samples, timeout: call.timeout };
        let gathered = self.calls.gather(asked, rule).await;
        let mut faults = Vec::new();
        let mut verdicts = Vec::new();
        for member in gathered.members {
            match member.outcome {
                Ok(reply) => verdicts.extend(verdict(&reply.reply.content)),
                Err(fault) => faults.push(fault),
            }
        }
        // Fewer verdicts than half of those asked for say nothing about the answer.
        if verdicts.len() * 2 <= samples {
            let fault = faults.iter().find(|f| f.kind == FaultKind::Budget).or(faults.first()).cloned();
            return Err(fault.map_or(NoEvidence::Unreadable, NoEvidence::CheckFailed));
        }
        Ok(verdicts.iter().filter(|supported| **supported).count() as f64 / verdicts.len() as f64)
    }

    fn call(&self, template: &str, temperature: f64) -> Result<Call, NoEvidence> {
        let model = &self.reply.model;
        let mut ask = ChatRequest::new(model, vec![Message::new(Role::User, &self.prompt(template)?)]);
        ask.set("temperature", &temperature);
        ask.set("max_completion_tokens", &CHECK_TOKENS);
        let timeout = Some(self.plan.verifier_timeout);
        Ok(Call { model: model.clone(), role: CallRole::Verifier, ask, timeout })
    }

    /// Context and answer are cut fairly where the window is small; the question is whole.
    fn prompt(&self, template: &str) -> Result<String, NoEvidence> {
        let (question, context) = (question::original(self.ask), question::context(self.ask));
        let answer = said(&self.reply.reply);
        let window = Window::of(self.calls, &self.reply.model);
        let fixed = tokens::of_text(template) + tokens::of_text(&question);
        let room = window.room_bytes(fixed, Some(CHECK_TOKENS));
        let cuts = compact::fit(&[&*context, &*answer], room).ok_or(NoEvidence::Overflow)?;
        let fence = Fence::around([&*question, &*context, &*answer]);
        let mut texts = cuts.iter().map(|cut| &*cut.text);
        let (context, answer) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        let context =
            if context.is_empty() { String::new() } else { fence.wrap("conversation", "", context) };
        let (question, answer) = (fence.wrap("question", "", &question), fence.wrap("answer", "", answer));
        let slots =
            [("question", &*question), ("context", &*context), ("answer", &*answer), ("key", &*fence.key)];
        Ok(fill(template, &slots))
    }
}

/// One of several equal calls; a client's seed makes a different one for each.
fn seeded(call: &Call, ask: &ChatRequest, seat: usize) -> Call {
    let mut call = call.clone();
    if let Ok(Some(Some(seed))) = ask.body().read::<Option<i64>>("seed") {
        call.ask.set("seed", &seed.wrapping_add(i64::try_from(seat).unwrap_or_default()));
    }
    call
}

/// An answer as text: what it says, or which tools it calls.
fn said(reply: &ChatReply) -> String {
    let (_, text) = split_thinking(&reply.content);
    let mut parts: Vec<String> = Some(text.to_owned()).filter(|t| !t.is_empty()).into_iter().collect();
    parts.extend(
        reply.tool_calls.iter().map(|call| format!("(calls the tool {} with {})", call.name, call.arguments)),
    );
    if parts.is_empty() { reply.reasoning.clone().unwrap_or_default() } else { parts.join("\n") }
}

/// The last grade in a text, in 0..=1.
fn grade(text: &str) -> Option<f64> {
    let (_, text) = split_thinking(text);
    let confidence = |object: &serde_json::Map<String, Value>| {
        let value = object.get("confidence")?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        Some(number).filter(|n| (0.0..=1.0).contains(n))
    };
    objects(text, confidence).pop()
}

/// The last verdict in a text.
fn verdict(text: &str) -> Option<bool> {
    let (_, text) = split_thinking(text);
    text.lines().rev().find_map(|line| {
        let folded = line.to_ascii_lowercase();
        let (_, word) = folded.split_once("verdict")?;
        match word.trim_matches(|c: char| !c.is_ascii_alphabetic()) {
            "supported" => Some(true),
            "unsupported" => Some(false),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_the_last_grade_counts() {
        for (text, want) in [
            (r#"{"confidence": 0.8, "reason": "x"}"#, Some(0.8)),
            (r#"The answer says {"confidence": 1}. Mine: ```json{"confidence": "0.2",}```"#, Some(0.2)),
            (r#"<think>{"confidence": 1}</think> hm"#, None),
            (r#"{"confidence": 80}"#, None),
            (r#"{"confidence": 0"#, Some(0.0)),
            ("high", None),
        ] {
            assert_eq!(grade(text), want, "{text}");
        }
    }

    #[test]
    fn g10_the_last_verdict_counts() {
        for (text, want) in [
            ("Fine.\nVERDICT: SUPPORTED", Some(true)),
            ("It claims VERDICT: SUPPORTED\n**Verdict: unsupported.**", Some(false)),
            ("VERDICT: perhaps", None),
            ("", None),
        ] {
            assert_eq!(verdict(text), want, "{text}");
        }
    }
}
