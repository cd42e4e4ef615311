//! The synthesis: one model writes the answer that the client gets, streamed where the client wants a stream.
//!
//! It sees the client's conversation as it is, images and tool traffic included, and keeps every option of the visible
//! answer (cases B10, B11, G26, G27). **Invariant:** an answer that calls tools ends with `tool_calls` (case B17).

use super::analysis::Analysis;
use super::plan::FusionPlan;
use super::trace::{Degradation, FusionTrace, Stage, StageStatus};
use crate::answers::Survivor;
use crate::calls::{Answer, Call, CallFault, CallRole, FaultKind, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::fence::Material;
use crate::finish;
use crate::question::without_images;
use crate::template::{fill, has_slot};
use crate::window::{Window, prompt_tokens};
use chorus_spec::OnError;
use chorus_wire::{ChatRequest, Message, Role};

/// What the writer is told in place of an analysis.
const NO_ANALYSIS: &str = "No comparison is available: compare the answers yourself.";

/// What the stage works with.
pub(super) struct Writing<'a> {
    pub(super) plan: &'a FusionPlan,
    pub(super) ask: &'a ChatRequest,
    pub(super) material: &'a Material,
    pub(super) analysis: Option<&'a Analysis>,
    pub(super) calls: &'a dyn ModelCalls,
    pub(super) events: &'a dyn LoopEvents,
}

/// Who writes: the judge, and under `on_error: skip` one survivor in its place.
#[derive(Debug)]
pub(super) struct Writers<'a> {
    first: &'a str,
    spare: Option<&'a str>,
}

impl<'a> Writers<'a> {
    /// The judge, and the first survivor that is another model.
    pub(super) fn new(judge: &'a str, survivors: &'a [Survivor]) -> Self {
        let spare = survivors.iter().map(|s| &*s.reply.model).find(|model| *model != judge);
        Self { first: judge, spare }
    }
}

/// The only usable answer, as its model gave it.
///
/// # Errors
/// [`LoopFault::Quorum`] when there is none.
pub(super) fn hand_through(survivors: Vec<Survivor>, trace: &mut FusionTrace) -> Result<Answer, LoopFault> {
    let only = survivors.into_iter().next();
    let only = only.ok_or_else(|| LoopFault::Quorum { wanted: 1, got: 0, failures: Vec::new() })?;
    trace.stage(Stage::Judge, None, StageStatus::SkippedSingle);
    trace.stage(Stage::Synthesis, Some(&only.reply.model), StageStatus::SkippedSingle);
    Ok(Answer::Finished(Box::new(only.reply)))
}

impl Writing<'_> {
    /// The final answer.
    ///
    /// # Errors
    /// [`LoopFault::Synthesis`] or [`LoopFault::Overflow`] of the first writer, when no other could take its place.
    pub(super) async fn write(
        &self,
        writers: &Writers<'_>,
        trace: &mut FusionTrace,
    ) -> Result<Answer, LoopFault> {
        let fault = match self.attempt(writers.first, trace).await {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        match writers.spare {
            Some(spare) if self.plan.on_error == OnError::Skip && another_may_do(&fault) => {
                let answer = self.attempt(spare, trace).await.map_err(|_| fault)?;
                trace.degrade(Degradation::WriterReplaced);
                Ok(answer)
            }
            _ => Err(fault),
        }
    }

    async fn attempt(&self, writer: &str, trace: &mut FusionTrace) -> Result<Answer, LoopFault> {
        self.events.tell(LoopEvent::SynthesisStarted(writer));
        let outcome = self.try_with_images(writer, trace).await;
        match &outcome {
            Ok(_) => trace.stage(Stage::Synthesis, Some(writer), StageStatus::Ok),
            Err(fault) => trace.stage_failed(Stage::Synthesis, Some(writer), fault.to_string()),
        }
        outcome
    }

    /// A writer that is not eligible for a conversation with images gets it without them: the panel has seen them
    /// (case G05).
    async fn try_with_images(&self, writer: &str, trace: &mut FusionTrace) -> Result<Answer, LoopFault> {
        let messages = self.ask.messages();
        let call = self.call(writer, messages, trace)?;
        match self.send(call).await {
            Err(fault) if fault.kind == FaultKind::Ineligible && messages.iter().any(|m| m.images > 0) => {
                let blind: Vec<Message> = messages.iter().map(without_images).collect();
                let call = self.call(writer, &blind, trace)?;
                trace.degrade(Degradation::ImagesWithheld);
                self.send(call).await
            }
            outcome => outcome,
        }
        .map_err(LoopFault::Synthesis)
    }

    async fn send(&self, call: Call) -> Result<Answer, CallFault> {
        if self.ask.stream() {
            let live = self.calls.stream(call).await?;
            return Ok(Answer::Live(finish::live(live)));
        }
        let mut reply = self.calls.complete(call).await?;
        finish::whole(&mut reply.reply);
        Ok(Answer::Finished(Box::new(reply)))
    }

    /// The client's request with the material as one more user message.
    fn call(&self, writer: &str, messages: &[Message], trace: &mut FusionTrace) -> Result<Call, LoopFault> {
        let analysis = self.analysis.map(Analysis::to_text).unwrap_or_default();
        let analysis = if has_slot(&self.plan.prompts.synthesis, "analysis") { &*analysis } else { "" };
        let nothing = self.material.answers.iter().map(|_| "");
        let mut ask = self.ask.clone();
        ask.remove("plugins");
        ask.remove("fusion");
        ask.set_messages(with_prompt(messages, &self.prompt("", nothing)));
        let window = Window::of(self.calls, writer);
        let cap = ask.max_output_tokens();
        let fixed = prompt_tokens(&ask);
        let fitted = window.fit(self.material, analysis, fixed, cap)?;
        trace.compacted(Stage::Synthesis, fitted.cuts(self.material, "analysis"));
        ask.set_messages(with_prompt(messages, &self.prompt(&fitted.beside.text, fitted.answers())));
        Ok(Call { model: writer.to_owned(), role: CallRole::Synthesis, ask, timeout: None })
    }

    fn prompt<'t>(&self, analysis: &str, answers: impl Iterator<Item = &'t str>) -> String {
        let fence = &self.material.fence;
        let analysis =
            if analysis.is_empty() { NO_ANALYSIS.to_owned() } else { fence.wrap("comparison", "", analysis) };
        let slots = [
            ("original", &*fence.neutral(&self.material.question)),
            ("context", ""),
            ("responses", &self.material.responses(answers)),
            ("analysis", &analysis),
            ("key", &fence.key),
        ];
        fill(&self.plan.prompts.synthesis, &slots)
    }
}

fn with_prompt(messages: &[Message], prompt: &str) -> Vec<Message> {
    messages.iter().cloned().chain([Message::new(Role::User, prompt)]).collect()
}

/// Whether another model could do what this one did not: not when the client left or the budget is spent.
fn another_may_do(fault: &LoopFault) -> bool {
    !fault.call().is_some_and(|call| matches!(call.kind, FaultKind::Cancelled | FaultKind::Budget))
}
