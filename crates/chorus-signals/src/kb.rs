//! `kb`: nearness to a part of a knowledge base.
//!
//! *Measures:* how near the text is to the exemplars of each label, and whether a label or group is meant.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `domain`
//! *Fails when:* no encoder is loaded or it fails; a request mixes subjects, or its subject has no label.
//! *Source:* contract §1.4 (`kb`), §1.9 (`model_catalog.kbs`).
//!
//! A label's score is that of its exemplars' prototypes (see `embedding`). `match: threshold` holds when a label of the
//! target reaches its own threshold, else the base's; `match: best` when the best label of the whole base does so and is
//! of the target. Confidence is that label's score, raw the best score of the target. A metric `group_margin` is the best
//! score of its positive group less the best of its negative one, under the name `kb.metric`: its value is raw, and it matches
//! above zero. **Invariant:** every base that the recipe uses was loaded when the recipe was prepared.

use crate::bank::Bank;
use crate::doc::SignalDoc;
use crate::fault::Problem;
use crate::knowledge::{self, Exemplars, Folders, KnowledgeUse};
use crate::measure::{Look, Measure};
use crate::pass::loaded;
use chorus_infer::TextEncoder;
use chorus_policy::{AbsentReason, Ask, Evidence, Observation};
use chorus_spec::{
    Family, InputSource, KbMatch, KbSignal, KbTarget, KnowledgeBase, PrototypeScoring, Recipe, Signal,
    SignalKey, SignalKind,
};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Kb,
    measures: "how near the text is to the exemplars of each label, and whether a label or group is meant.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; a request mixes subjects, or its subject has no label.",
    source: "contract §1.4 (`kb`), §1.9 (`model_catalog.kbs`).",
};

/// The knowledge bases that a recipe uses.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    bases: Vec<Base>,
}

#[derive(Debug)]
struct Base {
    labels: Vec<Label>,
    scoring: PrototypeScoring,
    rules: Vec<Rule>,
    metrics: Vec<Metric>,
}

#[derive(Debug)]
struct Label {
    threshold: f64,
    exemplars: Vec<String>,
    bank: OnceLock<Result<Bank, String>>,
}

/// Places of labels in their base.
type Labels = BTreeSet<usize>;

#[derive(Debug)]
struct Rule {
    key: SignalKey,
    target: Labels,
    matching: KbMatch,
}

#[derive(Debug)]
struct Metric {
    key: SignalKey,
    positive: Labels,
    negative: Labels,
}

impl Knowledge {
    /// Loads every base that the recipe uses; says where each came from, and what is wrong with it.
    pub(crate) fn prepare(
        recipe: &Recipe,
        declared: &[KnowledgeBase],
        folders: &Folders,
    ) -> (Self, Vec<KnowledgeUse>, Vec<Problem>) {
        let (mut bases, mut uses, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for base in declared.iter().filter(|base| is_used(recipe, &base.name)) {
            match knowledge::load(base, folders) {
                Ok((exemplars, origin)) => {
                    bases.push(Base::new(recipe, base, exemplars, &mut problems));
                    uses.push(origin);
                }
                Err(message) => {
                    problems.push(Problem { rule: base.name.clone(), place: base.place, message });
                }
            }
        }
        (Self { bases }, uses, problems)
    }

    /// The asks for metrics, which no signal rule has.
    pub(crate) fn metric_asks(&self) -> impl Iterator<Item = Ask> {
        let metrics = self.bases.iter().flat_map(|base| &base.metrics);
        metrics.map(|metric| Ask::new(Family::Kb, metric.key.name()))
    }
}

impl Measure for Knowledge {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        for base in &self.bases {
            match base.scores(look) {
                Ok(scores) => base.judge(&scores, evidence),
                Err(why) => {
                    for key in base.keys() {
                        evidence.insert(key.clone(), Observation::Absent(AbsentReason::Failed(why.clone())));
                    }
                }
            }
        }
    }

    fn warm(&self, encoder: &dyn TextEncoder) {
        for base in &self.bases {
            for label in &base.labels {
                let _ready = label.bank(encoder, &base.scoring);
            }
        }
    }
}

