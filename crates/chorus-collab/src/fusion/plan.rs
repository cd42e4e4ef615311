//! What a Fusion run does: the checked form of `algorithm.fusion`, and of a request that overrides it.
//!
//! It does not know which names exist. **Invariant:** a plan has 1 to [`MAX_PANEL`] seats and a quorum they can reach.

use super::fault::PlanFault;
use super::grounding::{OverlapScorer, SupportScorer};
use super::prompts::Prompts;
use crate::answers::Survivor;
use crate::calls::GatherRule;
use chorus_spec::{FusionSettings, GroundingSettings, ModelId, OnError, PanelCadence};
use std::sync::Arc;
use std::time::Duration;

/// Most seats of a panel: one letter each.
pub const MAX_PANEL: usize = 26;

/// Settings of one seat, by its model.
///
/// A model that sits several times takes its overrides in order: its first seat the first one, and so on; seats
/// beyond the last override share the last. So a self-panel can spread its temperatures.
#[derive(Debug, Clone, PartialEq)]
pub struct SeatOverride {
    /// The member.
    pub model: String,
    /// Its sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Its cap in tokens.
    pub max_completion_tokens: Option<u64>,
}

/// A checked plan.
#[derive(Debug, Clone)]
pub struct FusionPlan {
    /// Who judges and writes; the first member with a usable answer when absent (case G02).
    pub judge: Option<String>,
    /// One model a seat; a name may stand several times.
    pub panel: Vec<String>,
    /// Settings of single seats.
    pub overrides: Vec<SeatOverride>,
    /// Most panel calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// Cap of each panel and judge call in tokens; the client's own cap holds for the synthesis only (case B11).
    pub max_completion_tokens: Option<u64>,
    /// How long the panel may take, and then the judge.
    pub round_timeout: Option<Duration>,
    /// Usable answers that are enough *and* needed. Absent: the whole panel is waited for, and one answer suffices.
    pub min_successful_responses: Option<usize>,
    /// Sampling temperature of the panel; the client's when absent.
    pub temperature: Option<f64>,
    /// What a failing member, judge or writer does.
    pub on_error: OnError,
    /// Whether the trace shows the judge's analysis.
    pub include_analysis: bool,
    /// Whether the trace shows the panel's answers.
    pub include_intermediate_responses: bool,
    /// The texts of the stages.
    pub prompts: Prompts,
    /// Hand a single usable answer through as it is.
    pub single_answer_passthrough: bool,
    /// Hold the answers against what is known before they are compared.
    pub grounding: Option<GroundingSettings>,
    /// Who tells whether they are supported; shared words ([`OverlapScorer`]) unless who builds the plan has better.
    pub scorer: Arc<dyn SupportScorer>,
    /// How often the panel is asked about one question.
    pub cadence: PanelCadence,
}

impl FusionPlan {
    /// The plan of `settings`; `candidates` are the panel where the settings name none.
    ///
    /// # Errors
    /// An empty or too large panel, an unreachable quorum, an override of nobody, or unknown prompts.
    pub fn from_settings(settings: &FusionSettings, candidates: &[ModelId]) -> Result<Self, PlanFault> {
        let panel = if settings.panel.is_empty() { candidates } else { &settings.panel };
        check_seats(panel.len(), settings.min_successful_responses)?;
        if let Some(stray) = settings.overrides.iter().find(|o| !panel.contains(&o.model)) {
            return Err(PlanFault::OverrideOfNobody(stray.model.to_string()));
        }
        let overrides = settings.overrides.iter().map(|o| SeatOverride {
            model: o.model.to_string(),
            temperature: o.temperature,
            max_completion_tokens: o.max_completion_tokens,
        });
        Ok(Self {
            judge: settings.judge.as_ref().map(ToString::to_string),
            panel: panel.iter().map(ToString::to_string).collect(),
            overrides: overrides.collect(),
            max_concurrent: settings.max_concurrent.filter(|&n| n > 0),
            max_completion_tokens: settings.max_completion_tokens,
            round_timeout: settings.round_timeout,
            min_successful_responses: settings.min_successful_responses,
            temperature: settings.temperature,
            on_error: settings.on_error,
            include_analysis: settings.include_analysis,
            include_intermediate_responses: settings.include_intermediate_responses,
            prompts: Prompts::from_settings(settings)?,
            single_answer_passthrough: settings.single_answer_passthrough,
            grounding: settings.grounding,
            scorer: Arc::new(OverlapScorer),
            cadence: settings.cadence,
        })
    }

    /// Refuses names that stand for a policy (auto names, fusion slugs, entrypoints) as member or judge (case G16).
    ///
    /// # Errors
    /// [`PlanFault::Recursion`] with the first such name.
    pub fn refuse_recursion(&self, is_policy_name: &dyn Fn(&str) -> bool) -> Result<(), PlanFault> {
        let members = self.panel.iter().map(|name| (name, "panel member"));
        let judge = self.judge.iter().map(|name| (name, "judge"));
        match members.chain(judge).find(|(name, _)| is_policy_name(name)) {
            Some((name, role)) => Err(PlanFault::Recursion { name: name.clone(), role }),
            None => Ok(()),
        }
    }

