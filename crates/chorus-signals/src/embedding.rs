//! `embedding`: nearness to example sentences.
//!
//! *Measures:* cosine similarity of the user's text to a bank of examples, clustered into prototypes.
//! *Inputs:* the last user message, all windows of it.
//! *Cost:* 3, one encoder pass a text, shared with `domain` and `complexity`
//! *Fails when:* no encoder is loaded or it fails; the examples share words, not meaning, with other requests.
//! *Source:* contract §1.4 (`embeddings`).
//!
//! Score by `aggregation_method`: `max` (default) is best_weight·best + (1 − best_weight)·mean of the best top_m
//! prototypes, `mean` the mean over all examples, `any` the best example. A long text is as near as its nearest window.
//! The family is judged together: rules at or above their own threshold match; only when there is none, those at or
//! above the soft threshold do; of these the best `top_k` stay. Members of one partition take one of these places
//! together, because the partition keeps one of them anyway. Confidence is the score. Examples are encoded once, at
//! first need. **Invariant:** raw is the score, matched or not.

use crate::bank::Bank;
use crate::doc::SignalDoc;
use crate::pass::{SharedPass, loaded};
use chorus_infer::TextEncoder;
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{
    Aggregation, EmbeddingSignal, Family, Global, PrototypeScoring, Recipe, SignalKey, SignalKind,
};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Embedding,
    measures: "cosine similarity of the user's text to a bank of examples, clustered into prototypes.",
    inputs: "the last user message, all windows of it.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; the examples share words, not meaning, with other requests.",
    source: "contract §1.4 (`embeddings`).",
};

/// All embedding rules of a recipe.
#[derive(Debug)]
pub(crate) struct Embeddings {
    rules: Vec<Rule>,
    scoring: PrototypeScoring,
    top_k: usize,
    soft_threshold: Option<f64>,
}

#[derive(Debug)]
struct Rule {
    key: SignalKey,
    signal: EmbeddingSignal,
    partition: Option<usize>,
    bank: OnceLock<Result<Bank, String>>,
}

impl Embeddings {
    pub(crate) fn prepare(recipe: &Recipe, global: &Global) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Embedding(embedding) => {
                let key = SignalKey::new(Family::Embedding, &signal.name);
                let partitions = &recipe.projections.partitions;
                let partition = partitions.iter().position(|partition| partition.members.contains(&key));
                Some(Rule { key, signal: embedding.clone(), partition, bank: OnceLock::new() })
            }
            _ => None,
        });
        Self {
            rules: rules.collect(),
            scoring: global.embedding_prototypes,
            top_k: global.embedding_top_k,
            soft_threshold: global.embedding_soft_threshold,
        }
    }

    /// Encodes every bank that is not encoded yet.
    pub(crate) fn warm(&self, encoder: &dyn TextEncoder) {
        for rule in self.rules.iter().filter(|rule| rule.reads_text()) {
            let _ready = rule.bank(encoder, &self.scoring);
        }
    }

    /// What every rule says of a text.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let mut scored = Vec::new();
        for rule in &self.rules {
            match self.score(rule, encoder, text, pass) {
                Ok(Some(score)) => scored.push((rule, score)),
                Ok(None) => evidence.insert(rule.key.clone(), Observation::Unmatched { raw: None }),
                Err(reason) => evidence.insert(rule.key.clone(), Observation::Absent(reason)),
            }
        }
        let kept = self.kept(&scored);
        for (rule, score) in scored {
            let observation = if kept.contains(&rule.key) {
                Observation::Matched { confidence: score.clamp(0.0, 1.0), raw: Some(score) }
            } else {
                Observation::Unmatched { raw: Some(score) }
            };
            evidence.insert(rule.key.clone(), observation);
        }
    }

    /// The score of a rule; `None` when the user wrote no text, which is near to nothing.
    fn score(
        &self,
        rule: &Rule,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<Option<f64>, AbsentReason> {
        if !rule.reads_text() {
            return Err(AbsentReason::Unsupported);
        }
        if text.trim().is_empty() {
            return Ok(None);
        }
        let encoder = loaded(encoder).map_err(AbsentReason::Failed)?;
        let encoded = pass.encode(encoder, text).map_err(AbsentReason::Failed)?;
        let bank = rule.bank(encoder, &self.scoring).map_err(AbsentReason::Failed)?;
        bank.score(&encoded.windows)
            .map(Some)
            .ok_or_else(|| AbsentReason::Failed("the rule has no example sentence".to_owned()))
    }

    fn kept(&self, scored: &[(&Rule, f64)]) -> BTreeSet<SignalKey> {
        let hard = scored.iter().any(|(rule, score)| *score >= rule.signal.threshold);
        let passes = |rule: &Rule, score: f64| {
            if hard {
                score >= rule.signal.threshold
            } else {
                self.soft_threshold.is_some_and(|soft| score >= soft)
            }
        };
        let mut passing: Vec<_> = scored.iter().filter(|(rule, score)| passes(rule, *score)).collect();
        passing.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let most = if self.top_k == 0 { usize::MAX } else { self.top_k };
        let (mut places, mut seen) = (0, BTreeSet::new());
        let mut kept = BTreeSet::new();
        for (rule, _) in passing {
            let shares_a_place = rule.partition.is_some_and(|partition| seen.contains(&partition));
            if !shares_a_place && places == most {
                continue;
            }
            places += usize::from(!shares_a_place);
            seen.extend(rule.partition);
            kept.insert(rule.key.clone());
        }
        kept
    }
}

