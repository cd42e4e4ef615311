//! What a picture of a recipe shows: nodes in columns, and who feeds whom.
//!
//! It knows a checked recipe and no coordinates. **Invariant:** an edge is drawn once for each pair and direction, and
//! only where a rule, a score or a route names its source.

use chorus_spec::{
    Algorithm, Condition, Decision, Family, InputSource, Mapping, MappingOutput, Recipe, Signal, SignalKey,
    SignalKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The columns, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    Signals,
    Scores,
    Bands,
    Decisions,
    Models,
}

impl Column {
    pub(super) const ALL: [Self; 5] =
        [Self::Signals, Self::Scores, Self::Bands, Self::Decisions, Self::Models];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Signals => "signals",
            Self::Scores => "scores",
            Self::Bands => "bands",
            Self::Decisions => "decisions",
            Self::Models => "models",
        }
    }
}

/// One box.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) column: Column,
    /// What stands above the boxes of one kind: a family, a mapping.
    pub(super) group: String,
    pub(super) label: String,
    /// A second, quieter text: bounds of a band, rank of a decision.
    pub(super) note: String,
    /// What a pointer over the box shows.
    pub(super) hint: String,
    pub(super) family: Option<Family>,
}

/// What an edge says of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bearing {
    For,
    /// Negated, or of negative weight.
    Against,
}

/// One line between boxes, by their numbers.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bearing: Bearing,
    /// Weight of a score's input, 1 elsewhere.
    pub(super) weight: f64,
}

/// Boxes and lines.
#[derive(Debug, Default)]
pub(super) struct Picture {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// Draws up the picture of a recipe.
pub(super) fn picture(recipe: &Recipe) -> Picture {
    let mut draft = Draft::default();
    recipe.signals.iter().for_each(|signal| draft.signal(signal));
    recipe.projections.scores.iter().for_each(|score| draft.score(&score.name));
    recipe.projections.mappings.iter().for_each(|mapping| draft.mapping(mapping));
    draft.scores(recipe);
    recipe.signals.iter().for_each(|signal| draft.composer(signal));
    recipe.decisions.iter().for_each(|decision| draft.decision(decision));
    draft.partitions(recipe);
    draft.picture
}

#[derive(Default)]
struct Draft {
    picture: Picture,
    by_key: BTreeMap<SignalKey, usize>,
    by_score: BTreeMap<String, usize>,
    by_model: BTreeMap<String, usize>,
    drawn: BTreeSet<(usize, usize, Bearing)>,
}

impl Draft {
    fn node(&mut self, node: Node) -> usize {
        self.picture.nodes.push(node);
        self.picture.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, bearing: Bearing, weight: f64) {
        if self.drawn.insert((from, to, bearing)) {
            self.picture.edges.push(Edge { from, to, bearing, weight });
        }
    }

    fn signal(&mut self, signal: &Signal) {
        let family = signal.family();
        let at = self.signal_node(family, &signal.name, &signal.description);
        let names = signal.emits().into_iter().chain([signal.name.clone()]);
        let categories = match &signal.kind {
            SignalKind::Domain(domain) => domain.mmlu_categories.clone(),
            _ => Vec::new(),
        };
        for name in names.chain(categories) {
            self.by_key.entry(SignalKey::new(family, name)).or_insert(at);
        }
    }

    fn signal_node(&mut self, family: Family, name: &str, hint: &str) -> usize {
        self.node(Node {
            column: Column::Signals,
            group: family.to_string(),
            label: name.to_owned(),
            note: String::new(),
            hint: hint.to_owned(),
            family: Some(family),
        })
    }

    /// The box of a fact; one that no rule declares (a category of the domain head, a metric) gets its own.
    fn of_key(&mut self, key: &SignalKey) -> usize {
        if let Some(at) = self.by_key.get(key) {
            return *at;
        }
        let at = self.signal_node(key.family, key.name(), "");
        self.by_key.insert(key.clone(), at);
        at
    }

    fn score(&mut self, name: &str) {
        let at = self.node(Node {
            column: Column::Scores,
            group: String::new(),
            label: name.to_owned(),
            note: String::new(),
            hint: String::new(),
            family: None,
        });
        self.by_score.insert(name.to_owned(), at);
    }

    fn mapping(&mut self, mapping: &Mapping) {
        for output in &mapping.outputs {
            let at = self.node(Node {
                column: Column::Bands,
                group: mapping.name.clone(),
                label: output.name.clone(),
                note: bounds(output),
                hint: format!("{} of {}", mapping.name, mapping.source),
                family: Some(Family::Projection),
            });
            self.by_key.insert(SignalKey::new(Family::Projection, &output.name), at);
            if let Some(score) = self.by_score.get(&mapping.source).copied() {
                self.edge(score, at, Bearing::For, 1.0);
            }
        }
    }

