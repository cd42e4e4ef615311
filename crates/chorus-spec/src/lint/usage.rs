//! Which signals and projections a recipe's decisions depend on, through whatever lies between.
//!
//! It knows names, not truths. **Invariant:** what it calls unused can be taken out without changing any route.

use super::{Notes, named};
use crate::{Algorithm, Condition, Family, InputSource, Plugin, Recipe, Signal, SignalKey, SignalKind, code};
use std::collections::BTreeSet;

/// Warns of what no decision depends on.
pub(super) fn check(recipe: &Recipe, notes: &mut Notes) {
    let used = Used::of(recipe);
    let help = "use it in a rule, or remove it";
    for signal in recipe.signals.iter().filter(|signal| !used.signal(recipe, signal)) {
        let message = format!("nothing depends on the {} rule `{}`", signal.family(), signal.name);
        let path = named(&format!("signals.{}", signal.family()), &signal.name);
        notes.warn(code::UNUSED_SIGNAL, signal.place, &path, message, help);
    }
    let projections = &recipe.projections;
    let mut idle = |is_used: bool, what: &str, name: &str, place| {
        if !is_used {
            let message = format!("nothing depends on the {what} `{name}`");
            let path = named(&format!("projections.{what}s"), name);
            notes.warn(code::UNUSED_PROJECTION, place, &path, message, help);
        }
    };
    for it in &projections.partitions {
        idle(it.members.iter().any(|key| used.keys.contains(key)), "partition", &it.name, it.place);
    }
    for it in &projections.scores {
        idle(used.scores.contains(it.name.as_str()), "score", &it.name, it.place);
    }
    for it in &projections.mappings {
        let output = |name: &str| used.keys.contains(&SignalKey::new(Family::Projection, name));
        idle(it.outputs.iter().any(|o| output(&o.name)), "mapping", &it.name, it.place);
    }
}

/// What decisions depend on.
struct Used<'a> {
    keys: BTreeSet<SignalKey>,
    scores: BTreeSet<&'a str>,
}

impl<'a> Used<'a> {
    fn of(recipe: &'a Recipe) -> Self {
        let mut used = Self { keys: BTreeSet::new(), scores: BTreeSet::new() };
        let rules = recipe.decisions.iter().filter_map(|decision| decision.rules.as_ref());
        let mut open: Vec<SignalKey> = rules.flat_map(Condition::keys).cloned().collect();
        while let Some(key) = open.pop() {
            if used.keys.insert(key.clone()) {
                open.extend(used.behind(recipe, &key));
            }
        }
        used
    }

    /// What a fact itself depends on.
    fn behind(&mut self, recipe: &'a Recipe, key: &SignalKey) -> Vec<SignalKey> {
        let projections = &recipe.projections;
        let mut keys: Vec<SignalKey> = Vec::new();
        if key.family == Family::Projection {
            let mappings = projections.mappings.iter();
            for mapping in mappings.filter(|m| m.outputs.iter().any(|o| o.name == key.name())) {
                self.score(recipe, &mapping.source, &mut keys);
            }
        }
        // Members of a partition compete, so all of them matter to one.
        for partition in projections.partitions.iter().filter(|p| p.members.contains(key)) {
            keys.extend(partition.members.iter().cloned());
        }
        for signal in &recipe.signals {
            if let SignalKind::Complexity(complexity) = &signal.kind
                && signal.family() == key.family
                && signal.emits().iter().any(|name| name == key.name())
            {
                keys.extend(complexity.composer.iter().flat_map(Condition::keys).cloned());
            }
        }
        keys
    }

    fn score(&mut self, recipe: &'a Recipe, name: &str, keys: &mut Vec<SignalKey>) {
        let Some(score) = recipe.projections.scores.iter().find(|score| score.name == name) else {
            return;
        };
        if !self.scores.insert(&score.name) {
            return;
        }
        for input in &score.inputs {
            match &input.source {
                InputSource::Signal(key) => keys.push(key.clone()),
                InputSource::Score(name) => self.score(recipe, name, keys),
                InputSource::KbMetric { .. } => {}
            }
        }
    }

    fn signal(&self, recipe: &Recipe, signal: &Signal) -> bool {
        let family = signal.family();
        let asked = |name: &str| self.keys.contains(&SignalKey::new(family, name));
        let SignalKind::Domain(domain) = &signal.kind else {
            return signal.emits().iter().any(|name| asked(name));
        };
        // A rule may name a category, and the algorithm `static` reads the scores of whatever domain matched.
        let ranks = !domain.model_scores.is_empty() && recipe.decisions.iter().any(chooses_by_domain);
        ranks || asked(&signal.name) || domain.mmlu_categories.iter().any(|category| asked(category))
    }
}

fn chooses_by_domain(decision: &crate::Decision) -> bool {
    let is_fixed = decision.plugins.iter().any(|plugin| matches!(plugin, Plugin::FastResponse { .. }));
    matches!(decision.algorithm, Algorithm::Static) && !is_fixed && decision.model_refs.len() > 1
}