impl Base {
    fn new(recipe: &Recipe, base: &KnowledgeBase, exemplars: Exemplars, problems: &mut Vec<Problem>) -> Self {
        let names: Vec<String> = exemplars.keys().cloned().collect();
        let labels = exemplars.into_iter().map(|(name, exemplars)| Label {
            threshold: threshold(base, &name),
            exemplars,
            bank: OnceLock::new(),
        });
        let place = |label: &String| names.iter().position(|name| name == label);
        let group =
            |name: &str| base.groups.iter().find(|(group, _)| group == name).map(|(_, labels)| labels);
        let group_places =
            |name: &str| -> Labels { group(name).into_iter().flatten().filter_map(place).collect() };
        let mut rules = Vec::new();
        for (signal, kb) in uses(recipe, &base.name) {
            let target: Labels = match &kb.target {
                KbTarget::Label(label) => place(label).into_iter().collect(),
                KbTarget::Group(name) => group_places(name),
            };
            if target.is_empty() {
                let message = format!("{} is nothing that `{}` has", named(&kb.target), base.name);
                problems.push(Problem { rule: signal.name.clone(), place: signal.place, message });
            }
            rules.push(Rule { key: SignalKey::new(Family::Kb, &signal.name), target, matching: kb.matching });
        }
        let metric = |metric: &chorus_spec::KbMetric| Metric {
            key: SignalKey::new(Family::Kb, format!("{}.{}", base.name, metric.name)),
            positive: group_places(&metric.positive),
            negative: group_places(&metric.negative),
        };
        let metrics = base.metrics.iter().map(metric).collect();
        Self { labels: labels.collect(), scoring: base.prototypes, rules, metrics }
    }

    fn keys(&self) -> impl Iterator<Item = &SignalKey> {
        self.rules.iter().map(|rule| &rule.key).chain(self.metrics.iter().map(|metric| &metric.key))
    }

    /// One score a label; none when the user wrote no text, which is near to nothing.
    fn scores(&self, look: &mut Look<'_, '_>) -> Result<Vec<f64>, String> {
        let text = look.subject.task();
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let encoder = loaded(look.encoder)?;
        let encoded = look.pass.encode(encoder, text)?;
        let score = |label: &Label| {
            let bank = label.bank(encoder, &self.scoring)?;
            bank.score(&encoded.windows).ok_or_else(|| "a label has no exemplar".to_owned())
        };
        self.labels.iter().map(score).collect()
    }

    fn judge(&self, scores: &[f64], evidence: &mut Evidence) {
        let best = best(scores, |_| true);
        for rule in &self.rules {
            let raw = self::best(scores, |label| rule.target.contains(&label)).map(|(_, score)| score);
            let found = match rule.matching {
                KbMatch::Threshold => {
                    self::best(scores, |l| rule.target.contains(&l) && self.reaches(l, scores))
                }
                KbMatch::Best => best.filter(|(l, _)| rule.target.contains(l) && self.reaches(*l, scores)),
            };
            let observation = match found {
                Some((_, score)) => Observation::Matched { confidence: score.clamp(0.0, 1.0), raw },
                None => Observation::Unmatched { raw },
            };
            evidence.insert(rule.key.clone(), observation);
        }
        for metric in &self.metrics {
            evidence.insert(metric.key.clone(), metric.judge(scores));
        }
    }

    fn reaches(&self, label: usize, scores: &[f64]) -> bool {
        let least = self.labels.get(label).map_or(f64::INFINITY, |label| label.threshold);
        scores.get(label).is_some_and(|score| *score >= least)
    }
}

