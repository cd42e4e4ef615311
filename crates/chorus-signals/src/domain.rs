//! `domain`: the subject matter.
//!
//! *Measures:* the probability of each of the 14 MMLU-Pro categories, by a linear head over the encoder.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `complexity`
//! *Fails when:* no encoder or no head is loaded; the text is short and of no subject; the text is not English.
//! *Source:* contract §1.4 (`domains`); cases D12, D14.
//!
//! Probabilities are averaged over windows; over an English encoder the head is less sure of a text in another language. A
//! rule says that the text is of *any* of its categories; classes are disjoint, so its probability is the sum over them,
//! and it matches at or above the threshold. When the normalised entropy over all classes is below 0.4 the head is sure of
//! one class, and only names that cover it can match, so that no set of remnants outvotes it. Both the rule's name and its
//! categories' names are emitted, a category as a rule of itself alone: for it this is the contract's rule. Confidence is
//! that probability, never a complement of another class's (D12). **Invariant:** raw is the sum over the name's
//! categories, matched or not.

use crate::doc::SignalDoc;
use crate::language::language_of;
use crate::pass::{SharedPass, loaded};
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, Recipe, SignalKey, SignalKind};
use std::collections::BTreeSet;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Domain,
    measures: "the probability of each of the 14 MMLU-Pro categories, by a linear head over the encoder.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder or no head is loaded; the text is short and of no subject; the text is not English.",
    source: "contract §1.4 (`domains`); cases D12, D14.",
};

/// Normalised entropy below which only names that cover the first class can match. Source: contract §1.4 (`domains`).
const SURE_ENTROPY: f64 = 0.4;

/// All domain rules of a recipe.
#[derive(Debug)]
pub(crate) struct Domains {
    emitted: Vec<Emitted>,
    threshold: f64,
    head: Option<&'static Head>,
}

/// One name that the family emits.
#[derive(Debug)]
struct Emitted {
    key: SignalKey,
    /// Places of its categories among the head's labels; a category that is listed twice counts once.
    classes: BTreeSet<usize>,
}

impl Domains {
    pub(crate) fn prepare(recipe: &Recipe, threshold: f64, head: Option<&'static Head>) -> Self {
        let labels = head.map(Head::labels).unwrap_or_default();
        let emitted = |name: &str, categories: &[&str]| Emitted {
            key: SignalKey::new(Family::Domain, name),
            classes: categories.iter().filter_map(|category| class_of(category, labels)).collect(),
        };
        let (mut categories, mut rules) = (Vec::new(), Vec::new());
        for signal in &recipe.signals {
            let SignalKind::Domain(domain) = &signal.kind else {
                continue;
            };
            let listed: Vec<&str> = domain.mmlu_categories.iter().map(String::as_str).collect();
            categories.extend(listed.iter().map(|category| emitted(category, &[category])));
            let own = [signal.name.as_str()];
            rules.push(emitted(&signal.name, if listed.is_empty() { &own } else { &listed }));
        }
        // A rule is emitted after all categories: where both have one name, the rule's meaning stands.
        categories.append(&mut rules);
        Self { emitted: categories, threshold, head }
    }

    /// What every rule says of a text.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let probabilities = self.probabilities(encoder, text, pass);
        for emitted in &self.emitted {
            let observation = match &probabilities {
                Ok(probabilities) => emitted.judge(probabilities, self.threshold),
                Err(reason) => Observation::Absent(reason.clone()),
            };
            evidence.insert(emitted.key.clone(), observation);
        }
    }

    /// One probability a label; none when the user wrote no text, which is of no subject.
    fn probabilities(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<Vec<f64>, AbsentReason> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let encoder = loaded(encoder).map_err(AbsentReason::Failed)?;
        let head = fitting(self.head, encoder)
            .ok_or_else(|| AbsentReason::Failed("no domain head fits the loaded encoder".to_owned()))?;
        let encoded = pass.encode(encoder, text).map_err(AbsentReason::Failed)?;
        Ok(average(head, &encoded.windows, text))
    }
}

