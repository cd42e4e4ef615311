//! One of the candidates that constraints left, by the decision's selector and the conversation so far.

use super::price::usd_per_1m;
use super::terms::{adaptation_mode, protection_mode};
use super::wider::Pool;
use crate::fault::{Code, Fault};
use crate::mom::Mom;
use crate::route::{Choice, Routed};
use crate::selection::{Ready, SessionSight, Trace};
use chorus_select::adaptation::{AdaptationAsk, adapt};
use chorus_select::session::{self, SessionAction, SessionAsk, SessionCandidate, SessionVerdict};
use chorus_select::static_order::StaticOrder;
use chorus_select::{Candidate, Needs, SelectionAsk, Selector, prompt};
use chorus_spec::{AdaptationMode, Adaptations, Decision, Family, Model, ModelRef, OnError, SessionSettings};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The percentile by which an adapted choice compares latencies.
const MEDIAN: u8 = 50;

/// Lets the decision's selector choose among the candidates that constraints left, which are in the order of `static`;
/// what was learnt may move the choice within the wider pool. `prompt_tokens` are estimated.
///
/// # Errors
/// The selector refuses, or cannot choose and `on_error` is `fail`.
pub(crate) fn choose(
    mom: &Mom,
    routed: &Routed,
    decision: &Decision,
    kept: &[ModelRef],
    pool: &Pool<'_>,
    prompt_tokens: u64,
) -> Result<Trace, Fault> {
    let ready = match (routed.recipe, &routed.choice) {
        (Some(recipe), Choice::Decision(at)) => mom.selection.of(recipe, *at),
        _ => None,
    };
    let all = kept.iter().chain(&pool.others);
    let models: Vec<&Model> = all.filter_map(|it| mom.spec.models.get(&it.model)).collect();
    let settings = settings(&mom.spec.global.sessions, decision.adaptations.as_ref());
    let candidates = candidates(mom, routed, ready, &models, &settings);
    let category = category(routed);
    let ask = SelectionAsk {
        candidates: &candidates,
        query: routed.sight.query.as_deref(),
        category: category.as_deref(),
        seed: routed.sight.seed,
    };
    let own = candidates.get(..kept.len()).unwrap_or(&candidates);
    let mut trace = picked(decision, ready, routed, &SelectionAsk { candidates: own, ..ask })?;
    adapted(mom, routed, decision, pool, &ask, &mut trace);
    let protection = Protection { settings: &settings, mode: protection_mode(decision), prompt_tokens };
    trace.session = protection.verdict(mom, routed, &ask, &trace);
    if let Some(verdict) = trace.session.as_ref().filter(|_| protection.mode == AdaptationMode::Apply) {
        if verdict.action == SessionAction::Stay {
            trace.reason = format!("the conversation stays: {}", verdict.reason);
        }
        if let Some(kept) = candidates.get(verdict.pick) {
            trace.selected = kept.model.to_owned();
        }
    }
    Ok(trace)
}

/// What the selector says, or what `on_error` makes of its silence.
fn picked(
    decision: &Decision,
    ready: Option<&Ready>,
    routed: &Routed,
    ask: &SelectionAsk<'_>,
) -> Result<Trace, Fault> {
    let algorithm = decision.algorithm.kind();
    let nothing = || StaticOrder.choose(ask);
    let silent = |reason: &str| chorus_select::Choice { pick: None, reason: reason.to_owned(), ..nothing() };
    let mut open = false;
    let choice = match ready {
        None => nothing(),
        Some(Ready { selector: Some(selector), .. }) => selector.choose(ask),
        Some(Ready { prompt: Some(_), .. }) => match &routed.sight.reply {
            Some(Ok(reply)) => prompt::choice(ask, reply),
            Some(Err(why)) => silent(why),
            None => {
                open = true;
                silent("a model would be asked")
            }
        },
        Some(_) => silent("nothing was learnt: the configuration names no artifact"),
    };
    let refuses = ready.is_some_and(|it| it.on_error == OnError::Fail) && !open;
    if choice.refused || (choice.pick.is_none() && refuses) {
        let text =
            format!("the selector `{algorithm}` of `{}` picks nobody: {}", decision.name, choice.reason);
        return Err(Fault::new(Code::NoCandidate, text));
    }
    let fallback = choice.pick.is_none();
    let selected = choice.model().or_else(|| ask.candidates.first().map(|it| it.model)).unwrap_or_default();
    Ok(Trace {
        algorithm,
        selected: selected.to_owned(),
        reason: if fallback {
            format!("{}; the first candidate", choice.reason)
        } else {
            choice.reason.clone()
        },
        fallback,
        confidence: choice.confidence,
        seed: choice.propensity.map(|_| ask.seed),
        propensity: choice.propensity,
        scores: choice.scores,
        adaptation: None,
        momentum: routed.sight.session.as_ref().and_then(|it| it.momentum),
        session: None,
        open,
    })
}

/// Lets verdicts on past runs move the pick, where the file wants that.
fn adapted(
    mom: &Mom,
    routed: &Routed,
    decision: &Decision,
    pool: &Pool<'_>,
    ask: &SelectionAsk<'_>,
    trace: &mut Trace,
) {
    let mode = adaptation_mode(decision);
    let off = !mom.spec.global.adaptation.enabled || mode == AdaptationMode::Bypass;
    let Some(base) = ask.candidates.iter().position(|it| it.model == trace.selected) else { return };
    if off || trace.open {
        return;
    }
    let verdicts = mom.selection.experience.of(&pool.decisions, ask.candidates.iter().map(|it| it.model));
    let verdict = adapt(&AdaptationAsk {
        candidates: ask.candidates,
        set: pool.set,
        verdicts: &verdicts,
        base,
        tool_loop: routed.sight.session.as_ref().is_some_and(|it| it.tool_loop),
        seed: ask.seed,
    });
    if let Some(moved) = verdict.as_ref().filter(|it| it.pick != base && mode == AdaptationMode::Apply) {
        moved.proposal.clone_into(&mut trace.selected);
        trace.reason = format!("adapted: {}", moved.reason);
    }
    trace.adaptation = verdict;
}

