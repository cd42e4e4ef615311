//! Ratings that no rater's words give: by whoever verifies answers, or by a trained rule over their log-probabilities.
//!
//! **Invariant:** an answer that cannot be measured has no rating; it is never rated low for that.

use super::plan::{Rating, RatingsPlan};
use crate::answers::Survivor;
use crate::confidence::{Check, LogprobRule, NoEvidence};
use crate::question;
use chorus_spec::TokenFilter;
use chorus_wire::ChatRequest;
use futures_util::future::join_all;

/// The word of who measured.
pub(super) fn rater(plan: &RatingsPlan) -> &'static str {
    if plan.rating == Rating::Verifier { "verifier" } else { "scorer" }
}

/// One rating an answer, by the plan's verifier; all are asked at once.
pub(super) async fn verified(
    plan: &RatingsPlan,
    ask: &ChatRequest,
    answers: &[Survivor],
) -> Vec<Result<f64, NoEvidence>> {
    let (question, context) = (question::original(ask), question::context(ask));
    let (question, context) = (&*question, &*context);
    join_all(answers.iter().map(|answer| async move {
        let Some(verifier) = &plan.verifier else { return Err(NoEvidence::NoVerifier) };
        let check = Check { question, context, answer: &answer.text, threshold: 0.0 };
        let support = verifier.verify(check, plan.verifier_timeout).await.map_err(NoEvidence::CheckFailed)?;
        if (0.0..=1.0).contains(&support) { Ok(support) } else { Err(NoEvidence::Unreadable) }
    }))
    .await
}

/// One rating an answer, by the plan's trained rule.
pub(super) fn scored(plan: &RatingsPlan, answers: &[Survivor]) -> Vec<Result<f64, NoEvidence>> {
    let rule = LogprobRule::Learned;
    let score = |answer: &Survivor| rule.confidence(&answer.reply, TokenFilter::All, plan.scorer.as_deref());
    answers.iter().map(score).collect()
}