impl Emitted {
    fn judge(&self, probabilities: &[f64], threshold: f64) -> Observation {
        if self.classes.is_empty() {
            let unknown = format!("the domain head knows no category of `{}`", self.key.name());
            return Observation::Absent(AbsentReason::Failed(unknown));
        }
        let of = |class: &usize| probabilities.get(*class).copied();
        let sum = self.classes.iter().filter_map(of).reduce(|sum, p| sum + p).map(|sum| sum.min(1.0));
        match sum {
            Some(sum) if sum >= threshold && self.may_match(probabilities) => {
                Observation::Matched { confidence: sum, raw: Some(sum) }
            }
            raw => Observation::Unmatched { raw },
        }
    }

    /// False when the head is sure of a class that is none of these.
    fn may_match(&self, probabilities: &[f64]) -> bool {
        let first = probabilities.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
        normalised_entropy(probabilities) >= SURE_ENTROPY
            || first.is_some_and(|(class, _)| self.classes.contains(&class))
    }
}

fn class_of(category: &str, labels: &[String]) -> Option<usize> {
    let plain = |name: &str| name.trim().to_lowercase().replace(['_', '-'], " ");
    labels.iter().position(|label| plain(label) == plain(category))
}

/// The head, if it was trained on this very encoder: another one's vectors mean nothing to it.
pub(crate) fn fitting(head: Option<&'static Head>, encoder: &dyn TextEncoder) -> Option<&'static Head> {
    head.filter(|head| head.encoder_digest() == encoder.digest())
}

/// The head's probabilities, averaged over the windows of a text. A head that is less sure outside of English is so where the
/// text's language is told.
pub(crate) fn average(head: &Head, windows: &[Vec<f32>], text: &str) -> Vec<f64> {
    let elsewhere = head.card().temperature_elsewhere.is_some()
        && language_of(text).is_some_and(|language| language != "en");
    let mut sum = vec![0.0; head.labels().len()];
    for window in windows {
        let probabilities =
            if elsewhere { head.probabilities_elsewhere(window) } else { head.probabilities(window) };
        sum.iter_mut().zip(probabilities).for_each(|(total, p)| *total += f64::from(p));
    }
    sum.iter().map(|total| total / windows.len().max(1) as f64).collect()
}

/// Entropy over its greatest possible value, in 0..=1.
fn normalised_entropy(probabilities: &[f64]) -> f64 {
    let entropy: f64 = probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
    let greatest = (probabilities.len() as f64).ln();
    if greatest > 0.0 { entropy / greatest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{WordBag, head_of_words};
    use chorus_spec::{DomainSignal, Place, Signal};

    fn rule(name: &str, categories: &[&str]) -> Signal {
        let mmlu_categories = categories.iter().map(|c| (*c).to_owned()).collect();
        let kind = SignalKind::Domain(DomainSignal { mmlu_categories, model_scores: Vec::new() });
        Signal { name: name.to_owned(), description: String::new(), kind, place: Place::default() }
    }

    fn observe(signals: Vec<Signal>, encoder: Option<&dyn TextEncoder>, text: &str) -> Evidence {
        let recipe = Recipe { signals, ..Recipe::default() };
        let head = head_of_words(&[("math", "theorem"), ("law", "tenant"), ("computer science", "compiler")]);
        let mut evidence = Evidence::default();
        Domains::prepare(&recipe, 0.5, Some(head)).observe(
            encoder,
            text,
            &mut SharedPass::new(),
            &mut evidence,
        );
        evidence
    }

    fn of<'e>(evidence: &'e Evidence, name: &str) -> &'e Observation {
        evidence.get(&SignalKey::new(Family::Domain, name)).unwrap()
    }

    fn judge(classes: &[usize], probabilities: &[f64], threshold: f64) -> Observation {
        let classes = classes.iter().copied().collect();
        Emitted { key: SignalKey::new(Family::Domain, "rule"), classes }.judge(probabilities, threshold)
    }

    #[test]
    fn d12_no_class_gets_another_ones_complement() {
        assert_eq!(judge(&[1], &[0.40, 0.35, 0.25], 0.6), Observation::Unmatched { raw: Some(0.35) });
    }

    #[test]
    fn a_rule_is_as_likely_as_its_categories_together() {
        let spread = [0.30, 0.25, 0.25, 0.20];
        assert_eq!(judge(&[0], &spread, 0.5), Observation::Unmatched { raw: Some(0.30) });
        assert_eq!(judge(&[1, 2], &spread, 0.5), Observation::Matched { confidence: 0.5, raw: Some(0.5) });
        assert_eq!(judge(&[1, 1, 3], &spread, 0.5), Observation::Unmatched { raw: Some(0.45) });
        // Rounding never makes a probability of more than 1.
        let tenths = [0.1; 10];
        assert!(matches!(judge(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &tenths, 0.5),
            Observation::Matched { confidence, .. } if confidence <= 1.0));
        assert_eq!(judge(&[0, 1], &[], 0.5), Observation::Unmatched { raw: None });
    }

    #[test]
    fn entropy_decides_whether_several_names_match() {
        let matches = |classes: &[usize], probabilities: &[f64], threshold| {
            matches!(judge(classes, probabilities, threshold), Observation::Matched { .. })
        };
        // Entropy of (.9, .1, 0, 0) over ln 4 is .23: only what covers the first class, alone or with others.
        let sure = [0.9, 0.1, 0.0, 0.0];
        assert!(matches(&[0], &sure, 0.05) && matches(&[0, 3], &sure, 0.05));
        assert!(!matches(&[1], &sure, 0.05) && !matches(&[1, 2, 3], &sure, 0.05));
        // Of (.5, .45, .05, 0) it is .62: every name that reaches the threshold.
        let unsure = [0.5, 0.45, 0.05, 0.0];
        assert!(matches(&[0], &unsure, 0.4) && matches(&[1], &unsure, 0.4) && matches(&[1, 2], &unsure, 0.5));
        assert!((normalised_entropy(&[0.25; 4]) - 1.0).abs() < 1e-12);
        assert_eq!(normalised_entropy(&[]), 0.0);
    }

    #[test]
    fn rules_and_their_categories_are_emitted() {
        let signals =
            vec![rule("research", &["math", "Computer_Science"]), rule("law", &[]), rule("cooking", &[])];
        let evidence = observe(signals, Some(&WordBag), "theorem");
        let Observation::Matched { confidence, raw } = of(&evidence, "research") else {
            panic!("{evidence:?}");
        };
        assert!(*confidence > 0.9 && raw == &Some(*confidence));
        assert!(matches!(of(&evidence, "math"), Observation::Matched { .. }));
        assert!(matches!(of(&evidence, "Computer_Science"), Observation::Unmatched { raw: Some(_) }));
        assert!(matches!(of(&evidence, "law"), Observation::Unmatched { raw: Some(_) }));
        assert!(matches!(of(&evidence, "cooking"), Observation::Absent(AbsentReason::Failed(_))));
    }

    #[test]
    fn d02_batch_equals_single_for_empty_repeated_and_long_texts() {
        let long = "tenant ".repeat(4000);
        for text in ["theorem", "", "tenant", "theorem", &long] {
            let one = observe(vec![rule("math", &[]), rule("law", &[])], Some(&WordBag), text);
            assert_eq!(one, observe(vec![rule("math", &[]), rule("law", &[])], Some(&WordBag), text));
            let want = text.starts_with("tenant");
            assert_eq!(matches!(of(&one, "law"), Observation::Matched { .. }), want, "{text:.10}");
        }
    }

    #[test]
    fn without_an_encoder_the_domain_is_unknown() {
        let evidence = observe(vec![rule("math", &[])], None, "theorem");
        assert!(matches!(of(&evidence, "math"), Observation::Absent(AbsentReason::Failed(_))));
        let other = observe(vec![rule("math", &[])], Some(&crate::fake::Broken), "theorem");
        assert!(matches!(of(&other, "math"), Observation::Absent(AbsentReason::Failed(_))));
    }
}
