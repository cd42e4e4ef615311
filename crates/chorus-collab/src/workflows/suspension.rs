//! Tool calls go to the client and come back: the run is put away under an id that the calls carry, and taken up by the
//! follow-up request on the very worker that called.
//!
//! **Invariant:** a state is taken once; a follow-up that does not fit it leaves it where it was.

use super::plan::WorkflowPlan;
use super::state::{Awaited, Belongs, StateFault, VERSION, WorkflowState, WorkflowStates};
use super::trace::{PendingToolCall, WorkflowTrace};
use crate::calls::{Answer, Reply};
use crate::fault::LoopFault;
use crate::finish;
use chorus_wire::{ChatRequest, Message, RequestLimits, Role};
use serde_json::{Value, json};

/// How an id of ours begins. Source: contract §2.6, `flowtool_<24hex>__<seq>__<orig>`.
const PREFIX: &str = "flowtool_";
/// Digits of a state's id.
const ID_DIGITS: usize = 24;

/// Where a run that waits for tools is put.
#[derive(Clone, Copy)]
pub struct Suspension<'a> {
    /// The store.
    pub states: &'a dyn WorkflowStates,
    /// A random id of 24 lower-case hexadecimal digits that nobody has used: a run is suspended at most once a request.
    pub fresh_id: &'a str,
    /// The decision that the request matched.
    pub decision: &'a str,
}

impl Suspension<'_> {
    /// What a run of that plan belongs to.
    pub(super) fn belongs(&self, plan: &WorkflowPlan) -> Belongs {
        Belongs {
            decision: self.decision.to_owned(),
            mode: plan.mode().to_owned(),
            template: plan.template.clone(),
            workers: plan.workers.clone(),
        }
    }

    /// The run that the tool results at the end of the conversation belong to, ready to go on, and its request; `None`
    /// for a conversation that does not end in results of ours.
    ///
    /// # Errors
    /// [`LoopFault::Resume`], [`LoopFault::State`].
    pub(super) async fn take_up(
        &self,
        plan: &WorkflowPlan,
        ask: &ChatRequest,
    ) -> Result<Option<(WorkflowState, ChatRequest)>, LoopFault> {
        let results = trailing_results(ask);
        let Some(id) = results.iter().find_map(|message| state_id(message)) else {
            return Ok(None);
        };
        let kept = self.states.take(id).await.map_err(unkept)?;
        let text = kept.ok_or_else(|| {
            LoopFault::Resume(
                "their run has ended, was taken up before, or has waited longer than it is kept".to_owned(),
            )
        })?;
        match self.fitting(plan, ask, &text, &results) {
            Ok(found) => Ok(Some(found)),
            Err(problem) => {
                self.states.put(id, text).await.map_err(unkept)?;
                Err(LoopFault::Resume(problem))
            }
        }
    }

    /// The state with the results in it, and the request that it began with.
    fn fitting(
        &self,
        plan: &WorkflowPlan,
        ask: &ChatRequest,
        text: &str,
        results: &[&Message],
    ) -> Result<(WorkflowState, ChatRequest), String> {
        let unreadable = || "their run was kept by another version of this program".to_owned();
        let mut state: WorkflowState = serde_json::from_str(text).map_err(|_| unreadable())?;
        if state.version != VERSION {
            return Err(unreadable());
        }
        if state.belongs != self.belongs(plan) {
            return Err("their run belongs to another decision, or its workflow was changed".to_owned());
        }
        let limits = RequestLimits { max_messages: usize::MAX };
        let mut began = ChatRequest::parse(state.request.as_bytes(), &limits).map_err(|_| unreadable())?;
        began.set_stream(ask.stream(), ask.include_usage());
        let answered = answered(&state, results)?;
        state.turns.extend(answered);
        state.awaited.clear();
        Ok((state, began))
    }

    /// Puts the run away, and gives the client the calls under ids of ours.
    ///
    /// # Errors
    /// [`LoopFault::State`].
    pub(super) async fn put_away(
        &self,
        state: &mut WorkflowState,
        ask: &ChatRequest,
        mut reply: Box<Reply>,
        trace: &mut WorkflowTrace,
    ) -> Result<Answer, LoopFault> {
        finish::whole(&mut reply.reply);
        self.rewrite(state, &mut reply);
        let shown: Vec<String> = state.awaited.iter().map(|call| call.shown.clone()).collect();
        state.trajectory.push(shown.clone());
        state.request = String::from_utf8_lossy(&ask.to_bytes()).into_owned();
        let text = serde_json::to_string(state)
            .map_err(|fault| LoopFault::State(format!("the run cannot be written: {fault}")))?;
        self.states.put(self.fresh_id, text).await.map_err(unkept)?;
        let step = state.current();
        trace.pending_tool_call = Some(PendingToolCall {
            phase: if step.is_some() { "worker" } else { "final" },
            state_id: self.fresh_id.to_owned(),
            agent_id: step.map(|step| step.agent(state.worker)),
            step_id: step.map(|step| step.id.clone()),
            role: step.map(|step| step.role.clone()),
            model: reply.model.clone(),
            tool_call_ids: shown,
        });
        Ok(Answer::Finished(reply))
    }

    /// Keeps the message as the model wrote it, and renames its calls in the reply.
    fn rewrite(&self, state: &mut WorkflowState, reply: &mut Reply) {
        let Ok(Some(mut choices)) = reply.reply.body().read::<Value>("choices") else {
            return;
        };
        let Some(message) = choices.pointer_mut("/0/message") else {
            return;
        };
        let kept = |key: &str| message.get(key).cloned().unwrap_or_default();
        let own =
            json!({ "role": "assistant", "content": kept("content"), "tool_calls": kept("tool_calls") });
        state.turns.push(own);
        state.awaited.clear();
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (call, read) in calls.into_iter().flatten().zip(&mut reply.reply.tool_calls) {
            state.calls_of_tools += 1;
            let shown = format!("{PREFIX}{}__{}__{}", self.fresh_id, state.calls_of_tools, read.id);
            state
                .awaited
                .push(Awaited { own: std::mem::replace(&mut read.id, shown.clone()), shown: shown.clone() });
            if let Some(fields) = call.as_object_mut() {
                fields.insert("id".to_owned(), shown.into());
            }
        }
        reply.reply.set("choices", &choices);
    }
}