impl Label {
    fn bank(&self, encoder: &dyn TextEncoder, settings: &PrototypeScoring) -> Result<&Bank, String> {
        let build = || Bank::prototypes(encoder, &self.exemplars, settings);
        self.bank.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

impl Metric {
    /// The margin between two groups; an empty text is as near to one as to the other.
    fn judge(&self, scores: &[f64]) -> Observation {
        let side =
            |labels: &Labels| best(scores, |label| labels.contains(&label)).map_or(0.0, |(_, score)| score);
        let margin = side(&self.positive) - side(&self.negative);
        if margin > 0.0 {
            Observation::Matched { confidence: margin.min(1.0), raw: Some(margin) }
        } else {
            Observation::Unmatched { raw: Some(margin) }
        }
    }
}

/// The label with the greatest score among those that count; the first of equals.
fn best(scores: &[f64], counts: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
    let counting = scores.iter().copied().enumerate().filter(|(label, _)| counts(*label));
    counting.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn threshold(base: &KnowledgeBase, label: &str) -> f64 {
    base.label_thresholds.iter().find(|(name, _)| name == label).map_or(base.threshold, |(_, least)| *least)
}

fn named(target: &KbTarget) -> String {
    match target {
        KbTarget::Label(label) => format!("the label `{label}`"),
        KbTarget::Group(group) => format!("the group `{group}`"),
    }
}

fn uses<'r>(recipe: &'r Recipe, base: &str) -> impl Iterator<Item = (&'r Signal, &'r KbSignal)> {
    recipe.signals.iter().filter_map(move |signal| match &signal.kind {
        SignalKind::Kb(kb) if kb.kb == base => Some((signal, kb)),
        _ => None,
    })
}

fn is_used(recipe: &Recipe, base: &str) -> bool {
    let inputs = recipe.projections.scores.iter().flat_map(|score| &score.inputs);
    let measured = |source: &InputSource| matches!(source, InputSource::KbMetric { kb, .. } if kb == base);
    uses(recipe, base).next().is_some() || inputs.into_iter().any(|input| measured(&input.source))
}

/// Whether a recipe reads a metric of a knowledge base.
pub(crate) fn reads_a_metric(recipe: &Recipe) -> bool {
    let inputs = recipe.projections.scores.iter().flat_map(|score| &score.inputs);
    inputs.into_iter().any(|input| matches!(input.source, InputSource::KbMetric { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Broken, WordBag, knowledge_base};
    use crate::subject::Subject;
    use chorus_spec::KbMetric;
    use chorus_wire::{ChatRequest, Message, Role};

    const MANIFEST: &str = r#"{"labels":{
        "payroll":{"exemplars":["list the salaries of our staff","salaries by employee"]},
        "contracts":{"exemplars":["summarise the supplier contract"]},
        "weather":{"exemplars":["will it rain tomorrow"]}}}"#;

    fn base() -> KnowledgeBase {
        let groups: &[(&str, &[&str])] = &[("private", &["payroll", "contracts"]), ("public", &["weather"])];
        let mut base = knowledge_base("office", "kb", groups);
        base.threshold = 0.5;
        base.label_thresholds = vec![("contracts".to_owned(), 0.95)];
        let (positive, negative) = ("private".to_owned(), "public".to_owned());
        base.metrics = vec![KbMetric { name: "margin".to_owned(), positive, negative }];
        base
    }

    fn rule(name: &str, target: KbTarget, matching: KbMatch) -> Signal {
        fake::signal(name, SignalKind::Kb(KbSignal { kb: "office".to_owned(), target, matching }))
    }

    fn recipe() -> Recipe {
        let group = |name: &str| KbTarget::Group(name.to_owned());
        let label = |name: &str| KbTarget::Label(name.to_owned());
        let signals = vec![
            rule("private", group("private"), KbMatch::Threshold),
            rule("mostly", group("private"), KbMatch::Best),
            rule("contracts", label("contracts"), KbMatch::Threshold),
        ];
        Recipe { signals, ..Recipe::default() }
    }

    fn prepare(recipe: &Recipe) -> (Knowledge, Vec<KnowledgeUse>, Vec<Problem>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("kb")).unwrap();
        std::fs::write(root.path().join("kb/labels.json"), MANIFEST).unwrap();
        let folders = Folders { config: Some(root.path().to_owned()), knowledge: None };
        Knowledge::prepare(recipe, &[base(), knowledge_base("unused", "nowhere", &[])], &folders)
    }

    fn observe(text: &str, encoder: Option<&dyn TextEncoder>) -> Evidence {
        let (knowledge, uses, problems) = prepare(&recipe());
        assert_eq!((uses.len(), problems.len()), (1, 0));
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        fake::measured(&knowledge, encoder, &Subject::of(&request))
    }

    fn matched(text: &str) -> Vec<String> {
        let evidence = observe(text, Some(&WordBag));
        let matched = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
        matched.map(|(key, _)| key.name().to_owned()).collect()
    }

    #[test]
    fn thresholds_groups_and_the_best_label() {
        for (text, want) in [
            ("list the salaries of our staff", vec!["mostly", "office.margin", "private"]),
            ("summarise the supplier contract", vec!["contracts", "mostly", "office.margin", "private"]),
            // Near to a contract, but below that label's own threshold.
            ("please do summarise the supplier contract now", vec!["office.margin"]),
            ("will it rain tomorrow", vec![]),
            ("entirely unrelated", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(matched(text), want, "{text}");
        }
    }

    #[test]
    fn a_metric_is_the_margin_between_groups() {
        let margin = |text: &str| match observe(text, Some(&WordBag))
            .get(&SignalKey::new(Family::Kb, "office.margin"))
        {
            Some(Observation::Matched { raw: Some(raw), .. } | Observation::Unmatched { raw: Some(raw) }) => {
                *raw
            }
            other => panic!("{other:?}"),
        };
        assert!(margin("salaries by employee") > 0.5);
        assert!(margin("will it rain tomorrow") < -0.5);
        assert_eq!(margin(""), 0.0);
    }

    #[test]
    fn without_an_encoder_every_key_is_absent() {
        for encoder in [None, Some(&Broken as &dyn TextEncoder)] {
            let evidence = observe("salaries", encoder);
            assert_eq!(evidence.iter().count(), 4);
            assert!(evidence.iter().all(|(_, o)| matches!(o, Observation::Absent(AbsentReason::Failed(_)))));
        }
    }

    #[test]
    fn an_unknown_target_is_a_problem_at_load() {
        let target = KbTarget::Label("nothing".to_owned());
        let signals = vec![rule("odd", target, KbMatch::Threshold)];
        let (_, _, problems) = prepare(&Recipe { signals, ..Recipe::default() });
        assert!(problems[0].message.contains("the label `nothing`") && problems[0].rule == "odd");
    }
}
