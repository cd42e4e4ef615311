//! The judge: compares the answers, as text, at temperature 0. It does not answer the question.
//!
//! **Invariant:** a judge never ends a run under `on_error: skip`; without an analysis the writer sees the raw answers.

use super::analysis::Analysis;
use super::plan::FusionPlan;
use super::trace::{Degradation, FusionTrace, Stage, StageStatus};
use crate::calls::{Call, CallRole, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::fence::Material;
use crate::template::{fill, has_slot};
use crate::window::Window;
use chorus_spec::OnError;
use chorus_wire::{ChatRequest, Message, Role, tokens};

/// What the stage works with.
pub(super) struct Judge<'a> {
    pub(super) plan: &'a FusionPlan,
    pub(super) calls: &'a dyn ModelCalls,
    pub(super) events: &'a dyn LoopEvents,
}

impl Judge<'_> {
    /// The analysis by `judge`; `None` when it gave nothing.
    ///
    /// # Errors
    /// Under `on_error: fail`: [`LoopFault::Judge`], [`LoopFault::Overflow`].
    pub(super) async fn analyse(
        &self,
        judge: &str,
        material: &Material,
        trace: &mut FusionTrace,
    ) -> Result<Option<Analysis>, LoopFault> {
        trace.judge_model = Some(judge.to_owned());
        self.events.tell(LoopEvent::JudgeStarted(judge));
        let outcome = self.ask(judge, material, trace).await;
        let disagreements = outcome.as_ref().map_or(0, Analysis::disagreements);
        self.events.tell(LoopEvent::JudgeFinished { analysed: outcome.is_ok(), disagreements });
        let analysis = match outcome {
            Ok(analysis) => analysis,
            Err(fault) => {
                trace.stage_failed(Stage::Judge, Some(judge), fault.to_string());
                if self.plan.on_error == OnError::Fail {
                    return Err(fault);
                }
                trace.degrade(Degradation::JudgeUnavailable);
                return Ok(None);
            }
        };
        if analysis.is_parsed() {
            trace.stage(Stage::Judge, Some(judge), StageStatus::Ok);
        } else {
            trace.degrade(Degradation::JudgeUnparsed);
            trace.stage(Stage::Judge, Some(judge), StageStatus::Unparsed);
        }
        trace.analysis = Some(analysis.clone());
        Ok(Some(analysis))
    }

    async fn ask(
        &self,
        judge: &str,
        material: &Material,
        trace: &mut FusionTrace,
    ) -> Result<Analysis, LoopFault> {
        let call = self.call(judge, material, trace)?;
        let reply = self.calls.complete(call).await.map_err(LoopFault::Judge)?.reply;
        // A model that never stops thinking leaves its draft in the reasoning.
        let said =
            if reply.content.trim().is_empty() { reply.reasoning.unwrap_or_default() } else { reply.content };
        Ok(Analysis::read(&said))
    }

    /// One user message of text: some chat templates know no system message, some judges no images (case G05).
    fn call(&self, judge: &str, material: &Material, trace: &mut FusionTrace) -> Result<Call, LoopFault> {
        let cap = self.plan.max_completion_tokens;
        let context = if has_slot(&self.plan.prompts.judge, "context") { &*material.context } else { "" };
        let nothing = material.answers.iter().map(|_| "");
        let fixed = tokens::of_text(&self.prompt(material, "", nothing));
        let window = Window::of(self.calls, judge);
        let fitted = window.fit(material, context, fixed, cap)?;
        trace.compacted(Stage::Judge, fitted.cuts(material, "context"));

        let prompt = self.prompt(material, &fitted.beside.text, fitted.answers());
        let mut ask = ChatRequest::new(judge, vec![Message::new(Role::User, &prompt)]);
        ask.set("temperature", &0);
        if let Some(cap) = cap {
            ask.set("max_completion_tokens", &window.cap(cap, tokens::of_request(&ask)));
        }
        Ok(Call { model: judge.to_owned(), role: CallRole::Judge, ask, timeout: self.plan.round_timeout })
    }

    fn prompt<'t>(
        &self,
        material: &Material,
        context: &str,
        answers: impl Iterator<Item = &'t str>,
    ) -> String {
        let fence = &material.fence;
        let context = if context.is_empty() { String::new() } else { fence.wrap("context", "", context) };
        let slots = [
            ("original", &*fence.neutral(&material.question)),
            ("context", &context),
            ("responses", &material.responses(answers)),
            ("analysis", ""),
            ("key", &fence.key),
        ];
        fill(&self.plan.prompts.judge, &slots)
    }
}
