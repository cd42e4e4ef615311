//! Whether a running conversation keeps its model: one pure function over plain data.
//!
//! A switch throws away the prefix that a backend has cached, and may meet tool ids or reasoning that another model
//! wrote. So the current model stays unless another is better by more than the switch costs; while a tool call is open
//! it stays whatever is better. It knows no header, no store and no clock. Sources: contract §1.7 (`session_aware`) for
//! the weights, §4.8 for the settings; case D15.
//!
//! **Invariant:** the answer is one of the candidates, so that staying never reaches past policy or constraints.

use chorus_spec::SessionSettings;

/// What staying is worth by itself.
const STAY_BIAS: f64 = 0.10;
/// What handing a conversation over costs, where nothing better is known.
const HANDOFF_PENALTY: f64 = 0.05;
/// Weight of what the current model's cache holds.
const PREFIX_CACHE_WEIGHT: f64 = 0.20;
/// What each earlier switch of the conversation adds to the cost of another.
const SWITCH_HISTORY_WEIGHT: f64 = 0.04;
/// Most earlier switches that count.
const SWITCHES_MOST: u32 = 5;
/// How much dearer a refill of the cache may count at a dearer model.
const CACHE_COST_MOST: f64 = 2.5;
/// Tokens of history from which all of it counts.
const HISTORY_TOKENS: f64 = 8192.0;
/// Turns from which a conversation counts as long.
const LONG_TURNS: f64 = 8.0;

/// What is known of a conversation.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SessionState {
    /// The model that answered last.
    pub model: String,
    /// The decision that it answered for.
    pub decision: String,
    /// Turns that this model has answered in a row, from 1.
    pub turns: u32,
    /// Times that the model has changed.
    pub switches: u32,
    /// How hard its turns have been ([`crate::momentum`]), where the file wants that to count and they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
}

/// A conversation at its next turn.
#[derive(Debug, Clone, Copy)]
pub struct SessionAsk<'a> {
    /// How it is protected.
    pub settings: &'a SessionSettings,
    /// What is known of it; `None` for a new one.
    pub state: Option<&'a SessionState>,
    /// How long it was silent, in milliseconds.
    pub idle_ms: u64,
    /// Whether the request answers a tool call of its last turn.
    pub tool_loop: bool,
    /// Why the model so far goes on whatever the pick's score, if so.
    pub bound: Option<&'a str>,
    /// Estimated tokens of the prompt.
    pub prompt_tokens: u64,
    /// Who may answer.
    pub candidates: &'a [SessionCandidate<'a>],
    /// Index of the candidate that the selector picked.
    pub proposal: usize,
}

/// One candidate.
#[derive(Debug, Clone, Copy)]
pub struct SessionCandidate<'a> {
    /// Its name.
    pub model: &'a str,
    /// What the selector gave it, in 0..=1; `None` where it gave nothing.
    pub score: Option<f64>,
    /// US dollars per million tokens.
    pub usd_per_1m: f64,
}

/// What becomes of a conversation.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SessionVerdict {
    /// Index of the candidate that answers.
    #[serde(skip)]
    pub pick: usize,
    /// What was done.
    pub action: SessionAction,
    /// Where the conversation stands.
    pub phase: SessionPhase,
    /// The model so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The selector's pick.
    pub proposal: String,
    /// How much better the proposal is, where both have a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advantage: Option<f64>,
    /// What the switch would cost, and the margin beyond it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_cost: Option<f64>,
    /// How much of the prefix the current model's cache is believed to hold, in 0..=1.
    pub warmth: f64,
    /// Why, for people.
    pub reason: String,
}

/// What was done with the selector's pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionAction {
    /// It answers, and there was nothing to keep.
    Free,
    /// The model so far answers, as the selector wants.
    Agree,
    /// The model so far answers against the selector's pick.
    Stay,
    /// The pick takes over.
    Switch,
}

impl SessionAction {
    /// The word of headers and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Agree => "agree",
            Self::Stay => "stay",
            Self::Switch => "switch",
        }
    }
}

/// Where a conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    /// Its first turn, or its first after a long silence.
    New,
    /// A turn of its user.
    Running,
    /// A tool's answer.
    ToolLoop,
}

impl SessionPhase {
    /// The word of `x-vsr-session-phase`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Running => "running",
            Self::ToolLoop => "tool_loop",
        }
    }
}

/// How much of its prefix a cache is believed to hold after that silence, in 0..=1: all at once, nothing once the
/// conversation counts as idle.
#[must_use]
pub fn warmth(idle_ms: u64, settings: &SessionSettings) -> f64 {
    let limit = settings.idle_timeout.as_millis() as f64;
    if limit > 0.0 { (1.0 - idle_ms as f64 / limit).clamp(0.0, 1.0) } else { 0.0 }
}

