//! Decisions against each other: routes that never win, rules that never hold, guards that are passed by.
//!
//! It knows rules and ranks, not how facts are measured. **Invariant:** a decision is called unreachable only where
//! others that rank above it under every confidence hold whenever it does.

use super::terms::{Terms, Way, is_unconditional};
use super::{Notes, named};
use crate::{
    Condition, Decision, Family, InputSource, MappingOutput, Plugin, Recipe, Strategy, ValueSource, code,
};
use std::cmp::Reverse;

/// Warns of decisions that never win and of guards that are passed by.
pub(super) fn check(recipe: &Recipe, terms: &Terms, notes: &mut Notes) {
    for decision in &recipe.decisions {
        let above: Vec<&Decision> =
            recipe.decisions.iter().filter(|other| ranks_above(recipe, other, decision)).collect();
        let ways = terms.ways(decision.rules.as_ref());
        let is_dead = contradictions(decision, terms, notes)
            || ways.as_ref().is_some_and(|ways| unreachable(decision, ways, &above, terms, notes));
        if !is_dead {
            bypasses(recipe, decision, &above, terms, notes);
        }
    }
}

/// Whether `one` outranks `other` under every confidence (contract v0.3 §1.6).
fn ranks_above(recipe: &Recipe, one: &Decision, other: &Decision) -> bool {
    let class = |decision: &Decision| match recipe.strategy {
        _ if decision.tier > 0 => (0, decision.tier, Reverse(0)),
        Strategy::Priority => (1, 0, Reverse(decision.priority)),
        Strategy::Confidence => (1, 0, Reverse(0)),
    };
    class(one) < class(other)
}

/// Reports the outermost parts of a rule that can never hold; whether the whole is one.
fn contradictions(decision: &Decision, terms: &Terms, notes: &mut Notes) -> bool {
    let Some(rules) = &decision.rules else { return false };
    let path = named("decisions", &decision.name);
    let mut open = vec![(rules, format!("{path}.rules"))];
    let mut is_dead = false;
    while let Some((rule, path)) = open.pop() {
        let is_branch = !matches!(rule, Condition::Signal(_) | Condition::Tested(_));
        if is_branch && terms.ways(Some(rule)).is_some_and(|ways| ways.is_empty()) {
            let is_root = std::ptr::eq(rule, rules);
            is_dead |= is_root;
            let what = if is_root { "the rule" } else { "a part of the rule" };
            let message =
                format!("{what} of `{}` can never hold: its conditions exclude each other", decision.name);
            let help = "write `OR` where either is meant, or take one of them out";
            notes.warn(code::NEVER_MATCHES, decision.place, &path, message, help);
            continue;
        }
        match rule {
            Condition::Signal(_) | Condition::Tested(_) => {}
            Condition::Not(part) => open.push((part, format!("{path}.conditions[0]"))),
            Condition::And(parts) | Condition::Or(parts) => {
                let parts = parts.iter().enumerate();
                open.extend(parts.map(|(at, part)| (part, format!("{path}.conditions[{at}]"))));
            }
        }
    }
    is_dead
}

/// Reports a decision that is always outranked.
fn unreachable(
    decision: &Decision,
    ways: &[Way],
    above: &[&Decision],
    terms: &Terms,
    notes: &mut Notes,
) -> bool {
    let mut winners: Vec<&str> = Vec::new();
    for way in ways {
        let Some(winner) = above.iter().find(|it| terms.truth(it.rules.as_ref(), way) == Some(true)) else {
            return false;
        };
        if is_unconditional(winner.rules.as_ref()) {
            winners = vec![&winner.name];
            break;
        }
        if !winners.contains(&winner.name.as_str()) {
            winners.push(&winner.name);
        }
    }
    let names: Vec<String> = winners.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "`{}` never wins: whenever it holds, {} holds too and ranks above it",
        decision.name,
        names.join(" or ")
    );
    let help = "give the narrower decision the greater priority, or narrow the one above";
    notes.warn(
        code::UNREACHABLE_DECISION,
        decision.place,
        &named("decisions", &decision.name),
        message,
        help,
    );
    true
}

/// Reports decisions above a guarded one that no guard narrows and that can take its requests.
fn bypasses(recipe: &Recipe, decision: &Decision, above: &[&Decision], terms: &Terms, notes: &mut Notes) {
    let Some(caught) = terms.ways(decision.rules.as_ref()) else { return };
    let caught: Vec<Way> = caught.into_iter().filter(|way| guard_in(recipe, terms, way, true)).collect();
    for other in above.iter().filter(|other| !answers_itself(other)) {
        let Some(taken) = terms.ways(other.rules.as_ref()) else { continue };
        let passes = |way: &&Way| !guard_in(recipe, terms, way, true) && !guard_in(recipe, terms, way, false);
        let meets = |way: &Way| caught.iter().any(|guarded| terms.both(way, guarded).is_some());
        if taken.iter().filter(passes).any(meets) {
            let message = format!(
                "`{}` ranks above `{}` and asks no guard, so what `{}` is meant to catch can go to it",
                other.name, decision.name, decision.name
            );
            let help = format!(
                "rank `{}` higher, or narrow `{}` with `NOT` over the guard",
                decision.name, other.name
            );
            notes.warn(code::GUARD_BYPASSED, other.place, &named("decisions", &other.name), message, help);
        }
    }
}

/// Whether no model sees the request.
fn answers_itself(decision: &Decision) -> bool {
    decision.plugins.iter().any(|plugin| matches!(plugin, Plugin::FastResponse { .. }))
}

/// Whether a way asks for a guard to be found (`true`), or not to be found.
fn guard_in(recipe: &Recipe, terms: &Terms, way: &Way, found: bool) -> bool {
    way.iter()
        .any(|(atom, truth)| *truth == found && terms.leaf(*atom).is_some_and(|leaf| guards(recipe, leaf)))
}

/// Whether a leaf says that something dangerous was found: a guard signal, or the top band of a score that one raises.
fn guards(recipe: &Recipe, leaf: &Condition) -> bool {
    leaf.keys().iter().any(|key| match key.family {
        Family::Jailbreak | Family::Pii => true,
        Family::Projection => recipe.projections.mappings.iter().any(|mapping| {
            mapping.outputs.iter().any(|it| it.name == key.name() && is_top(it))
                && raised_by_guard(recipe, &mapping.source, 0)
        }),
        _ => false,
    })
}

fn is_top(output: &MappingOutput) -> bool {
    let band = output.band;
    (band.gt.is_some() || band.gte.is_some()) && band.lt.is_none() && band.lte.is_none()
}

fn raised_by_guard(recipe: &Recipe, score: &str, depth: usize) -> bool {
    let scores = &recipe.projections.scores;
    let Some(score) = scores.iter().find(|it| it.name == score).filter(|_| depth < scores.len()) else {
        return false;
    };
    score.inputs.iter().any(|input| match &input.source {
        InputSource::Signal(key) => {
            let rises = match input.value {
                ValueSource::Binary { matched, miss } => matched > miss,
                ValueSource::Confidence | ValueSource::Raw | ValueSource::Score => true,
            };
            matches!(key.family, Family::Jailbreak | Family::Pii) && rises && input.weight > 0.0
        }
        InputSource::Score(name) => input.weight > 0.0 && raised_by_guard(recipe, name, depth + 1),
        InputSource::KbMetric { .. } => false,
    })
}