fn unkept(StateFault(public): StateFault) -> LoopFault {
    LoopFault::State(public)
}

/// The tool results that the conversation ends in.
fn trailing_results(ask: &ChatRequest) -> Vec<&Message> {
    let from = ask.messages().iter().rposition(|message| message.role != Role::Tool).map_or(0, |at| at + 1);
    ask.messages().iter().skip(from).collect()
}

/// The id of the state that a tool result belongs to.
fn state_id(result: &Message) -> Option<&str> {
    let (id, _) = result.tool_call_id.as_deref()?.strip_prefix(PREFIX)?.split_once("__")?;
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (id.len() == ID_DIGITS && id.chars().all(hex)).then_some(id)
}

/// The results under the ids that the model gave, in the order of its calls; each call must have exactly one.
fn answered(state: &WorkflowState, results: &[&Message]) -> Result<Vec<Value>, String> {
    let of = |shown: &str| -> Vec<&&Message> {
        results.iter().filter(|result| result.tool_call_id.as_deref() == Some(shown)).collect()
    };
    let strange = results.iter().filter_map(|result| result.tool_call_id.as_deref());
    if let Some(strange) = strange.into_iter().find(|id| !state.awaited.iter().any(|it| it.shown == *id)) {
        return Err(format!("the run did not call `{strange}`"));
    }
    let one = |call: &Awaited| match of(&call.shown).as_slice() {
        [result] => {
            let mut turn: Value =
                serde_json::from_str(result.raw().get()).map_err(|fault| fault.to_string())?;
            if let Some(fields) = turn.as_object_mut() {
                fields.insert("tool_call_id".to_owned(), call.own.as_str().into());
            }
            Ok(turn)
        }
        [] => Err(format!("the result of `{}` is missing", call.shown)),
        _ => Err(format!("`{}` has more than one result", call.shown)),
    };
    state.awaited.iter().map(one).collect()
}
