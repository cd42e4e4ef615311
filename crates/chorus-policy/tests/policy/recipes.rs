//! Small recipes and requests for the tests, built without a file.
//!
//! Knows the words of the spec and the public door of the policy only.

use chorus_policy::{AbsentReason, Ask, Evidence, Observation, Policy, Progress, Scope, Verdict};
use chorus_spec::{
    ClassifierKind, ClassifierSignal, ComplexitySignal, Condition, ContextSignal, Decision, DomainSignal,
    EmbeddingSignal, Family, KeywordMethod, KeywordOperator, KeywordSignal, NumericPredicate, OnAbsent,
    Place, Recipe, Signal, SignalKey, SignalKind, Test,
};

/// `family:name` as a key.
pub(crate) fn key(text: &str) -> SignalKey {
    let (word, name) = text.split_once(':').unwrap();
    let family = Family::ALL.into_iter().find(|f| f.as_str() == word).unwrap();
    SignalKey::new(family, name)
}

pub(crate) fn leaf(text: &str) -> Condition {
    Condition::Signal(key(text))
}

pub(crate) fn all_of<const N: usize>(parts: [Condition; N]) -> Condition {
    Condition::And(parts.into())
}

pub(crate) fn any_of<const N: usize>(parts: [Condition; N]) -> Condition {
    Condition::Or(parts.into())
}

pub(crate) fn not(part: Condition) -> Condition {
    Condition::Not(Box::new(part))
}

/// A leaf with bounds of the raw value, and what it says when the fact is absent.
pub(crate) fn tested(text: &str, least: Option<f64>, on_absent: OnAbsent) -> Condition {
    let predicate = least.map(|gte| NumericPredicate { gte: Some(gte), ..NumericPredicate::default() });
    Condition::Tested(Test { key: key(text), predicate, on_absent })
}

/// A decision with a rule; change the fields that matter.
pub(crate) fn decision(name: &str, priority: i64, rules: impl Into<Option<Condition>>) -> Decision {
    Decision { name: name.to_owned(), priority, rules: rules.into(), ..Decision::default() }
}

pub(crate) fn tiered(name: &str, tier: i64, priority: i64, rules: Condition) -> Decision {
    Decision { tier, ..decision(name, priority, rules) }
}

/// A signal rule by its key (`complexity:c` is the rule, not a label).
pub(crate) fn signal(text: &str) -> Signal {
    let key = key(text);
    let kind = match key.family {
        Family::Keyword => SignalKind::Keyword(KeywordSignal {
            operator: KeywordOperator::Or,
            keywords: vec!["word".to_owned()],
            case_sensitive: false,
            method: KeywordMethod::Literal,
        }),
        Family::Context => SignalKind::Context(ContextSignal { min_tokens: 0, max_tokens: None }),
        Family::Embedding => SignalKind::Embedding(EmbeddingSignal {
            threshold: 0.5,
            candidates: Vec::new(),
            aggregation: chorus_spec::Aggregation::Max,
            query_modality: "text".to_owned(),
        }),
        Family::Domain => domain(&[]),
        Family::Complexity => complexity(None),
        Family::Classifier => SignalKind::Classifier(ClassifierSignal {
            kind: ClassifierKind::Local { path: "head.json".to_owned() },
            labels: vec!["spam".to_owned(), "ham".to_owned()],
        }),
        other => SignalKind::Unsupported(other),
    };
    Signal { name: key.name().to_owned(), description: String::new(), kind, place: Place::default() }
}

pub(crate) fn domain(categories: &[&str]) -> SignalKind {
    let mmlu_categories = categories.iter().map(|c| (*c).to_owned()).collect();
    SignalKind::Domain(DomainSignal { mmlu_categories, model_scores: Vec::new() })
}

pub(crate) fn complexity(composer: Option<Condition>) -> SignalKind {
    let (hard, easy) = (Vec::new(), Vec::new());
    let easy_certainty = ComplexitySignal::EASY_CERTAINTY;
    SignalKind::Complexity(ComplexitySignal { threshold: 0.1, easy_certainty, hard, easy, composer })
}

