//! One model of the cascade is asked. It gets the client's request as it is, tools and shape of the answer included,
//! because its answer may be the visible one.

use super::agreement;
use super::evidence::Tried;
use super::logprobs;
use super::plan::{ConfidencePlan, Measure};
use super::rule::LogprobRule;
use super::verify::Checks;
use crate::calls::{Answer, Call, CallFault, CallRole, ModelCalls, Reply};
use crate::finish;
use chorus_wire::ChatRequest;

/// The answer of `model` with its measurement.
///
/// # Errors
/// When there is no answer.
pub(super) async fn measured(
    plan: &ConfidencePlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    model: &str,
) -> Result<Tried, CallFault> {
    let asked = visible(ask);
    match plan.measure {
        Measure::Logprobs(rule) => by_logprobs(plan, rule, ask, calls, call(model, asked)).await,
        Measure::Agreement { samples } => agreement::sampled(plan, &asked, calls, model, samples).await,
        Measure::SelfVerify => {
            let reply = whole(calls, call(model, asked)).await?;
            let evidence = Checks { plan, ask, calls, reply: &reply }.self_graded().await;
            Ok(Tried { reply, evidence })
        }
        Measure::Entailment { samples } => {
            let reply = whole(calls, call(model, asked)).await?;
            let evidence = Checks { plan, ask, calls, reply: &reply }.supported(samples).await;
            Ok(Tried { reply, evidence })
        }
    }
}

/// The client sees log-probabilities only where it asked for them.
async fn by_logprobs(
    plan: &ConfidencePlan,
    rule: LogprobRule,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    mut call: Call,
) -> Result<Tried, CallFault> {
    logprobs::ask_for(&mut call.ask);
    let mut reply = whole(calls, call).await?;
    let evidence = rule.confidence(&reply, plan.token_filter, plan.scorer.as_deref());
    logprobs::hide(ask, &mut reply.reply);
    Ok(Tried { reply, evidence })
}

/// The answer of the last candidate, unmeasured; a stream where the client wants one.
///
/// # Errors
/// When there is none.
pub(super) async fn last(
    plan: &ConfidencePlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
) -> Result<Answer, CallFault> {
    let call = call(&plan.last, visible(ask));
    if ask.stream() {
        return Ok(Answer::Live(finish::live(calls.stream(call).await?)));
    }
    Ok(Answer::Finished(Box::new(whole(calls, call).await?)))
}

async fn whole(calls: &dyn ModelCalls, call: Call) -> Result<Reply, CallFault> {
    let mut reply = calls.complete(call).await?;
    finish::whole(&mut reply.reply);
    Ok(reply)
}

fn call(model: &str, ask: ChatRequest) -> Call {
    Call { model: model.to_owned(), role: CallRole::Attempt, ask, timeout: None }
}

/// The client's request without what is Chorus's own.
fn visible(ask: &ChatRequest) -> ChatRequest {
    let mut ask = ask.clone();
    for field in ["plugins", "fusion"] {
        ask.remove(field);
    }
    ask
}