impl Rule {
    fn reads_text(&self) -> bool {
        self.signal.query_modality == "text"
    }

    fn bank(&self, encoder: &dyn TextEncoder, settings: &PrototypeScoring) -> Result<&Bank, String> {
        let build = || match self.signal.aggregation {
            Aggregation::Max => Bank::prototypes(encoder, &self.signal.candidates, settings),
            Aggregation::Mean => Bank::mean(encoder, &self.signal.candidates),
            Aggregation::Any => Bank::best(encoder, &self.signal.candidates),
        };
        self.bank.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag};
    use chorus_spec::{Partition, PartitionSemantics, Place, Signal};

    fn rule(name: &str, threshold: f64, candidates: &[&str]) -> Signal {
        let signal = EmbeddingSignal {
            threshold,
            candidates: candidates.iter().map(|c| (*c).to_owned()).collect(),
            aggregation: Aggregation::Max,
            query_modality: "text".to_owned(),
        };
        let kind = SignalKind::Embedding(signal);
        Signal { name: name.to_owned(), description: String::new(), kind, place: Place::default() }
    }

    fn recipe() -> Recipe {
        let signals = vec![
            rule("billing", 0.7, &["refund my invoice", "pay the invoice"]),
            rule("weather", 0.7, &["rain forecast tomorrow"]),
            rule("travel", 0.99, &["book a train tomorrow"]),
        ];
        Recipe { signals, ..Recipe::default() }
    }

    fn observe(recipe: &Recipe, global: &Global, encoder: Option<&dyn TextEncoder>, text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        Embeddings::prepare(recipe, global).observe(encoder, text, &mut SharedPass::new(), &mut evidence);
        evidence
    }

    fn matched(evidence: &Evidence) -> Vec<&str> {
        let matched = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
        matched.map(|(key, _)| key.name()).collect()
    }

    #[test]
    fn hard_matches_then_soft_ones_then_the_best_few() {
        let global = |top_k, soft| Global {
            embedding_top_k: top_k,
            embedding_soft_threshold: soft,
            ..Global::default()
        };
        for (text, top_k, soft, want) in [
            ("refund my invoice", 1, Some(0.3), vec!["billing"]),
            // No rule reaches its own threshold: soft ones, the best first.
            ("forecast for a train tomorrow", 0, Some(0.3), vec!["travel", "weather"]),
            ("forecast for a train tomorrow", 1, Some(0.3), vec!["travel"]),
            ("forecast for a train tomorrow", 1, None, vec![]),
            ("nothing of the kind", 0, Some(0.5), vec![]),
        ] {
            assert_eq!(
                matched(&observe(&recipe(), &global(top_k, soft), Some(&WordBag), text)),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn a_partition_takes_one_place() {
        let members = ["travel", "weather"].map(|name| SignalKey::new(Family::Embedding, name)).to_vec();
        let (name, semantics) = ("p".to_owned(), PartitionSemantics::Exclusive);
        let partition = Partition { name, semantics, members, default: None, place: Place::default() };
        let mut recipe = recipe();
        recipe.projections.partitions.push(partition);
        let global = Global { embedding_top_k: 1, embedding_soft_threshold: Some(0.3), ..Global::default() };
        let evidence = observe(&recipe, &global, Some(&WordBag), "forecast for a train tomorrow");
        assert_eq!(matched(&evidence), ["travel", "weather"]);
    }

    #[test]
    fn a_passage_of_a_long_text_counts() {
        let text = "entirely other words here ".repeat(60) + "refund my invoice refund my invoice";
        let global = Global { embedding_soft_threshold: Some(0.4), ..Global::default() };
        assert_eq!(matched(&observe(&recipe(), &global, Some(&WordBag), &text)), ["billing"]);
    }

    #[test]
    fn failures_are_absent_not_no() {
        let global = Global::default();
        let absent = |evidence: &Evidence| {
            evidence.iter().filter(|(_, o)| matches!(o, Observation::Absent(AbsentReason::Failed(_)))).count()
        };
        assert_eq!(absent(&observe(&recipe(), &global, None, "x")), 3);
        assert_eq!(absent(&observe(&recipe(), &global, Some(&Broken), "x")), 3);
        let mut image = recipe();
        if let SignalKind::Embedding(signal) = &mut image.signals[0].kind {
            signal.query_modality = "image".to_owned();
        }
        let evidence = observe(&image, &global, Some(&WordBag), "x");
        let key = SignalKey::new(Family::Embedding, "billing");
        assert_eq!(evidence.get(&key), Some(&Observation::Absent(AbsentReason::Unsupported)));
    }
}