/// A recipe of these signal rules (separated by spaces) and decisions.
pub(crate) fn recipe<const N: usize>(signals: &str, decisions: [Decision; N]) -> Recipe {
    Recipe {
        signals: signals.split_whitespace().map(signal).collect(),
        decisions: decisions.into(),
        ..Recipe::default()
    }
}

/// 0 for what is read off the text, 3 for what needs an encoder, 9 for what is not run.
pub(crate) fn cost(family: Family) -> u8 {
    match family {
        Family::Context => 0,
        Family::Keyword => 1,
        Family::Embedding | Family::Domain | Family::Complexity | Family::Classifier => 3,
        _ => 9,
    }
}

pub(crate) fn compile(recipe: &Recipe) -> Policy {
    Policy::compile(recipe, &cost)
}

pub(crate) fn yes(confidence: f64) -> Observation {
    Observation::Matched { confidence, raw: None }
}

pub(crate) fn no() -> Observation {
    Observation::Unmatched { raw: None }
}

pub(crate) fn raw(value: f64) -> Observation {
    Observation::Unmatched { raw: Some(value) }
}

pub(crate) fn failed() -> Observation {
    Observation::Absent(AbsentReason::Failed("encoder is out".to_owned()))
}

pub(crate) fn unsupported() -> Observation {
    Observation::Absent(AbsentReason::Unsupported)
}

pub(crate) fn evidence<const N: usize>(facts: [(&str, Observation); N]) -> Evidence {
    let mut evidence = Evidence::default();
    for (text, observation) in facts {
        evidence.insert(key(text), observation);
    }
    evidence
}

/// The verdict, when nothing more may be asked.
pub(crate) fn done(progress: Progress) -> Verdict {
    match progress {
        Progress::Done(verdict) => *verdict,
        Progress::Need(asks) => panic!("still asks for {asks:?}"),
    }
}

/// What is asked for, as keys of rules.
pub(crate) fn asked(progress: &Progress) -> Vec<String> {
    match progress {
        Progress::Need(asks) => asks.iter().map(|a| format!("{}:{}", a.family, a.rule)).collect(),
        Progress::Done(_) => Vec::new(),
    }
}

pub(crate) fn winner(verdict: &Verdict) -> Option<&str> {
    verdict.winner.as_ref().map(|w| &*w.name)
}

/// Answers asks out of a world in which every signal has been measured.
pub(crate) struct World<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) all: Evidence,
}

impl World<'_> {
    fn answer(&self, ask: &Ask, evidence: &mut Evidence) {
        let rule = self.recipe.signals.iter().find(|s| s.family() == ask.family && *s.name == *ask.rule);
        // What is asked by a name that no rule has is a metric of a knowledge base.
        let mut names = rule.map_or_else(|| vec![ask.rule.to_string()], Signal::emits);
        if let Some(SignalKind::Domain(domain)) = rule.map(|rule| &rule.kind) {
            names.extend(domain.mmlu_categories.clone());
        }
        for key in names.into_iter().map(|name| SignalKey::new(ask.family, name)) {
            if let Some(observation) = self.all.get(&key) {
                evidence.insert(key, observation.clone());
            }
        }
    }

    /// Decides lazily; gives the verdict and every round of asks.
    pub(crate) fn decide(&self, policy: &Policy, scope: &Scope) -> (Verdict, Vec<Vec<Ask>>) {
        let (mut evidence, mut rounds) = (Evidence::default(), Vec::new());
        loop {
            match policy.decide(&evidence, scope) {
                Progress::Done(verdict) => return (*verdict, rounds),
                Progress::Need(asks) => {
                    assert!(rounds.len() < 100, "asks without end: {asks:?}");
                    asks.iter().for_each(|ask| self.answer(ask, &mut evidence));
                    rounds.push(asks);
                }
            }
        }
    }
}
