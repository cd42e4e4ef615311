//! From a recipe to a program.
//!
//! Knows nothing of evidence. The recipe has been checked: names resolve, scores stand in order, nothing is recursive.
//!
//! **Invariant:** every key that anything reads or any rule emits has exactly one slot.

use crate::program::{AskEntry, DecisionStep, Gate, Input, InputFrom, MappingStep, Output, PartitionStep};
use crate::program::{Program, Rule, ScoreStep, Slot, SlotId, Source, TestStep};
use crate::{Ask, rank};
use chorus_spec::{Condition, Decision, Family, InputSource, Mapping, Partition, Recipe, Score, ScoreInput};
use chorus_spec::{Signal, SignalKey, SignalKind, Test};
use std::collections::{BTreeMap, BTreeSet};

/// Compiles `recipe`; `cost` gives the tier of a family, smaller is cheaper.
pub(crate) fn compile(recipe: &Recipe, cost: &dyn Fn(Family) -> u8) -> Program {
    let compiler = Compiler::new(recipe);
    let partitions: Vec<_> = recipe.projections.partitions.iter().map(|p| compiler.partition(p)).collect();
    let gates: Vec<_> = recipe.signals.iter().filter_map(|s| compiler.gate(s)).collect();
    let mut slots = compiler.slots();
    for (index, partition) in partitions.iter().enumerate() {
        for member in &partition.members {
            if let Some(slot) = slots.get_mut(*member) {
                slot.partitions.push(index);
            }
        }
    }
    for (index, gate) in gates.iter().enumerate() {
        for label in &gate.labels {
            if let Some(slot) = slots.get_mut(*label) {
                slot.gate = Some(index);
            }
        }
    }
    let ranks = rank::ranks(&recipe.decisions, recipe.strategy);
    Program {
        slots,
        asks: compiler.asks(cost),
        partitions,
        gates,
        scores: recipe.projections.scores.iter().map(|s| compiler.score(s)).collect(),
        decisions: recipe.decisions.iter().zip(ranks).map(|(d, rank)| compiler.decision(d, rank)).collect(),
    }
}

struct Compiler<'a> {
    recipe: &'a Recipe,
    /// Sorted.
    keys: Vec<SignalKey>,
    /// Sorted by family and name.
    signals: Vec<&'a Signal>,
    /// Sorted; asked for after the signals.
    metrics: Vec<SignalKey>,
}

impl<'a> Compiler<'a> {
    fn new(recipe: &'a Recipe) -> Self {
        let mut signals: Vec<_> = recipe.signals.iter().collect();
        signals.sort_by(|a, b| (a.family(), &a.name).cmp(&(b.family(), &b.name)));
        Self {
            recipe,
            keys: keys(recipe).into_iter().collect(),
            signals,
            metrics: metrics(recipe).into_iter().collect(),
        }
    }

    /// The position of a key; past the end (read as unsupported) if the recipe does not name it.
    fn slot(&self, key: &SignalKey) -> SlotId {
        self.keys.binary_search(key).unwrap_or(self.keys.len())
    }

    fn slots(&self) -> Vec<Slot> {
        let mut sources = BTreeMap::new();
        for (index, signal) in self.signals.iter().enumerate() {
            for key in emitted(signal) {
                sources.entry(key).or_insert(Source::Rule(index));
            }
        }
        for (index, key) in self.metrics.iter().enumerate() {
            sources.entry(key.clone()).or_insert(Source::Rule(self.signals.len() + index));
        }
        for (index, score) in self.recipe.projections.scores.iter().enumerate() {
            for output in self.mappings(score).flat_map(|(_, m)| &m.outputs) {
                sources.insert(SignalKey::new(Family::Projection, &output.name), Source::Score(index));
            }
        }
        // A rule's own name goes before a category of another; of several rules the first written owns a category.
        for signal in &self.recipe.signals {
            let position = self.signals.iter().position(|s| std::ptr::eq(*s, signal));
            if let (SignalKind::Domain(domain), Some(index)) = (&signal.kind, position) {
                for category in &domain.mmlu_categories {
                    sources
                        .entry(SignalKey::new(Family::Domain, category))
                        .or_insert(Source::Category(index));
                }
            }
        }
        let slot = |key: &SignalKey| Slot {
            key: key.clone(),
            name: key.name().into(),
            source: sources.get(key).copied().unwrap_or(Source::Nobody),
            partitions: Vec::new(),
            gate: None,
        };
        self.keys.iter().map(slot).collect()
    }

    fn asks(&self, cost: &dyn Fn(Family) -> u8) -> Vec<AskEntry> {
        let entry = |signal: &&Signal| AskEntry {
            ask: Ask::new(signal.family(), signal.name.as_str()),
            cost: cost(signal.family()),
            emits: emitted(signal).map(|key| self.slot(&key)).collect(),
        };
        let metric = |key: &SignalKey| AskEntry {
            ask: Ask::new(key.family, key.name()),
            cost: cost(key.family),
            emits: vec![self.slot(key)],
        };
        self.signals.iter().map(entry).chain(self.metrics.iter().map(metric)).collect()
    }

    fn rule(&self, condition: &Condition) -> Rule {
        match condition {
            Condition::Signal(key) => Rule::Leaf(self.slot(key)),
            Condition::Tested(test) => Rule::Tested(self.test(test)),
            Condition::And(parts) => Rule::All(parts.iter().map(|p| self.rule(p)).collect()),
            Condition::Or(parts) => Rule::Any(parts.iter().map(|p| self.rule(p)).collect()),
            Condition::Not(part) => Rule::Not(Box::new(self.rule(part))),
        }
    }

    fn test(&self, test: &Test) -> TestStep {
        TestStep { slot: self.slot(&test.key), predicate: test.predicate, on_absent: test.on_absent }
    }

