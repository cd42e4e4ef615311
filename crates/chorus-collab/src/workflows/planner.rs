//! The planner: one model divides the work; a plan that cannot be followed is sent back once.
//!
//! **Invariant:** a plan that is followed has been checked; what stands in for it is the whole task (case G23).

use super::asking::Asking;
use super::plan::{PLANNER, REPAIR};
use super::steps::{Last, Plan, Step};
use crate::calls::{Call, CallRole, FaultKind};
use crate::fault::LoopFault;
use crate::salvage;
use crate::template::fill;
use chorus_spec::OnError;
use chorus_wire::{ChatRequest, Message, Role};
use serde_json::{Map, Value};

/// How often a planner is asked.
const TRIES: usize = 2;
/// The id of the step that stands in for a plan. Source: contract §2.6.
const FALLBACK: &str = "fallback_solve";
/// What a step does whose planner did not say.
const DEFAULT_ROLE: &str = "worker";

/// The plan, and what went wrong where it is not the planner's.
///
/// # Errors
/// [`LoopFault::Planner`], [`LoopFault::Plan`]; under `on_error: skip` only when the client left.
pub(super) async fn plan(asking: &Asking<'_>) -> Result<(Plan, Option<String>), LoopFault> {
    let mut ask = asked(asking);
    let mut problem = String::new();
    for _ in 0..TRIES {
        let call = Call {
            model: asking.plan.planner.clone(),
            role: CallRole::Planner,
            ask: ask.clone(),
            timeout: asking.plan.round_timeout,
        };
        let said = match asking.calls.complete(call).await {
            Ok(reply) => reply.reply.content,
            Err(fault) => {
                let left = fault.kind == FaultKind::Cancelled;
                return stand_in(asking, LoopFault::Planner(fault), left);
            }
        };
        match read(&said, asking) {
            Ok(plan) => return Ok((plan, None)),
            Err(wrong) => problem = wrong,
        }
        let again = fill(REPAIR.trim(), &[("problem", &problem)]);
        let turns = [Message::new(Role::Assistant, &said), Message::new(Role::User, &again)];
        ask.set_messages(ask.messages().iter().cloned().chain(turns).collect());
    }
    stand_in(asking, LoopFault::Plan(problem), false)
}

/// One step that does everything, under `on_error: skip`.
fn stand_in(asking: &Asking<'_>, fault: LoopFault, left: bool) -> Result<(Plan, Option<String>), LoopFault> {
    if asking.plan.on_error == OnError::Fail || left {
        return Err(fault);
    }
    let step = Step {
        id: FALLBACK.to_owned(),
        role: DEFAULT_ROLE.to_owned(),
        models: asking.plan.workers.iter().take(1).cloned().collect(),
        prompt: None,
        access_list: None,
    };
    Ok((Plan { steps: vec![step], last: None }, Some(format!("one step stands in for the plan: {fault}"))))
}

fn asked(asking: &Asking<'_>) -> ChatRequest {
    let plan = asking.plan;
    let (steps, parallel) = (plan.max_steps.to_string(), plan.max_parallel.to_string());
    let models = plan.workers.join(", ");
    let slots = [("models", &*models), ("max_steps", &*steps), ("max_parallel", &*parallel)];
    let prompt = Message::new(Role::User, &fill(PLANNER.trim(), &slots));
    let mut ask = asking.conversation();
    ask.set_messages(ask.messages().iter().cloned().chain([prompt]).collect());
    ask.set("temperature", &0.0);
    ask.set("max_completion_tokens", &plan.planner_max_completion_tokens);
    ask.set("response_format", &serde_json::json!({ "type": "json_object" }));
    ask
}

/// The last object with steps that is a sound plan, because a planner may quote another one (case G10).
fn read(text: &str, asking: &Asking<'_>) -> Result<Plan, String> {
    let (_, said) = salvage::split_thinking(text);
    let found = salvage::objects(said, |object| object.get("steps").map(|steps| parsed(steps, object)));
    let Some(last) = found.into_iter().next_back() else {
        return Err("it is not a JSON object with `steps`".to_owned());
    };
    let plan = last?;
    plan.check(&asking.plan.bounds())?;
    Ok(plan)
}

fn parsed(steps: &Value, object: &Map<String, Value>) -> Result<Plan, String> {
    let steps = steps.as_array().ok_or("`steps` is not a list")?;
    let steps = steps.iter().enumerate().map(|(at, step)| one(at, step)).collect::<Result<_, String>>()?;
    let last = object
        .get("final")
        .and_then(Value::as_object)
        .map(|last| Last { model: text(last.get("model")), prompt: text(last.get("prompt")) });
    Ok(Plan { steps, last })
}

/// A step as a planner wrote it: an id and a role may be missing, one model may stand without its list.
fn one(at: usize, value: &Value) -> Result<Step, String> {
    let id = text(value.get("id")).unwrap_or_else(|| format!("step-{}", at + 1));
    let list = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(one)) => Ok(Some(vec![one.clone()])),
        Some(Value::Array(items)) => {
            let words: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            words.map(Some).ok_or_else(|| format!("`{key}` of the step `{id}` is not a list of names"))
        }
        Some(_) => Err(format!("`{key}` of the step `{id}` is not a list of names")),
    };
    let (models, access_list) = (list("models")?.unwrap_or_default(), list("access_list")?);
    let role = text(value.get("role")).unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    let prompt = text(value.get("prompt"));
    Ok(Step { id, role, models, prompt, access_list })
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}