    /// Usable answers without which there is no judge and no synthesis; at least 1.
    #[must_use]
    pub fn required(&self) -> usize {
        self.min_successful_responses.unwrap_or(1)
    }

    /// When the panel is complete.
    #[must_use]
    pub fn gather_rule(&self) -> GatherRule {
        let seats = self.panel.len();
        GatherRule {
            quorum: self.min_successful_responses.unwrap_or(seats),
            max_concurrent: self.max_concurrent.unwrap_or(seats),
            timeout: self.round_timeout,
        }
    }

    /// The settings of a seat, if it has its own.
    pub(super) fn override_of(&self, seat: usize) -> Option<&SeatOverride> {
        let model = self.panel.get(seat)?;
        let own: Vec<_> = self.overrides.iter().filter(|o| &o.model == model).collect();
        own.get(self.sitting(seat)).or(own.last()).copied()
    }

    /// How many earlier seats the model of `seat` has.
    pub(super) fn sitting(&self, seat: usize) -> usize {
        let model = self.panel.get(seat);
        self.panel.iter().take(seat).filter(|&earlier| Some(earlier) == model).count()
    }

    /// The explicit judge, else the first survivor in seat order (case G02).
    pub(super) fn judge_among(&self, survivors: &[Survivor]) -> String {
        let first = || survivors.first().map(|s| s.reply.model.clone());
        self.judge.clone().or_else(first).unwrap_or_default()
    }
}

/// Checks the size of a panel and whether it can reach the quorum.
fn check_seats(seats: usize, quorum: Option<usize>) -> Result<(), PlanFault> {
    if seats == 0 {
        return Err(PlanFault::NoPanel);
    }
    if seats > MAX_PANEL {
        return Err(PlanFault::PanelTooLarge { seats, limit: MAX_PANEL });
    }
    match quorum {
        Some(wanted) if wanted == 0 || wanted > seats => Err(PlanFault::QuorumUnreachable { wanted, seats }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::FusionOverride;

    fn settings(panel: &[&str]) -> FusionSettings {
        FusionSettings {
            panel: panel.iter().map(|m| ModelId::new(*m)).collect(),
            ..FusionSettings::default()
        }
    }

    #[test]
    fn the_candidates_are_the_panel_where_none_is_named() {
        let candidates = [ModelId::new("x")];
        let plan = FusionPlan::from_settings(&settings(&[]), &candidates).unwrap();
        assert_eq!(plan.panel, ["x"]);
        assert_eq!(FusionPlan::from_settings(&settings(&["a"]), &candidates).unwrap().panel, ["a"]);
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused() {
        let stray =
            FusionOverride { model: ModelId::new("b"), temperature: None, max_completion_tokens: None };
        for (settings, expect) in [
            (settings(&[]), PlanFault::NoPanel),
            (settings(&["m"; 27]), PlanFault::PanelTooLarge { seats: 27, limit: 26 }),
            (
                FusionSettings { min_successful_responses: Some(2), ..settings(&["a"]) },
                PlanFault::QuorumUnreachable { wanted: 2, seats: 1 },
            ),
            (
                FusionSettings { overrides: vec![stray], ..settings(&["a"]) },
                PlanFault::OverrideOfNobody("b".to_owned()),
            ),
        ] {
            assert_eq!(FusionPlan::from_settings(&settings, &[]).unwrap_err(), expect);
        }
    }

    #[test]
    fn without_a_quorum_all_are_waited_for_and_one_suffices() {
        let mut settings = settings(&["a", "b", "c"]);
        settings.max_concurrent = Some(0);
        let plan = FusionPlan::from_settings(&settings, &[]).unwrap();
        assert_eq!(
            (plan.gather_rule().quorum, plan.gather_rule().max_concurrent, plan.required()),
            (3, 3, 1)
        );
        settings.min_successful_responses = Some(2);
        let plan = FusionPlan::from_settings(&settings, &[]).unwrap();
        assert_eq!((plan.gather_rule().quorum, plan.required()), (2, 2));
    }

    #[test]
    fn g16_a_policy_name_is_neither_member_nor_judge() {
        let is_policy = |name: &str| name.starts_with("vllm-sr/");
        let plan = |s: &FusionSettings| FusionPlan::from_settings(s, &[]).unwrap();
        assert_eq!(plan(&settings(&["a"])).refuse_recursion(&is_policy), Ok(()));
        let fault = plan(&settings(&["a", "vllm-sr/auto"])).refuse_recursion(&is_policy).unwrap_err();
        assert!(fault.to_string().starts_with("`vllm-sr/auto` cannot be a fusion panel member"));
        let judged = FusionSettings { judge: Some(ModelId::new("vllm-sr/fusion")), ..settings(&["a"]) };
        let fault = plan(&judged).refuse_recursion(&is_policy).unwrap_err();
        assert!(fault.to_string().starts_with("`vllm-sr/fusion` cannot be a fusion judge"));
    }
}
