//! The account of one Fusion run: what stands in the `fusion` field of a body and in the run record.
//!
//! It holds public texts only, and no usage: calls and costs are rows of the run record.
//! Source: contract Appendix B (`FusionTrace`), with fields of our own.

use super::analysis::Analysis;
use super::grounding::GroundingTrace;
use super::plan::FusionPlan;
use super::resolution::Resolution;
use crate::answers::Survivor;
use crate::calls::{CallFault, FaultKind};
use crate::fence::Material;
use chorus_spec::GroundingPolicy;
use serde::Serialize;

/// What happened, stage by stage.
#[derive(Debug, Default, Clone, Serialize)]
pub struct FusionTrace {
    /// The judge's comparison; absent when its call failed, was not reached, or is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Usable answers in seat order; empty when not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<PanelResponse>,
    /// Seats without a usable answer, in seat order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_models: Vec<FailedModel>,
    /// Seats that nobody waited for once the quorum was reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cancelled_models: Vec<String>,
    /// Who judged; also the writer unless `stages` says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// The panel, one name a seat.
    pub analysis_models: Vec<String>,
    /// Version word of the prompts.
    pub prompt_version: String,
    /// Digest of the prompts as they were used.
    pub prompt_digest: String,
    /// Usable answers wanted and got.
    pub quorum: Quorum,
    /// Whether the panel was asked in an earlier turn of the same question, and not again (case G25).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub panel_reused: bool,
    /// Answers that several seats gave alike; shown to judge and writer once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identical: Vec<Identical>,
    /// What the final answer did about disagreements and gaps; absent where the
    /// analysis names none, and until a stream has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// How well the answers are supported; absent without grounding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grounding: Option<GroundingTrace>,
    /// Texts that were cut to fit a context window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compacted: Vec<Compacted>,
    /// Whether anything went other than planned.
    pub degraded: bool,
    /// What did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded_by: Vec<Degradation>,
    /// The stages in order.
    pub stages: Vec<StageRow>,
}

/// One usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PanelResponse {
    /// Who gave it.
    pub model: String,
    /// Its seat, from 0.
    pub seat: usize,
    /// The letter under which judge and writer saw it.
    pub label: String,
    /// Its text.
    pub content: String,
    /// Its reasoning, if the model showed any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why it ended, as the backend said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
}

/// One seat without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedModel {
    /// Who sat there.
    pub model: String,
    /// A public sentence.
    pub error: String,
    /// The kind of failure.
    pub kind: FaultKind,
}

/// Usable answers of the panel.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quorum {
    /// Without which there is no synthesis.
    pub wanted: usize,
    /// Which there were.
    pub got: usize,
}

/// One answer of several seats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identical {
    /// Its letter.
    pub label: String,
    /// Who gave it, in seat order.
    pub models: Vec<String>,
    /// How many seats.
    pub count: usize,
}

/// One text that was cut. Tokens are estimates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// For which stage.
    pub stage: Stage,
    /// The letter of the answer, or `context`, or `analysis`.
    pub label: String,
    /// Tokens it had.
    pub from_tokens: u64,
    /// Tokens that were shown.
    pub to_tokens: u64,
}

/// The stages of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each name is the field's own word for the stage")]
pub enum Stage {
    Panel,
    Judge,
    Synthesis,
}

/// What became of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageRow {
    /// Which.
    pub stage: Stage,
    /// Who did it; absent for the panel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it went.
    pub status: StageStatus,
    /// The public sentence of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a stage went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// As planned; of a streamed synthesis: the backend accepted the call.
    Ok,
    /// It gave nothing.
    Failed,
    /// The judge answered, and no analysis could be read from it.
    Unparsed,
    /// Left out, because a single answer was handed through.
    SkippedSingle,
    /// Done in an earlier turn of the same question.
    Reused,
}

/// Ways in which a run can fall short of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Degradation {
    /// A member gave no usable answer.
    MemberFailed,
    /// One answer was left of a larger panel.
    SingleAnswer,
    /// The judge's call failed: the writer saw the answers only.
    JudgeUnavailable,
    /// The judge's text was not the analysis asked for: the writer saw it as it is.
    JudgeUnparsed,
    /// The planned writer failed and a member wrote.
    WriterReplaced,
    /// The writer cannot see images: it got the conversation without them.
    ImagesWithheld,
}

impl FusionTrace {
    /// The trace without any text of a model's: which disagreements there were, whom the answer follows, which gaps
    /// remain.
    #[must_use]
    pub fn bare(&self) -> Self {
        let mut bare = self.shown(false, false);
        bare.resolution = self.resolution.as_ref().map(Resolution::bare);
        bare.failed_models.clear();
        for score in bare.grounding.iter_mut().flat_map(|grounding| &mut grounding.scores) {
            score.flagged_spans.clear();
        }
        bare
    }

    /// The trace as a client may see it.
    #[must_use]
    pub fn shown(&self, include_analysis: bool, include_responses: bool) -> Self {
        let mut shown = self.clone();
        if !include_analysis {
            shown.analysis = None;
            shown.resolution = None;
        }
        if !include_responses {
            shown.responses = Vec::new();
        }
        shown
    }

