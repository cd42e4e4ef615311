//! `domain`: the subject matter.
//!
//! *Measures:* the probability of each of the 14 MMLU-Pro categories, by a linear head over the encoder.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `complexity`
//! *Fails when:* no encoder or no head is loaded; the text is short and of no subject; the text is not English.
//! *Source:* contract §1.4 (`domains`); cases D12, D14.
//!
//! Probabilities are averaged over windows. When their normalised entropy is below 0.4 only the first class can match,
//! else every class at or above the threshold does. A rule matches by its best matching category, and both the rule's
//! name and its categories' names are emitted. Confidence is the probability of the reported class, never a complement
//! of another's (D12). **Invariant:** raw is the probability of the rule's likeliest category, matched or not.

use crate::doc::SignalDoc;
use crate::pass::SharedPass;
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, Recipe, SignalKey, SignalKind};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Domain,
    measures: "the probability of each of the 14 MMLU-Pro categories, by a linear head over the encoder.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder or no head is loaded; the text is short and of no subject; the text is not English.",
    source: "contract §1.4 (`domains`); cases D12, D14.",
};

/// Normalised entropy below which only the first class can match. Source: contract §1.4 (`domains`).
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
    /// Places of its categories among the head's labels.
    classes: Vec<usize>,
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
        let encoder = encoder.ok_or_else(crate::extractor::no_encoder)?;
        let head = fitting(self.head, encoder)
            .ok_or_else(|| AbsentReason::Failed("no domain head fits the loaded encoder".to_owned()))?;
        let encoded = pass.encode(encoder, text).map_err(AbsentReason::Failed)?;
        Ok(average(head, &encoded.windows))
    }
}

impl Emitted {
    fn judge(&self, probabilities: &[f64], threshold: f64) -> Observation {
        if self.classes.is_empty() {
            let unknown = format!("the domain head knows no category of `{}`", self.key.name);
            return Observation::Absent(AbsentReason::Failed(unknown));
        }
        let matching = matching(probabilities, threshold);
        let of = |class: &usize| probabilities.get(*class).copied();
        let raw = self.classes.iter().filter_map(of).reduce(f64::max);
        let matched =
            self.classes.iter().filter(|class| matching.contains(class)).filter_map(of).reduce(f64::max);
        match matched {
            Some(confidence) => Observation::Matched { confidence: confidence.clamp(0.0, 1.0), raw },
            None => Observation::Unmatched { raw },
        }
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

/// The head's probabilities, averaged over windows.
pub(crate) fn average(head: &Head, windows: &[Vec<f32>]) -> Vec<f64> {
    let mut sum = vec![0.0; head.labels().len()];
    for window in windows {
        sum.iter_mut().zip(head.probabilities(window)).for_each(|(total, p)| *total += f64::from(p));
    }
    sum.iter().map(|total| total / windows.len().max(1) as f64).collect()
}

/// The classes that match, by their places.
fn matching(probabilities: &[f64], threshold: f64) -> Vec<usize> {
    let passing = probabilities.iter().enumerate().filter(|(_, p)| **p >= threshold);
    if normalised_entropy(probabilities) < SURE_ENTROPY {
        passing.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(class, _)| class).into_iter().collect()
    } else {
        passing.map(|(class, _)| class).collect()
    }
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

    #[test]
    fn d12_no_class_gets_another_ones_complement() {
        assert_eq!(matching(&[0.40, 0.35, 0.25], 0.6), Vec::<usize>::new());
        let emitted = Emitted { key: SignalKey::new(Family::Domain, "safe"), classes: vec![1] };
        assert_eq!(emitted.judge(&[0.40, 0.35, 0.25], 0.6), Observation::Unmatched { raw: Some(0.35) });
    }

    #[test]
    fn entropy_decides_whether_several_classes_match() {
        // Entropy of (.9, .1, 0, 0) over ln 4 is .23: only the first; of (.5, .45, .05, 0) it is .62: both.
        assert_eq!(matching(&[0.9, 0.1, 0.0, 0.0], 0.05), [0]);
        assert_eq!(matching(&[0.5, 0.45, 0.05, 0.0], 0.4), [0, 1]);
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
