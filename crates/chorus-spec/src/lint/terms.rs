//! The ways in which a rule can hold, each as a set of facts that make it hold.
//!
//! Kleene's logic is monotone: what a set of facts makes true stays true whatever else becomes known, and a rule that
//! a set leaves open can stay open, because the rest may be absent. So "whenever `a` holds, `b` holds" is exactly
//! "each way for `a` to hold makes `b` true".
//!
//! It knows which facts exclude each other (bands of one score, labels of one head, members of a partition), and takes
//! all others for independent. **Invariant:** what it calls impossible or implied is so for every request; where a
//! rule has too many ways, it says nothing.

use super::Reach;
use crate::{Condition, Family, MappingMethod, Recipe, SignalKey, SignalKind};
use std::collections::BTreeMap;

/// Most ways of one rule that are looked at.
const WAYS_MOST: usize = 1024;

/// One way for a rule to hold: what must be true and what false, by atom.
pub(super) type Way = BTreeMap<usize, bool>;

/// Facts of which at most one is true; with `total`, one is as soon as they are known.
struct Group {
    atoms: Vec<usize>,
    total: bool,
}

/// The leaves of a recipe's rules as atoms.
pub(super) struct Terms {
    atoms: Vec<Condition>,
    groups: Vec<Group>,
}

/// Whether a rule holds for every request: none, or `AND` over nothing.
pub(super) fn is_unconditional(rules: Option<&Condition>) -> bool {
    match rules {
        None => true,
        Some(Condition::And(parts)) => parts.is_empty(),
        Some(_) => false,
    }
}

impl Terms {
    pub(super) fn of(recipe: &Recipe, reaches: &BTreeMap<String, Reach>) -> Self {
        let mut it = Self { atoms: Vec::new(), groups: Vec::new() };
        for decision in &recipe.decisions {
            decision.rules.iter().for_each(|rules| it.gather(rules));
        }
        it.groups =
            exclusions(recipe, reaches).into_iter().map(|(keys, total)| it.group(&keys, total)).collect();
        it
    }

    fn gather(&mut self, rule: &Condition) {
        match rule {
            Condition::Signal(_) | Condition::Tested(_) => {
                if !self.atoms.contains(rule) {
                    self.atoms.push(rule.clone());
                }
            }
            Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| self.gather(part)),
            Condition::Not(part) => self.gather(part),
        }
    }

    /// A group whose members are not all asked for is not total for those that are.
    fn group(&self, keys: &[SignalKey], total: bool) -> Group {
        let atoms: Vec<usize> = keys.iter().filter_map(|key| self.atom_of(key)).collect();
        let total = total && atoms.len() == keys.len();
        Group { atoms, total }
    }

    fn atom_of(&self, key: &SignalKey) -> Option<usize> {
        self.atoms.iter().position(|atom| matches!(atom, Condition::Signal(it) if it == key))
    }

    /// The ways in which `rule` holds; none if it cannot, `None` if there are too many to look at.
    pub(super) fn ways(&self, rule: Option<&Condition>) -> Option<Vec<Way>> {
        rule.map_or_else(|| Some(vec![Way::new()]), |rule| self.expand(rule, true))
    }

    fn expand(&self, rule: &Condition, wanted: bool) -> Option<Vec<Way>> {
        match rule {
            Condition::Signal(_) | Condition::Tested(_) => {
                let atom = self.atoms.iter().position(|atom| atom == rule)?;
                Some(self.closed(Way::from([(atom, wanted)])).into_iter().collect())
            }
            Condition::Not(part) => self.expand(part, !wanted),
            Condition::And(parts) if wanted => self.every(parts, wanted),
            Condition::Or(parts) if !wanted => self.every(parts, wanted),
            Condition::And(parts) | Condition::Or(parts) => self.any(parts, wanted),
        }
    }

    fn any(&self, parts: &[Condition], wanted: bool) -> Option<Vec<Way>> {
        let mut all = Vec::new();
        for part in parts {
            all.extend(self.expand(part, wanted)?);
            if all.len() > WAYS_MOST {
                return None;
            }
        }
        Some(distinct(all))
    }

    fn every(&self, parts: &[Condition], wanted: bool) -> Option<Vec<Way>> {
        let mut all = vec![Way::new()];
        for part in parts {
            let more = self.expand(part, wanted)?;
            if all.len().saturating_mul(more.len()) > WAYS_MOST {
                return None;
            }
            let pairs = all.iter().flat_map(|way| more.iter().map(move |other| (way, other)));
            all = distinct(pairs.filter_map(|(way, other)| self.both(way, other)).collect());
        }
        Some(all)
    }

    /// Both ways at once, unless they contradict each other.
    pub(super) fn both(&self, way: &Way, other: &Way) -> Option<Way> {
        let mut both = way.clone();
        for (atom, truth) in other {
            if both.insert(*atom, *truth).is_some_and(|before| before != *truth) {
                return None;
            }
        }
        self.closed(both)
    }

    /// The way with all that follows from it; `None` if that is a contradiction.
    fn closed(&self, mut way: Way) -> Option<Way> {
        loop {
            let before = way.len();
            for group in &self.groups {
                let is = |way: &Way, atom: &usize, truth| way.get(atom) == Some(&truth);
                let held: Vec<usize> = group.atoms.iter().copied().filter(|a| is(&way, a, true)).collect();
                let open: Vec<usize> = group.atoms.iter().copied().filter(|a| !way.contains_key(a)).collect();
                match (held.as_slice(), open.as_slice()) {
                    ([_, _, ..], _) => return None,
                    ([_], _) => way.extend(open.iter().map(|atom| (*atom, false))),
                    ([], []) if group.total => return None,
                    ([], [last]) if group.total => drop(way.insert(*last, true)),
                    _ => {}
                }
            }
            if way.len() == before {
                return Some(way);
            }
        }
    }

    /// What a rule comes to when no more is known than a way says.
    pub(super) fn truth(&self, rule: Option<&Condition>, way: &Way) -> Option<bool> {
        let Some(rule) = rule else { return Some(true) };
        let each = |parts: &[Condition]| -> Vec<Option<bool>> {
            parts.iter().map(|part| self.truth(Some(part), way)).collect()
        };
        match rule {
            Condition::Signal(_) | Condition::Tested(_) => {
                let atom = self.atoms.iter().position(|atom| atom == rule)?;
                way.get(&atom).copied()
            }
            Condition::Not(part) => self.truth(Some(part), way).map(|truth| !truth),
            Condition::And(parts) => kleene(&each(parts), false),
            Condition::Or(parts) => kleene(&each(parts), true),
        }
    }

    /// The leaf of an atom.
    pub(super) fn leaf(&self, atom: usize) -> Option<&Condition> {
        self.atoms.get(atom)
    }
}

