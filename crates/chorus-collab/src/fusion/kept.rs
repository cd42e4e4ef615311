//! What a panel said, kept from one turn of a question to the next: a conversation that ends in tool results goes on with
//! it, and the panel is not asked again (case G25).
//!
//! It knows no store. **Invariant:** what is kept is found only by the same question, decision, panel and prompts, and by
//! the ids of the very tool calls that the answer made.

use super::analysis::Analysis;
use super::grounding::GroundingTrace;
use super::plan::FusionPlan;
use super::trace::FusionTrace;
use crate::answers::Survivor;
use crate::calls::Reply;
use chorus_spec::{Digest, PanelCadence};
use chorus_wire::{ChatReply, ChatRequest, Message, Role, Usage};
use serde::{Deserialize, Serialize};

/// The version of the form below; another one is not taken up.
const VERSION: u32 = 1;

/// A panel's answers and their comparison, between two turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptPanel {
    version: u32,
    answers: Vec<KeptAnswer>,
    analysis: Option<Analysis>,
    judge: String,
    grounding: Option<GroundingTrace>,
}

/// One usable answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptAnswer {
    seat: usize,
    model: String,
    text: String,
    reasoning: Option<String>,
}

impl KeptPanel {
    /// What a run of that trace leaves for the next turn; `None` where nobody judged, because nothing was compared.
    #[must_use]
    pub fn of(trace: &FusionTrace) -> Option<Self> {
        let dropped = |seat: usize| {
            let scores = trace.grounding.iter().flat_map(|grounding| &grounding.scores);
            scores.into_iter().any(|score| score.seat == seat && score.dropped)
        };
        let answers: Vec<KeptAnswer> = trace
            .responses
            .iter()
            .filter(|response| !dropped(response.seat))
            .map(|response| KeptAnswer {
                seat: response.seat,
                model: response.model.clone(),
                text: response.content.clone(),
                reasoning: response.reasoning.clone(),
            })
            .collect();
        let judge = trace.judge_model.clone().filter(|_| !answers.is_empty())?;
        let (analysis, grounding) = (trace.analysis.clone(), trace.grounding.clone());
        Some(Self { version: VERSION, answers, analysis, judge, grounding })
    }

    /// Reads it back; `None` when another version of this program wrote it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|kept: &Self| kept.version == VERSION)
    }

    /// As a text for a store.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    pub(super) fn judge(&self) -> &str {
        &self.judge
    }

    pub(super) fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref()
    }

    pub(super) fn grounding(&self) -> Option<GroundingTrace> {
        self.grounding.clone()
    }

    /// The answers as a panel gives them; their calls are rows of an earlier run.
    pub(super) fn survivors(&self) -> Vec<Survivor> {
        let survivor = |answer: &KeptAnswer| Survivor {
            seat: answer.seat,
            text: answer.text.clone(),
            reasoning: answer.reasoning.clone(),
            reply: Reply {
                model: answer.model.clone(),
                reply: ChatReply::text("", &answer.model, 0, &answer.text),
                usage: Usage::default(),
            },
        };
        self.answers.iter().map(survivor).collect()
    }
}

/// Under which name a turn's panel is kept, once the answer has made those tool calls; `None` where it is not kept: no
/// calls, a call without an id, or a plan that asks its panel in every turn.
#[must_use]
pub fn panel_key(plan: &FusionPlan, decision: &str, ask: &ChatRequest, calls: &[String]) -> Option<String> {
    let nameless = calls.is_empty() || calls.iter().any(|id| id.trim().is_empty());
    if nameless || plan.cadence == PanelCadence::EveryTurn {
        return None;
    }
    let asked = ask.messages().iter().rposition(|message| message.role == Role::User)?;
    let mut ids = calls.to_vec();
    ids.sort_unstable();
    let mut texts = vec![decision.to_owned(), plan.prompts.digest().to_string()];
    texts.extend(plan.panel.iter().cloned().chain(plan.judge.clone()));
    texts.extend(ids);
    texts.extend(ask.messages().iter().take(asked + 1).map(|message| message.raw().get().to_owned()));
    // Each text with its length, so that no two lists of texts are one.
    let all: String = texts.iter().map(|text| format!("{}:{text}", text.len())).collect();
    let digest = Digest::of(all.as_bytes());
    digest.as_str().rsplit(':').next().map(str::to_owned)
}