    fn partition(&self, partition: &Partition) -> PartitionStep {
        PartitionStep {
            name: partition.name.clone(),
            family: partition.members.first().map_or(Family::Domain, |m| m.family),
            semantics: partition.semantics,
            members: partition.members.iter().map(|m| self.slot(m)).collect(),
            default: partition.default.as_ref().map(|d| self.slot(d)),
        }
    }

    fn gate(&self, signal: &Signal) -> Option<Gate> {
        let SignalKind::Complexity(complexity) = &signal.kind else {
            return None;
        };
        let rule = self.composer(complexity.composer.as_ref()?);
        Some(Gate { rule, labels: emitted(signal).map(|key| self.slot(&key)).collect() })
    }

    /// A composer runs before scores and reads no other complexity label: such a leaf never holds.
    /// Source: contract v0.3, `classifier_composers.go`.
    fn composer(&self, condition: &Condition) -> Rule {
        match condition {
            Condition::Signal(key) | Condition::Tested(Test { key, .. })
                if matches!(key.family, Family::Complexity | Family::Projection) =>
            {
                Rule::Any(Vec::new())
            }
            Condition::Signal(_) | Condition::Tested(_) => self.rule(condition),
            Condition::And(parts) => Rule::All(parts.iter().map(|p| self.composer(p)).collect()),
            Condition::Or(parts) => Rule::Any(parts.iter().map(|p| self.composer(p)).collect()),
            Condition::Not(part) => Rule::Not(Box::new(self.composer(part))),
        }
    }

    fn mappings(&self, score: &Score) -> impl Iterator<Item = (usize, &'a Mapping)> {
        let name = score.name.clone();
        self.recipe.projections.mappings.iter().enumerate().filter(move |(_, m)| m.source == name)
    }

    fn score(&self, score: &Score) -> ScoreStep {
        ScoreStep {
            name: score.name.clone(),
            inputs: score.inputs.iter().map(|i| self.input(i)).collect(),
            mappings: self.mappings(score).map(|(index, m)| self.mapping(index, m)).collect(),
        }
    }

    fn input(&self, input: &ScoreInput) -> Input {
        let (from, kind) = match &input.source {
            InputSource::Signal(key) => (InputFrom::Slot(self.slot(key)), key.family.as_str()),
            InputSource::Score(name) => {
                let scores = &self.recipe.projections.scores;
                let index = scores.iter().position(|s| s.name == *name).unwrap_or(scores.len());
                (InputFrom::Score(index), Family::Projection.as_str())
            }
            InputSource::KbMetric { kb, metric } => {
                (InputFrom::Slot(self.slot(&kb_metric(kb, metric))), "kb_metric")
            }
        };
        Input { from, weight: input.weight, value: input.value, kind }
    }

    fn mapping(&self, index: usize, mapping: &Mapping) -> MappingStep {
        let output = |o: &chorus_spec::MappingOutput| Output {
            slot: self.slot(&SignalKey::new(Family::Projection, &o.name)),
            name: o.name.clone(),
            band: o.band,
        };
        MappingStep {
            name: mapping.name.clone(),
            index,
            method: mapping.method,
            calibration: mapping.calibration,
            outputs: mapping.outputs.iter().map(output).collect(),
        }
    }

    fn decision(&self, decision: &Decision, rank: rank::Rank) -> DecisionStep {
        DecisionStep {
            name: decision.name.as_str().into(),
            tier: decision.tier,
            priority: decision.priority,
            rule: decision.rules.as_ref().map(|rule| self.rule(rule)),
            rank,
        }
    }
}

fn emitted(signal: &Signal) -> impl Iterator<Item = SignalKey> {
    let family = signal.family();
    signal.emits().into_iter().map(move |name| SignalKey::new(family, name))
}

/// The metrics of knowledge bases that scores read, sorted.
fn metrics(recipe: &Recipe) -> BTreeSet<SignalKey> {
    let inputs = recipe.projections.scores.iter().flat_map(|s| &s.inputs);
    let metric = |input: &ScoreInput| match &input.source {
        InputSource::KbMetric { kb, metric } => Some(kb_metric(kb, metric)),
        InputSource::Signal(_) | InputSource::Score(_) => None,
    };
    inputs.filter_map(metric).collect()
}

/// A knowledge base's metric is a fact like any other, which is asked for by its own name.
fn kb_metric(kb: &str, metric: &str) -> SignalKey {
    SignalKey::new(Family::Kb, format!("{kb}.{metric}"))
}

fn keys(recipe: &Recipe) -> BTreeSet<SignalKey> {
    let mut keys: BTreeSet<_> = recipe.signals.iter().flat_map(emitted).collect();
    for signal in &recipe.signals {
        if let SignalKind::Complexity(complexity) = &signal.kind {
            complexity.composer.iter().for_each(|c| leaves(c, &mut keys));
        }
    }
    for partition in &recipe.projections.partitions {
        keys.extend(partition.members.iter().chain(&partition.default).cloned());
    }
    for input in recipe.projections.scores.iter().flat_map(|s| &s.inputs) {
        if let InputSource::Signal(key) = &input.source {
            keys.insert(key.clone());
        }
    }
    keys.extend(metrics(recipe));
    let outputs = recipe.projections.mappings.iter().flat_map(|m| &m.outputs);
    keys.extend(outputs.map(|o| SignalKey::new(Family::Projection, &o.name)));
    recipe.decisions.iter().filter_map(|d| d.rules.as_ref()).for_each(|rules| leaves(rules, &mut keys));
    keys
}

fn leaves(condition: &Condition, keys: &mut BTreeSet<SignalKey>) {
    keys.extend(condition.keys().into_iter().cloned());
}