    /// Names the plan.
    pub(super) fn open(&mut self, plan: &FusionPlan) {
        *self = Self {
            analysis_models: plan.panel.clone(),
            prompt_version: plan.prompts.version.clone(),
            prompt_digest: plan.prompts.digest().to_string(),
            quorum: Quorum { wanted: plan.required(), got: 0 },
            ..Self::default()
        };
    }

    /// Notes what an earlier turn has left.
    pub(super) fn take_up(
        &mut self,
        survivors: &[Survivor],
        judge: &str,
        analysis: Option<&Analysis>,
        grounding: Option<GroundingTrace>,
    ) {
        self.panel_reused = true;
        self.survivors(survivors);
        self.judge_model = Some(judge.to_owned());
        self.analysis = analysis.cloned();
        self.grounding = grounding;
        self.stage(Stage::Panel, None, StageStatus::Reused);
        self.stage(Stage::Judge, Some(judge), StageStatus::Reused);
    }

    /// Notes a shortfall once.
    pub(super) fn degrade(&mut self, by: Degradation) {
        self.degraded = true;
        if !self.degraded_by.contains(&by) {
            self.degraded_by.push(by);
        }
    }

    /// Notes a stage's end.
    pub(super) fn stage(&mut self, stage: Stage, model: Option<&str>, status: StageStatus) {
        self.stages.push(StageRow { stage, model: model.map(str::to_owned), status, error: None });
    }

    /// Notes a stage's failure.
    pub(super) fn stage_failed(&mut self, stage: Stage, model: Option<&str>, error: String) {
        let error = Some(error);
        self.stages.push(StageRow {
            stage,
            model: model.map(str::to_owned),
            status: StageStatus::Failed,
            error,
        });
    }

    /// Notes the usable answers.
    pub(super) fn survivors(&mut self, survivors: &[Survivor]) {
        self.quorum.got = survivors.len();
        self.responses = survivors.iter().map(PanelResponse::of).collect();
        if survivors.len() == 1 && self.analysis_models.len() > 1 {
            self.degrade(Degradation::SingleAnswer);
        }
    }

    /// Notes a seat without a usable answer.
    pub(super) fn member_lost(&mut self, model: &str, fault: &CallFault) {
        if fault.kind == FaultKind::Cancelled {
            self.cancelled_models.push(model.to_owned());
            return;
        }
        self.degrade(Degradation::MemberFailed);
        self.failed_models.push(FailedModel {
            model: model.to_owned(),
            error: fault.public.clone(),
            kind: fault.kind,
        });
    }

    /// Notes what was cut for the last attempt of a stage: the letter, bytes before and after.
    pub(super) fn compacted(&mut self, stage: Stage, cuts: Vec<(&str, usize, usize)>) {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        self.compacted.retain(|cut| cut.stage != stage);
        self.compacted.extend(cuts.into_iter().map(|(label, from, to)| Compacted {
            stage,
            label: label.to_owned(),
            from_tokens: tokens(from),
            to_tokens: tokens(to),
        }));
    }

    /// Says what the final answer did about the panel's disagreements; whoever forwards a stream calls it at its end.
    pub fn resolve(&mut self, answer: &str) {
        if let Some(Analysis::Parsed(findings)) = &self.analysis {
            let resolution = Resolution::of(findings, answer);
            let tells = !resolution.disagreements.is_empty() || !resolution.gaps.is_empty();
            self.resolution = tells.then_some(resolution);
        }
    }

    /// Judge and writer are told what grounding found, unless it only filters.
    pub(super) fn tell_support(&self, material: &mut Material) {
        let Some(grounding) = &self.grounding else { return };
        if grounding.policy == GroundingPolicy::Filter {
            return;
        }
        for answer in &mut material.answers {
            let of_it = grounding.scores.iter().find(|score| answer.seats.first() == Some(&score.seat));
            answer.support = of_it.and_then(|score| score.score);
            if grounding.policy == GroundingPolicy::Annotate {
                answer.unsupported = of_it.map(|score| score.flagged_spans.clone()).unwrap_or_default();
            }
        }
    }

    /// Notes the answers that several seats share, and each answer's letter.
    pub(super) fn identical(&mut self, material: &Material) {
        for answer in &material.answers {
            for response in self.responses.iter_mut().filter(|r| answer.seats.contains(&r.seat)) {
                response.label.clone_from(&answer.label);
            }
            if answer.seats.len() > 1 {
                self.identical.push(Identical {
                    label: answer.label.clone(),
                    models: answer.models.clone(),
                    count: answer.seats.len(),
                });
            }
        }
    }
}

impl PanelResponse {
    fn of(survivor: &Survivor) -> Self {
        Self {
            model: survivor.reply.model.clone(),
            seat: survivor.seat,
            label: String::new(),
            content: survivor.text.clone(),
            reasoning: survivor.reasoning.clone(),
            finish_reason: survivor.reply.reply.finish_reason.clone(),
        }
    }
}