/// Decides whether a conversation keeps its model.
#[must_use]
pub fn judge(ask: &SessionAsk<'_>) -> SessionVerdict {
    let Some(state) = ask.state else {
        return verdict(ask, Outcome::free(SessionPhase::New, "a new conversation"));
    };
    let phase = if ask.tool_loop { SessionPhase::ToolLoop } else { SessionPhase::Running };
    let Some(current) = ask.candidates.iter().position(|it| it.model == state.model) else {
        let reason = format!("`{}` answered so far and is not eligible for this request", state.model);
        return verdict(ask, Outcome { action: SessionAction::Switch, ..Outcome::free(phase, &reason) });
    };
    if current == ask.proposal {
        return verdict(
            ask,
            Outcome { action: SessionAction::Agree, ..Outcome::free(phase, "the same model again") },
        );
    }
    let stay = |reason: &str| Outcome {
        pick: Some(current),
        action: SessionAction::Stay,
        ..Outcome::free(phase, reason)
    };
    if ask.tool_loop {
        return verdict(ask, stay("a tool call is open: the model that made it goes on"));
    }
    if let Some(why) = ask.bound {
        return verdict(ask, stay(why));
    }
    if ask.idle_ms >= u64::try_from(ask.settings.idle_timeout.as_millis()).unwrap_or(u64::MAX) {
        let free =
            Outcome::free(SessionPhase::New, "the conversation was silent for long: its model is free");
        return verdict(ask, Outcome { action: SessionAction::Switch, ..free });
    }
    if state.turns < ask.settings.min_turns_before_switch {
        return verdict(ask, stay("the model has not had its first turns yet"));
    }
    verdict(ask, weighed(ask, state, current, phase))
}

/// Whether the proposal is better by more than a switch costs.
fn weighed(ask: &SessionAsk<'_>, state: &SessionState, current: usize, phase: SessionPhase) -> Outcome {
    let score = |at: usize| ask.candidates.get(at).and_then(|it| it.score);
    let advantage = score(ask.proposal).zip(score(current)).map(|(other, own)| other - own);
    let cost = switch_cost(ask, state, current);
    let bound = cost + ask.settings.switch_margin;
    let base = Outcome { advantage, switch_cost: Some(bound), ..Outcome::free(phase, "") };
    match advantage {
        Some(better) if better > bound => Outcome {
            action: SessionAction::Switch,
            reason: format!("better by {better:.3}, more than the switch costs ({bound:.3})"),
            ..base
        },
        Some(better) => Outcome {
            pick: Some(current),
            action: SessionAction::Stay,
            reason: format!("better by {better:.3}, less than the switch costs ({bound:.3})"),
            ..base
        },
        None => Outcome {
            pick: Some(current),
            action: SessionAction::Stay,
            reason: "nothing says that another is better".to_owned(),
            ..base
        },
    }
}

/// What handing over costs: the bias, the handoff, the lost cache (dearer to fill at a dearer model, and heavier the
/// longer the conversation), and earlier switches.
fn switch_cost(ask: &SessionAsk<'_>, state: &SessionState, current: usize) -> f64 {
    let price = |at: usize| ask.candidates.get(at).map_or(0.0, |it| it.usd_per_1m);
    let dearer = if price(current) > 0.0 { price(ask.proposal) / price(current) } else { 1.0 };
    let cached =
        warmth(ask.idle_ms, ask.settings) * continuation(ask, state) * dearer.clamp(1.0, CACHE_COST_MOST);
    let history = f64::from(state.switches.min(SWITCHES_MOST));
    ask.settings.stability_weight
        * (STAY_BIAS + HANDOFF_PENALTY + PREFIX_CACHE_WEIGHT * cached + SWITCH_HISTORY_WEIGHT * history)
}

/// How much there is to be continued, in 0..=1. Source: contract §1.7 (continuation mass .45·reuse + .35·history/8192 +
/// .20·turns/8); the same model answered last, so that reuse is whole.
fn continuation(ask: &SessionAsk<'_>, state: &SessionState) -> f64 {
    let history = (ask.prompt_tokens as f64 / HISTORY_TOKENS).min(1.0);
    let turns = (f64::from(state.turns) / LONG_TURNS).min(1.0);
    0.45 + 0.35 * history + 0.20 * turns
}

/// A verdict before names are put in.
struct Outcome {
    pick: Option<usize>,
    action: SessionAction,
    phase: SessionPhase,
    advantage: Option<f64>,
    switch_cost: Option<f64>,
    reason: String,
}

impl Outcome {
    /// The proposal, with nothing to keep.
    fn free(phase: SessionPhase, reason: &str) -> Self {
        let reason = reason.to_owned();
        Self { pick: None, action: SessionAction::Free, phase, advantage: None, switch_cost: None, reason }
    }
}

fn verdict(ask: &SessionAsk<'_>, it: Outcome) -> SessionVerdict {
    let proposal = ask.candidates.get(ask.proposal).map_or("", |it| it.model).to_owned();
    SessionVerdict {
        pick: it.pick.unwrap_or(ask.proposal),
        action: it.action,
        phase: it.phase,
        current: ask.state.map(|state| state.model.clone()),
        proposal,
        advantage: it.advantage,
        switch_cost: it.switch_cost,
        warmth: ask.state.map_or(0.0, |_| warmth(ask.idle_ms, ask.settings)),
        reason: it.reason,
    }
}

