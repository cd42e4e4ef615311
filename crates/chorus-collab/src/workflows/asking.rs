//! What a worker and the writer are asked: the client's conversation, their part, and the results they may see.
//!
//! **Invariant:** a worker sees the results that its step's access list allows and no others; results are fenced and
//! without the names of models.

use super::plan::{FINAL, PART, WorkflowPlan, role_prompt};
use super::state::{WorkResult, WorkflowState};
use super::steps::Step;
use crate::calls::{Call, CallRole, ModelCalls};
use crate::compact;
use crate::fault::LoopFault;
use crate::fence::Fence;
use crate::member::{NO_TOOLS, with_tools, without_tools};
use crate::question;
use crate::template::fill;
use crate::window::{Window, prompt_tokens};
use chorus_wire::{ChatRequest, Message, Role, tokens};
use serde_json::Value;

/// What stands around earlier results.
const RESULTS: &str = include_str!("../../prompts/workflows-v1/results.md");
/// What stands where nothing is to be seen.
const NOTHING: &str = "No results of others are shown to you.";

/// What requests are made of.
pub(super) struct Asking<'a> {
    pub(super) plan: &'a WorkflowPlan,
    /// The client's request.
    pub(super) ask: &'a ChatRequest,
    pub(super) calls: &'a dyn ModelCalls,
}

/// The results that are shown, and the steps that gave none.
struct Sight<'s> {
    results: Vec<&'s WorkResult>,
    missing: Vec<&'s str>,
}

impl Asking<'_> {
    /// Whether tools are offered to this run. A client that says `tool_choice: none` offers none.
    pub(super) fn offers_tools(&self) -> bool {
        let none = self.ask.body().read::<Value>("tool_choice").ok().flatten().is_some_and(|it| it == "none");
        self.ask.tool_count() > 0 && !none
    }

    /// What the planner is given: the conversation, with nothing after it.
    pub(super) fn conversation(&self) -> ChatRequest {
        without_tools(self.ask, NO_TOOLS.trim())
    }

    /// The call of one worker, with the turns it has made already.
    ///
    /// # Errors
    /// [`LoopFault::Overflow`].
    pub(super) fn worker(
        &self,
        state: &WorkflowState,
        step: &Step,
        worker: usize,
    ) -> Result<Call, LoopFault> {
        let model = step.models.get(worker).cloned().unwrap_or_default();
        let base = if self.offers_tools() { with_tools(self.ask) } else { self.conversation() };
        let earlier = state.plan.steps.iter().take_while(|other| other.id != step.id);
        let sight = Sight {
            results: state
                .results
                .iter()
                .filter(|it| it.step != step.id && step.sees(&it.step, &it.agent))
                .collect(),
            missing: earlier
                .filter(|other| step.sees(&other.id, "") && state.of_step(&other.id).next().is_none())
                .map(|other| other.id.as_str())
                .collect(),
        };
        let role = step.prompt.as_deref().unwrap_or_else(|| role_prompt(&step.role));
        let turns = if worker == state.worker { state.turns.as_slice() } else { &[] };
        let mut ask = self.composed(base, &model, (PART, role), &sight, turns)?;
        if let Some(temperature) = self.plan.temperature {
            ask.set("temperature", &temperature);
        }
        if let Some(cap) = self.plan.max_completion_tokens {
            ask.set("max_completion_tokens", &cap);
        }
        if worker > 0
            && let Ok(Some(Some(seed))) = self.ask.body().read::<Option<i64>>("seed")
        {
            ask.set("seed", &seed.wrapping_add(i64::try_from(worker).unwrap_or_default()));
        }
        Ok(Call { model, role: CallRole::Worker, ask, timeout: self.plan.round_timeout })
    }

    /// The call of the writer, with every option of the visible answer.
    ///
    /// # Errors
    /// [`LoopFault::Overflow`].
    pub(super) fn writer(&self, state: &WorkflowState, model: &str) -> Result<Call, LoopFault> {
        let mut base = self.ask.clone();
        base.remove("plugins");
        base.remove("fusion");
        let steps = state.plan.steps.iter();
        let sight = Sight {
            results: state.results.iter().collect(),
            missing: steps
                .filter(|step| state.of_step(&step.id).next().is_none())
                .map(|step| step.id.as_str())
                .collect(),
        };
        let own = state.plan.last.as_ref().and_then(|last| last.prompt.as_deref());
        let role = own.or(self.plan.final_prompt.as_deref()).unwrap_or_default();
        let ask = self.composed(base, model, (FINAL, role), &sight, &state.turns)?;
        Ok(Call { model: model.to_owned(), role: CallRole::Synthesis, ask, timeout: None })
    }

    /// The conversation, the part with its results cut fairly to the model's window, and the turns.
    fn composed(
        &self,
        mut base: ChatRequest,
        model: &str,
        (template, role): (&str, &str),
        sight: &Sight<'_>,
        turns: &[Value],
    ) -> Result<ChatRequest, LoopFault> {
        let before = base.messages().to_vec();
        let turns: Vec<Message> = turns.iter().filter_map(message).collect();
        base.set_messages(before.iter().chain(&turns).cloned().collect());
        let question = question::original(self.ask);
        let window = Window::of(self.calls, model);
        let written = [template, role, RESULTS, &*question].map(tokens::of_text);
        let fixed = prompt_tokens(&base) + written.iter().sum::<u64>();
        let texts: Vec<&str> = sight.results.iter().map(|result| result.text.as_str()).collect();
        let room = window.room_bytes(fixed, base.max_output_tokens());
        let cuts = compact::fit(&texts, room).ok_or_else(|| window.overflow())?;
        let texts: Vec<&str> = cuts.iter().map(|cut| cut.text.as_str()).collect();
        let fence = Fence::around(texts.iter().copied().chain([&*question, role]));
        let results = sight.told(&fence, &texts);
        let slots = [
            ("role", &*fence.neutral(role)),
            ("results", &*results),
            ("original", &*fence.neutral(&question)),
        ];
        let prompt = Message::new(Role::User, &fill(template.trim(), &slots));
        base.set_messages(before.into_iter().chain([prompt]).chain(turns).collect());
        Ok(base)
    }
}

impl Sight<'_> {
    /// The results in their tags; a step that gave none is named, not left out (case G24).
    fn told(&self, fence: &Fence, texts: &[&str]) -> String {
        if self.results.is_empty() && self.missing.is_empty() {
            return NOTHING.to_owned();
        }
        let mut blocks = Vec::new();
        for (result, text) in self.results.iter().zip(texts) {
            let worker = result.agent.split(':').nth(1).unwrap_or_default();
            let attributes = format!("part=\"{}\" worker=\"{worker}\"", attribute(&result.step));
            blocks.push(fence.wrap("result", &attributes, text));
        }
        let missing = |step: &&str| format!("(The part \"{}\" gave no result.)", attribute(step));
        blocks.extend(self.missing.iter().map(missing));
        fill(RESULTS.trim(), &[("results", &*blocks.join("\n\n")), ("key", &*fence.key)])
    }
}

/// A step's id as it may stand in a tag; a planner may have chosen it.
fn attribute(id: &str) -> String {
    id.chars().filter(|c| !c.is_control() && !"\"<>".contains(*c)).collect()
}

fn message(turn: &Value) -> Option<Message> {
    Message::parse(serde_json::value::to_raw_value(turn).ok()?.into(), 0).ok()
}