    fn scores(&mut self, recipe: &Recipe) {
        for score in &recipe.projections.scores {
            let Some(to) = self.by_score.get(&score.name).copied() else { continue };
            for input in &score.inputs {
                let from = match &input.source {
                    InputSource::Signal(key) => Some(self.of_key(key)),
                    InputSource::Score(name) => self.by_score.get(name).copied(),
                    InputSource::KbMetric { kb, metric } => {
                        Some(self.of_key(&SignalKey::new(Family::Kb, format!("{kb}.{metric}"))))
                    }
                };
                let bearing = if input.weight < 0.0 { Bearing::Against } else { Bearing::For };
                if let Some(from) = from {
                    self.edge(from, to, bearing, input.weight.abs());
                }
            }
        }
    }

    fn composer(&mut self, signal: &Signal) {
        let SignalKind::Complexity(complexity) = &signal.kind else { return };
        let Some(rule) = &complexity.composer else { return };
        let Some(to) = self.by_key.get(&SignalKey::new(Family::Complexity, &signal.name)).copied() else {
            return;
        };
        self.terms(rule, to);
    }

    fn decision(&mut self, decision: &Decision) {
        let mut note = format!("priority {}", decision.priority);
        if decision.tier > 0 {
            note = format!("tier {} · {note}", decision.tier);
        }
        let algorithm = decision.algorithm.kind();
        if algorithm != "static" {
            note = format!("{note} · {algorithm}");
        }
        let to = self.node(Node {
            column: Column::Decisions,
            group: String::new(),
            label: decision.name.clone(),
            note,
            hint: decision.description.clone(),
            family: None,
        });
        if let Some(rules) = &decision.rules {
            self.terms(rules, to);
        }
        for (at, candidate) in decision.model_refs.iter().enumerate() {
            let model = self.model(candidate.model.as_str());
            let later = u32::try_from(at).unwrap_or(u32::MAX);
            self.edge(to, model, Bearing::For, 1.0 / (1.0 + f64::from(later)));
        }
        if let Algorithm::Fusion(fusion) = &decision.algorithm {
            for name in fusion.panel.iter().chain(&fusion.judge) {
                let model = self.model(name.as_str());
                self.edge(to, model, Bearing::For, 1.0);
            }
        }
    }

    fn model(&mut self, name: &str) -> usize {
        if let Some(at) = self.by_model.get(name) {
            return *at;
        }
        let at = self.node(Node {
            column: Column::Models,
            group: String::new(),
            label: name.to_owned(),
            note: String::new(),
            hint: String::new(),
            family: None,
        });
        self.by_model.insert(name.to_owned(), at);
        at
    }

    fn terms(&mut self, rule: &Condition, to: usize) {
        let mut terms = Vec::new();
        collect(rule, Bearing::For, &mut terms);
        for (key, bearing) in terms {
            let from = self.of_key(key);
            self.edge(from, to, bearing, 1.0);
        }
    }

    fn partitions(&mut self, recipe: &Recipe) {
        for partition in &recipe.projections.partitions {
            for member in &partition.members {
                let at = self.of_key(member);
                if let Some(node) = self.picture.nodes.get_mut(at) {
                    node.note = "◆".to_owned();
                    node.hint = format!("one of partition {}. {}", partition.name, node.hint);
                }
            }
        }
    }
}

fn collect<'c>(rule: &'c Condition, bearing: Bearing, terms: &mut Vec<(&'c SignalKey, Bearing)>) {
    match rule {
        Condition::Signal(key) => terms.push((key, bearing)),
        Condition::Tested(test) => terms.push((&test.key, bearing)),
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| collect(part, bearing, terms));
        }
        Condition::Not(part) => {
            let other = if bearing == Bearing::For { Bearing::Against } else { Bearing::For };
            collect(part, other, terms);
        }
    }
}

/// `≥ 0.18, < 0.48`.
fn bounds(output: &MappingOutput) -> String {
    let band = &output.band;
    let all = [("≥", band.gte), (">", band.gt), ("<", band.lt), ("≤", band.lte)];
    let shown = all.into_iter().filter_map(|(sign, bound)| bound.map(|bound| format!("{sign} {bound}")));
    shown.collect::<Vec<_>>().join(", ")
}