/// What is known after a turn that `model` answered for `decision`.
#[must_use]
pub fn after(state: Option<&SessionState>, model: &str, decision: &str) -> SessionState {
    let (turns, switches) = match state {
        Some(it) if it.model == model => (it.turns.saturating_add(1), it.switches),
        Some(it) => (1, it.switches.saturating_add(1)),
        None => (1, 0),
    };
    let momentum = state.and_then(|it| it.momentum);
    SessionState { model: model.to_owned(), decision: decision.to_owned(), turns, switches, momentum }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> SessionSettings {
        SessionSettings { enabled: true, ..SessionSettings::default() }
    }

    fn pool(a: f64, b: f64) -> [SessionCandidate<'static>; 2] {
        [("a", a), ("b", b)].map(|(model, score)| SessionCandidate {
            model,
            score: Some(score),
            usd_per_1m: 1.0,
        })
    }

    fn on_a(turns: u32) -> SessionState {
        SessionState { model: "a".to_owned(), decision: "d".to_owned(), turns, switches: 0, momentum: None }
    }

    fn ask<'a>(
        settings: &'a SessionSettings,
        state: &'a SessionState,
        candidates: &'a [SessionCandidate<'a>],
    ) -> SessionAsk<'a> {
        SessionAsk {
            settings,
            state: Some(state),
            idle_ms: 1_000,
            tool_loop: false,
            bound: None,
            prompt_tokens: 500,
            candidates,
            proposal: 1,
        }
    }

    #[test]
    fn d15_a_tool_loop_never_switches_and_a_new_task_is_free_to() {
        let (settings, state, candidates) = (on(), on_a(1), pool(0.1, 0.9));
        let tool = SessionAsk { tool_loop: true, ..ask(&settings, &state, &candidates) };
        let it = judge(&tool);
        assert_eq!((it.pick, it.action, it.phase), (0, SessionAction::Stay, SessionPhase::ToolLoop));
        let it = judge(&ask(&settings, &state, &candidates));
        assert_eq!((it.pick, it.action), (1, SessionAction::Switch));
        assert!(it.reason.contains("better by 0.800"), "{}", it.reason);
    }

    #[test]
    fn d15_a_switch_must_pay_for_the_warm_prefix() {
        let (settings, state, candidates) = (on(), on_a(4), pool(0.6, 0.9));
        let warm = SessionAsk { prompt_tokens: 9_000, ..ask(&settings, &state, &candidates) };
        assert_eq!(judge(&warm).action, SessionAction::Stay, "{:?}", judge(&warm));
        let cool = SessionAsk { idle_ms: 290_000, ..warm };
        assert_eq!(judge(&cool).action, SessionAction::Switch, "{:?}", judge(&cool));
        let dearer = [candidates[0], SessionCandidate { usd_per_1m: 9.0, ..candidates[1] }];
        let cost = |candidates: &[SessionCandidate<'_>]| {
            judge(&SessionAsk { candidates, ..warm }).switch_cost.unwrap()
        };
        assert!(cost(&dearer) > cost(&candidates));
    }

    #[test]
    fn a_long_silence_and_a_model_that_may_not_answer_free_the_conversation() {
        let (settings, state, candidates) = (on(), on_a(3), pool(0.6, 0.61));
        assert_eq!(judge(&ask(&settings, &state, &candidates)).action, SessionAction::Stay);
        let idle = SessionAsk { idle_ms: 300_000, ..ask(&settings, &state, &candidates) };
        assert_eq!((judge(&idle).pick, judge(&idle).phase), (1, SessionPhase::New));
        let only_b =
            SessionAsk { candidates: &candidates[1..], proposal: 0, ..ask(&settings, &state, &candidates) };
        let it = judge(&only_b);
        assert_eq!((it.pick, it.action), (0, SessionAction::Switch));
        // Not even a tool loop reaches past what policy and constraints allow.
        assert_eq!(judge(&SessionAsk { tool_loop: true, ..only_b }).pick, 0);
    }

    #[test]
    fn without_scores_the_model_stays_and_a_new_conversation_is_free() {
        let (settings, state) = (on(), on_a(2));
        let candidates = ["a", "b"].map(|model| SessionCandidate { model, score: None, usd_per_1m: 0.0 });
        assert_eq!(judge(&ask(&settings, &state, &candidates)).pick, 0);
        let new = SessionAsk { state: None, ..ask(&settings, &state, &candidates) };
        assert_eq!((judge(&new).pick, judge(&new).action), (1, SessionAction::Free));
        let settings = SessionSettings { min_turns_before_switch: 3, ..on() };
        let better = pool(0.0, 1.0);
        assert_eq!(judge(&ask(&settings, &state, &better)).action, SessionAction::Stay);
    }

    #[test]
    fn turns_and_switches_are_counted() {
        let first = after(None, "a", "d");
        let second = after(Some(&first), "a", "d");
        let third = after(Some(&second), "b", "e");
        assert_eq!((second.turns, second.switches), (2, 0));
        assert_eq!((third.turns, third.switches, third.decision.as_str()), (1, 1, "e"));
    }
}