/// How a decision's conversations are protected.
struct Protection<'a> {
    settings: &'a SessionSettings,
    mode: AdaptationMode,
    prompt_tokens: u64,
}

impl Protection<'_> {
    /// What becomes of the conversation. Where conversations are not protected, only a tool call that a named session has
    /// open keeps its model (case D15).
    fn verdict(
        &self,
        mom: &Mom,
        routed: &Routed,
        ask: &SelectionAsk<'_>,
        trace: &Trace,
    ) -> Option<SessionVerdict> {
        let seen = routed.sight.session.as_ref()?;
        let proposal = ask.candidates.iter().position(|it| it.model == trace.selected)?;
        let bound = weaker(seen, ask.candidates, proposal)
            .then_some("the conversation has been harder than this turn, and the pick is weaker");
        let guarded = mom.spec.global.sessions.enabled || seen.tool_loop || bound.is_some();
        if !guarded || self.mode == AdaptationMode::Bypass {
            return None;
        }
        let scores: BTreeMap<&str, Option<f64>> =
            trace.scores.iter().map(|it| (it.model.as_str(), it.score)).collect();
        let mut candidates = Vec::with_capacity(ask.candidates.len());
        for it in ask.candidates {
            let score = scores.get(it.model).copied().flatten();
            candidates.push(SessionCandidate { model: it.model, score, usd_per_1m: it.usd_per_1m });
        }
        Some(session::judge(&SessionAsk {
            settings: self.settings,
            state: seen.state.as_ref(),
            idle_ms: seen.idle_ms,
            tool_loop: seen.tool_loop,
            bound,
            prompt_tokens: self.prompt_tokens,
            candidates: &candidates,
            proposal,
        }))
    }
}

/// Whether a conversation that carries its momentum would be handed to a weaker model: of less quality, or a cheaper one
/// where quality is not known of both.
fn weaker(seen: &SessionSight, candidates: &[Candidate<'_>], proposal: usize) -> bool {
    let current = seen.state.as_ref().filter(|_| seen.carried);
    let current = current.and_then(|state| candidates.iter().find(|it| it.model == state.model));
    current.zip(candidates.get(proposal)).is_some_and(|(own, other)| match (own.quality, other.quality) {
        (Some(own), Some(other)) => other < own,
        _ => other.usd_per_1m < own.usd_per_1m,
    })
}

/// The file's settings, and what the decision overrides; mostly nothing, and then they are not copied.
fn settings<'s>(base: &'s SessionSettings, own: Option<&Adaptations>) -> Cow<'s, SessionSettings> {
    let margin = own.and_then(|it| it.switch_margin);
    let weight = own.and_then(|it| it.stability_weight);
    if margin.is_none() && weight.is_none() {
        return Cow::Borrowed(base);
    }
    Cow::Owned(SessionSettings {
        switch_margin: margin.unwrap_or(base.switch_margin),
        stability_weight: weight.unwrap_or(base.stability_weight),
        ..base.clone()
    })
}

fn candidates<'a>(
    mom: &'a Mom,
    routed: &Routed,
    ready: Option<&Ready>,
    models: &[&'a Model],
    settings: &SessionSettings,
) -> Vec<Candidate<'a>> {
    let needs = needs(mom, ready);
    let in_flight = if ready.is_some() { in_flight(mom) } else { BTreeMap::new() };
    let current =
        routed.sight.session.as_ref().and_then(|it| it.state.as_ref().map(|state| (state, it.idle_ms)));
    let warmth = |model: &Model| match current {
        Some((state, idle)) if state.model == model.id.as_str() => session::warmth(idle, settings),
        _ => 0.0,
    };
    let of = |model: &&'a Model| {
        let id = model.id.as_str();
        let load = in_flight.get(id).copied().unwrap_or(0);
        Candidate {
            model: id,
            quality: model.card.quality_score,
            domain_score: None,
            usd_per_1m: usd_per_1m(model),
            similarity: routed.sight.similarities.get(&model.id).copied(),
            warmth: warmth(model),
            live: if needs == Needs::default() && load == 0 {
                chorus_select::LiveFigures::default()
            } else {
                mom.selection.board.figures(id, needs, load)
            },
        }
    };
    models.iter().map(of).collect()
}

/// What is to be known of live calls: what the selector wants, and for an adapted choice how long the first word took.
fn needs(mom: &Mom, ready: Option<&Ready>) -> Needs {
    let own = ready.map(|it| it.needs).unwrap_or_default();
    if !mom.spec.global.adaptation.enabled {
        return own;
    }
    Needs { ttft_percentile: own.ttft_percentile.or(Some(MEDIAN)), ..own }
}

/// Calls under way by model.
fn in_flight(mom: &Mom) -> BTreeMap<String, u32> {
    let mut all: BTreeMap<String, u32> = BTreeMap::new();
    for state in mom.backends.states() {
        let count = u32::try_from(state.in_flight).unwrap_or(u32::MAX);
        let sum = all.entry(state.model).or_default();
        *sum = sum.saturating_add(count);
    }
    all
}

/// The matched domain of highest confidence.
fn category(routed: &Routed) -> Option<String> {
    let verdict = &routed.decided.as_ref()?.verdict;
    let domains = verdict.matched.iter().filter(|(key, _)| key.family == Family::Domain);
    domains.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(key, _)| key.name().to_owned())
}
