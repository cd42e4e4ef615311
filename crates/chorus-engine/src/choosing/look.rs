//! Looks at a request as far as its decision's selector needs it, before its candidates are known.

use super::price::usd_per_1m;
use super::terms::{protection_mode, speaks_up};
use crate::constrain::{Needs as Constraints, constrain};
use crate::mom::Mom;
use crate::route::{Choice, Routed};
use crate::selection::{Ready, SessionSight, goes_on, in_tool_loop, key};
use crate::served::Asked;
use chorus_infer::TextEncoder;
use chorus_select::momentum;
use chorus_select::prompt::{Shown, question};
use chorus_signals::{SharedPass, Subject};
use chorus_spec::{AdaptationMode, Algorithm, Family, Model, ModelId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Looks at a request as far as its decision's selector needs it, and goes on with the decision of an open tool call.
pub(crate) async fn see(mom: &Mom, routed: &mut Routed, asked: &Asked) {
    routed.sight.dry = asked.dry;
    routed.sight.session = session(mom, routed, asked).await;
    if let Some((at, reason)) = held(mom, routed) {
        routed.choice = Choice::Decision(at);
        routed.reason = reason;
    }
    let (Some(recipe), Choice::Decision(at)) = (routed.recipe, &routed.choice) else { return };
    let Some(ready) = mom.selection.of(recipe, *at) else { return };
    if ready.needs.query || ready.needs.similarity {
        let pass = routed.decided.as_mut().map(|it| std::mem::take(&mut it.pass)).unwrap_or_default();
        routed.sight.query = vector(mom, asked, pass).await;
        routed.sight.similarities = similarities(mom, ready, routed.sight.query.as_deref());
    }
    routed.sight.seed = if routed.sight.dry { 0 } else { mom.selection.board.seed() };
    if ready.prompt.is_some() {
        routed.sight.reply = reply(mom, routed, ready, asked).await;
    }
}

/// The conversation, by the client's name for it or by its beginning.
async fn session(mom: &Mom, routed: &Routed, asked: &Asked) -> Option<SessionSight> {
    let settings = &mom.spec.global.sessions;
    let key = key(&asked.session, asked.caller.as_deref(), &asked.request, settings)?;
    let known =
        if goes_on(&asked.request) { mom.selection.sessions.get(&key, Instant::now()).await } else { None };
    let (state, idle) = known.unzip();
    let idle_ms = idle.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
    let mut sight = SessionSight {
        key,
        state,
        idle_ms,
        tool_loop: in_tool_loop(&asked.request),
        momentum: None,
        carried: false,
    };
    if let Some(rules) = &mom.spec.global.selection.momentum {
        let idle = idle.is_some_and(|it| it >= settings.idle_timeout);
        let before = sight.state.as_ref().filter(|_| !idle).and_then(|it| it.momentum);
        let difficulty = difficulty(routed);
        sight.momentum = momentum::after(before, difficulty, rules);
        sight.carried = before.is_some() && momentum::carries(sight.momentum, difficulty, rules);
    }
    Some(sight)
}

/// How hard the turn is by its `complexity` signals, the hardest of several; `None` where none was asked for.
fn difficulty(routed: &Routed) -> Option<f64> {
    let matched = &routed.decided.as_ref()?.verdict.matched;
    let levels = matched.iter().filter(|(key, _)| key.family == Family::Complexity);
    let found = levels.filter_map(|(key, _)| momentum::difficulty(key.name().rsplit_once(':')?.1));
    found.max_by(f64::total_cmp)
}

/// The decision that goes on where another has won the turn: the one that an open tool call belongs to (case D15), or the
/// one that served a conversation which has been harder than this turn. A decision whose rules guard, or speak of the
/// conversation itself, is never passed over.
fn held(mom: &Mom, routed: &Routed) -> Option<(usize, String)> {
    let session = routed.sight.session.as_ref().filter(|it| it.tool_loop || it.carried)?;
    let state = session.state.as_ref()?;
    let winner = routed.decision(mom)?;
    let protects = session.tool_loop || protection_mode(winner) == AdaptationMode::Apply;
    if winner.name == state.decision || winner.tier > 0 || speaks_up(winner) || !protects {
        return None;
    }
    let recipe = &mom.recipes.get(routed.recipe?)?.recipe;
    let at = recipe.decisions.iter().position(|it| it.name == state.decision)?;
    let decision = recipe.decisions.get(at)?;
    let one = matches!(decision.algorithm, Algorithm::Static | Algorithm::Selector(_));
    let has_it = decision.model_refs.iter().any(|it| it.model.as_str() == state.model);
    (one && has_it).then(|| {
        let why = match session.momentum.filter(|_| !session.tool_loop) {
            Some(momentum) => {
                format!("the conversation has been harder than this turn (momentum {momentum:.2})")
            }
            None => format!("a tool call of the decision `{}` is open", decision.name),
        };
        (at, format!("{why}; `{}` waits for the next task", winner.name))
    })
}

/// The user's task as a vector; a pass that a signal has made is used again.
async fn vector(mom: &Mom, asked: &Asked, mut pass: SharedPass) -> Option<Vec<f32>> {
    let encoder: Arc<dyn TextEncoder> = Arc::clone(mom.selection.encoder.as_ref()?);
    let request = Arc::clone(&asked.request);
    // As for signals: one pass a core at a time.
    let _permit = mom.selection.gate.acquire().await;
    let work = tokio::task::spawn_blocking(move || {
        let subject = Subject::of(&request);
        pass.encode(&*encoder, subject.task()).map(|it| it.mean.clone())
    });
    match work.await {
        Ok(Ok(vector)) => Some(vector),
        Ok(Err(fault)) => {
            tracing::warn!(fault, "a request could not be encoded for its selector");
            None
        }
        Err(_) => None,
    }
}

fn similarities(mom: &Mom, ready: &Ready, query: Option<&[f32]>) -> BTreeMap<ModelId, f64> {
    let Some(query) = query else { return BTreeMap::new() };
    let near = |card: &Vec<f32>| -> f64 {
        let cosine: f32 = card.iter().zip(query).map(|(a, b)| a * b).sum();
        mom.selection.calibration.apply(f64::from(cosine)).clamp(0.0, 1.0)
    };
    ready.cards.iter().map(|(id, card)| (id.clone(), near(card))).collect()
}

/// What the asked model replies; `None` in a dry run.
async fn reply(mom: &Mom, routed: &Routed, ready: &Ready, asked: &Asked) -> Option<Result<String, String>> {
    let (adviser, settings) = (asked.adviser.as_ref()?, ready.prompt.as_ref()?);
    let decision = routed.decision(mom)?;
    let (kept, _) = constrain(&mom.spec, &decision.model_refs, Constraints::of(&asked.request));
    let models: Vec<&Model> = kept.iter().filter_map(|it| mom.spec.models.get(&it.model)).collect();
    let shown: Vec<Shown<'_>> = models.iter().map(|it| shown(it)).collect();
    let asks = settings.model.as_ref().or_else(|| models.first().map(|it| &it.id))?;
    if models.len() < 2 {
        return Some(Err("one candidate is left, so nobody was asked".to_owned()));
    }
    let question = question(settings, &shown, Subject::of(&asked.request).task());
    Some(adviser.said(asks.as_str(), question, settings.timeout).await)
}

fn shown(model: &Model) -> Shown<'_> {
    Shown {
        model: model.id.as_str(),
        description: &model.card.description,
        capabilities: &model.card.capabilities,
        usd_per_1m: usd_per_1m(model),
    }
}