/// `deciding` settles the whole; otherwise the whole is open while a part is.
fn kleene(parts: &[Option<bool>], deciding: bool) -> Option<bool> {
    if parts.contains(&Some(deciding)) {
        return Some(deciding);
    }
    if parts.contains(&None) { None } else { Some(!deciding) }
}

/// Without repetitions, and without ways that say more than another one.
fn distinct(mut ways: Vec<Way>) -> Vec<Way> {
    ways.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    ways.dedup();
    let mut kept: Vec<Way> = Vec::with_capacity(ways.len());
    for way in ways {
        let says = |less: &Way| less.iter().all(|(atom, truth)| way.get(atom) == Some(truth));
        if !kept.iter().any(says) {
            kept.push(way);
        }
    }
    kept
}

/// Facts that exclude each other, and whether one of them holds as soon as they are known.
fn exclusions(recipe: &Recipe, reaches: &BTreeMap<String, Reach>) -> Vec<(Vec<SignalKey>, bool)> {
    let projection = |name: &String| SignalKey::new(Family::Projection, name);
    let bands = recipe.projections.mappings.iter().filter(|m| m.method == MappingMethod::ThresholdBands);
    let mut groups: Vec<(Vec<SignalKey>, bool)> = bands
        .map(|mapping| {
            let outputs = mapping.outputs.iter().map(|output| projection(&output.name)).collect();
            let total = reaches.get(&mapping.source).is_some_and(|reach| reach.gaps(mapping).is_empty());
            (outputs, total)
        })
        .collect();
    groups.extend(recipe.projections.partitions.iter().map(|partition| (partition.members.clone(), false)));
    for family in [Family::FactCheck, Family::UserFeedback, Family::Modality] {
        let labels = recipe.signals.iter().filter(|signal| signal.family() == family);
        groups.push((labels.map(|signal| SignalKey::new(family, &signal.name)).collect(), false));
    }
    for signal in &recipe.signals {
        if let SignalKind::Complexity(complexity) = &signal.kind {
            let labels = signal.emits().into_iter().map(|name| SignalKey::new(Family::Complexity, name));
            groups.push((labels.collect(), complexity.composer.is_none()));
        }
    }
    groups
}
