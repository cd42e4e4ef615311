//! The best answer so far, and what a cascade ends with when nobody's answer was accepted.

use super::evidence::{NoEvidence, Tried};
use super::plan::ConfidencePlan;
use super::trace::ConfidenceTrace;
use crate::calls::{Answer, CallFault, FaultKind, Reply};
use crate::fault::{LoopFault, MemberFailure};
use chorus_spec::OnError;

/// What a cascade holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    best: Option<(Option<f64>, Reply)>,
    failures: Vec<MemberFailure>,
    spent: Option<CallFault>,
}

impl Held {
    /// Keeps an answer that is at least as trusted as the one before it: evidence counts more than none, and among
    /// equals the later model, which the order calls the better one.
    pub(super) fn keep(&mut self, model: &str, tried: Result<Tried, CallFault>) {
        match tried {
            Ok(tried) => {
                let confidence = tried.confidence();
                if self.best.as_ref().is_none_or(|(held, _)| confidence >= *held) {
                    self.best = Some((confidence, tried.reply));
                }
            }
            Err(fault) => {
                self.failures.push((model.to_owned(), fault.kind, fault.public.clone()));
                self.spent = self.spent.take().or(Some(fault).filter(|f| f.kind == FaultKind::Budget));
            }
        }
    }

    /// The best answer.
    ///
    /// # Errors
    /// [`LoopFault::Member`] when the budget refused the first call, [`LoopFault::Quorum`] when nobody answered.
    pub(super) fn answer(self, trace: &mut ConfidenceTrace) -> Result<Answer, LoopFault> {
        match (self.best, self.spent) {
            (Some((_, reply)), _) => {
                trace.answered_by = Some(reply.model.clone());
                Ok(Answer::Finished(Box::new(reply)))
            }
            (None, Some(refused)) => Err(LoopFault::Member(refused)),
            (None, None) => Err(LoopFault::Quorum { wanted: 1, got: 0, failures: self.failures }),
        }
    }

    /// The best answer in place of the last candidate's.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); [`LoopFault::Member`] under `on_error: fail`, and for a client that left.
    pub(super) fn without_last(
        mut self,
        plan: &ConfidencePlan,
        fault: CallFault,
        trace: &mut ConfidenceTrace,
    ) -> Result<Answer, LoopFault> {
        let fails = plan.on_error == OnError::Fail && fault.kind != FaultKind::Budget;
        if fails || fault.kind == FaultKind::Cancelled {
            return Err(LoopFault::Member(fault));
        }
        self.keep(&plan.last, Err(fault));
        self.answer(trace)
    }
}

/// Why an attempt ends the run under `on_error: fail`.
pub(super) fn fault(model: &str, tried: Result<Tried, CallFault>) -> LoopFault {
    match tried.map(|tried| tried.evidence) {
        Err(fault) => LoopFault::Member(fault),
        Ok(Err(NoEvidence::CheckFailed(fault))) => LoopFault::Judge(fault),
        Ok(evidence) => {
            let why = evidence.err().map(|none| none.to_string()).unwrap_or_default();
            let public = format!("the confidence of `{model}` cannot be measured: {why}");
            LoopFault::Member(CallFault { kind: FaultKind::Ineligible, public, status: None })
        }
    }
}