/// The ids of the tool calls whose results a conversation ends in; empty where it ends in anything else, or where the
/// results are not those of the calls before them.
#[must_use]
pub fn answered_calls(ask: &ChatRequest) -> Vec<String> {
    let messages = ask.messages();
    let is_result = |message: &Message| message.role == Role::Tool;
    let Some(before) = messages.iter().rposition(|message| !is_result(message)) else { return Vec::new() };
    let caller = messages.get(before).filter(|message| message.role == Role::Assistant);
    let called: Vec<String> =
        caller.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone()).collect();
    let results = messages.iter().skip(before + 1);
    let mut answered: Vec<&str> = results.filter_map(|message| message.tool_call_id.as_deref()).collect();
    answered.sort_unstable();
    let mut sorted: Vec<&str> = called.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    if sorted == answered { called } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::{FusionSettings, ModelId};
    use chorus_wire::RequestLimits;

    fn ask(messages: &str) -> ChatRequest {
        let body = format!("{{\"model\":\"m\",\"messages\":[{messages}]}}");
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    fn plan(cadence: PanelCadence) -> FusionPlan {
        let panel = vec![ModelId::new("a")];
        FusionPlan::from_settings(&FusionSettings { panel, cadence, ..FusionSettings::default() }, &[])
            .unwrap()
    }

    const QUESTION: &str = r#"{"role":"user","content":"q"}"#;
    const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[
        {"id":"t2","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;

    #[test]
    fn g25_a_turn_finds_what_the_one_before_it_kept() {
        let plan = plan(PanelCadence::UserTurn);
        let ids = ["t1".to_owned(), "t2".to_owned()];
        let kept = panel_key(&plan, "d", &ask(QUESTION), &ids).unwrap();
        let results = r#"{"role":"tool","tool_call_id":"t1","content":"1"},{"role":"tool","tool_call_id":"t2","content":"2"}"#;
        let next = ask(&format!("{QUESTION},{CALL},{results}"));
        assert_eq!(panel_key(&plan, "d", &next, &answered_calls(&next)).as_ref(), Some(&kept));
        assert_eq!(kept.len(), 64);
        for (decision, question, ids) in [
            ("other", QUESTION, &ids[..]),
            ("d", r#"{"role":"user","content":"r"}"#, &ids),
            ("d", QUESTION, &ids[1..]),
        ] {
            assert_ne!(panel_key(&plan, decision, &ask(question), ids).as_ref(), Some(&kept));
        }
    }

    #[test]
    fn g25_what_is_no_turn_of_tools_has_no_key() {
        for messages in [
            QUESTION.to_owned(),
            format!("{QUESTION},{CALL}"),
            format!("{QUESTION},{CALL},{{\"role\":\"tool\",\"tool_call_id\":\"t1\",\"content\":\"1\"}}"),
            format!("{QUESTION},{{\"role\":\"tool\",\"tool_call_id\":\"t1\",\"content\":\"1\"}}"),
        ] {
            assert!(answered_calls(&ask(&messages)).is_empty(), "{messages}");
        }
        let one = ["t1".to_owned()];
        assert_eq!(panel_key(&plan(PanelCadence::EveryTurn), "d", &ask(QUESTION), &one), None);
        assert_eq!(panel_key(&plan(PanelCadence::UserTurn), "d", &ask(QUESTION), &[String::new()]), None);
    }

    #[test]
    fn what_another_version_wrote_is_not_read() {
        let kept = r#"{"version":1,"answers":[],"analysis":null,"judge":"j","grounding":null}"#;
        assert!(KeptPanel::read(kept).is_some());
        assert!(KeptPanel::read(&kept.replace(":1", ":2")).is_none());
        assert!(KeptPanel::read("{}").is_none());
    }
}
