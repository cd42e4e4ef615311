//! `modality`: whether text, an image or both are wanted.
//!
//! *Measures:* whether text (`AR`), an image (`DIFFUSION`) or both (`BOTH`) are wanted, by words or by a linear head.
//! *Inputs:* the last user message; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass, shared with `domain` and `complexity`; some tens of microseconds by words alone
//! *Fails when:* no encoder or no head is loaded, unless the method is `keyword`; the wish is only implied.
//! *Source:* contract §1.4 (`modality`), Appendix A (`ModalityDetectionConfig`).
//!
//! `global.model_catalog.modules.modality_detector.method` chooses. `keyword` reads words of fourteen languages; words that
//! say nothing are a wish for text. `classifier` takes the head's most probable label; where that is not sure, words outrank
//! it. `hybrid` takes words, and the head where they say nothing and it is sure. The head knows English best, the words are as
//! good in every language. A text about images wants text: to describe one, to learn to draw, or to write code that plots.
//! Confidence is the label's probability by the head, 1 by words. **Invariant:** exactly one of the three labels holds, or all
//! are absent.

use crate::doc::SignalDoc;
use crate::modality_words::{self, Wish};
use crate::pass::SharedPass;
use crate::subject::Subject;
use crate::worded::Worded;
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, ModalityMethod, ModalitySignal, Recipe, SignalKey, SignalKind};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Modality,
    measures: "whether text (`AR`), an image (`DIFFUSION`) or both (`BOTH`) are wanted, by words or by a linear head.",
    inputs: "the last user message; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder or no head is loaded, unless the method is `keyword`; the wish is only implied.",
    source: "contract §1.4 (`modality`), Appendix A (`ModalityDetectionConfig`).",
};

/// The head is sure from this probability: the contract has a `confidence_threshold` without a default (Appendix A,
/// `ModalityDetectionConfig`); this is that of `fact_check`.
const SURE: f64 = 0.6;

/// Every label, text first: of two equally probable ones the first is taken.
const LABELS: [ModalitySignal; 3] = [ModalitySignal::Text, ModalitySignal::Image, ModalitySignal::Both];

/// All modality rules of a recipe.
#[derive(Debug)]
pub(crate) struct Modalities {
    rules: Vec<(SignalKey, ModalitySignal)>,
    method: ModalityMethod,
    head: Worded,
}

/// What is wanted.
struct Wanted {
    label: ModalitySignal,
    confidence: f64,
    /// The head's probability of every label, in their order; none by words.
    probabilities: Option<[f64; 3]>,
}

impl Modalities {
    pub(crate) fn prepare(recipe: &Recipe, method: ModalityMethod, head: Option<&'static Head>) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Modality(rule) => Some((SignalKey::new(Family::Modality, &signal.name), *rule)),
            _ => None,
        });
        Self { rules: rules.collect(), method, head: Worded { name: "modality", head } }
    }

    /// What every rule says of a request.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        subject: &Subject<'_>,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let wanted = self.wanted(encoder, subject.task(), pass);
        for (key, rule) in &self.rules {
            let observation = match &wanted {
                Ok(wanted) => wanted.judge(*rule),
                Err(reason) => Observation::Absent(reason.clone()),
            };
            evidence.insert(key.clone(), observation);
        }
    }

    fn wanted(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<Wanted, AbsentReason> {
        // Nothing said asks for no image.
        if text.trim().is_empty() {
            return Ok(Wanted::by_words(Wish::Text));
        }
        match (self.method, modality_words::wish(text)) {
            (ModalityMethod::Keyword, wish) => Ok(Wanted::by_words(wish.unwrap_or(Wish::Text))),
            (ModalityMethod::Hybrid, Some(wish)) => Ok(Wanted::by_words(wish)),
            (ModalityMethod::Hybrid, None) => {
                let found = self.by_head(encoder, text, pass)?;
                Ok(if found.confidence < SURE { found.as_text() } else { found })
            }
            (ModalityMethod::Classifier, wish) => {
                let found = self.by_head(encoder, text, pass)?;
                Ok(wish.filter(|_| found.confidence < SURE).map_or(found, Wanted::by_words))
            }
        }
    }

    fn by_head(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<Wanted, AbsentReason> {
        let found = self.head.probabilities(encoder, text, pass)?;
        let probabilities = LABELS.map(|label| found.of(name(label)));
        // The last of equal maxima is what `max_by` takes: text is looked at last.
        let best = LABELS.into_iter().zip(probabilities).rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let (label, confidence) = best.unwrap_or((ModalitySignal::Text, 0.0));
        Ok(Wanted { label, confidence, probabilities: Some(probabilities) })
    }
}

impl Wanted {
    fn by_words(wish: Wish) -> Self {
        let label = match wish {
            Wish::Text => ModalitySignal::Text,
            Wish::Image => ModalitySignal::Image,
            Wish::Both => ModalitySignal::Both,
        };
        Self { label, confidence: 1.0, probabilities: None }
    }

    /// Text all the same, with the probability that the head gives it.
    fn as_text(&self) -> Self {
        let [text, _, _] = self.probabilities.unwrap_or_default();
        Self { label: ModalitySignal::Text, confidence: text, probabilities: self.probabilities }
    }

    fn judge(&self, rule: ModalitySignal) -> Observation {
        let labels = LABELS.into_iter().zip(self.probabilities.into_iter().flatten());
        let raw = labels.into_iter().find(|(label, _)| *label == rule).map(|(_, probability)| probability);
        if rule == self.label {
            Observation::Matched { confidence: self.confidence, raw }
        } else {
            Observation::Unmatched { raw }
        }
    }
}

/// The head's label for a rule.
fn name(rule: ModalitySignal) -> &'static str {
    match rule {
        ModalitySignal::Text => "AR",
        ModalitySignal::Image => "DIFFUSION",
        ModalitySignal::Both => "BOTH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag, signal, worded_head};
    use chorus_wire::{ChatRequest, Message, Role};

    fn observe(method: ModalityMethod, text: &str, encoder: Option<&dyn TextEncoder>) -> Evidence {
        let signals = LABELS.map(|label| signal(name(label), SignalKind::Modality(label))).to_vec();
        let recipe = Recipe { signals, ..Recipe::default() };
        let head = worded_head(&[("AR", "explain"), ("DIFFUSION", "mural"), ("BOTH", "illustrated")]);
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        let mut evidence = Evidence::default();
        Modalities::prepare(&recipe, method, Some(head)).observe(
            encoder,
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        evidence
    }

    fn matched(evidence: &Evidence) -> Vec<(&str, f64)> {
        let holding = evidence.iter().filter_map(|(key, o)| match o {
            Observation::Matched { confidence, .. } => Some((key.name(), *confidence)),
            _ => None,
        });
        holding.collect()
    }

    #[test]
    fn each_method_tells_one_label() {
        use ModalityMethod::{Classifier, Hybrid, Keyword};
        for (method, text, want) in [
            (Classifier, "mural", "DIFFUSION"),
            (Classifier, "explain", "AR"),
            (Classifier, "illustrated", "BOTH"),
            (Classifier, "", "AR"),
            (Keyword, "draw a fox", "DIFFUSION"),
            (Keyword, "mural", "AR"),
            (Hybrid, "draw a fox", "DIFFUSION"),
            (Hybrid, "mural", "DIFFUSION"),
            (Hybrid, "neither here nor there", "AR"),
            // The head is not sure: words outrank it.
            (Classifier, "a mural, then draw a fox in the snow beside the barn", "DIFFUSION"),
        ] {
            let evidence = observe(method, text, Some(&WordBag));
            assert_eq!(evidence.iter().count(), 3);
            let found: Vec<&str> = matched(&evidence).into_iter().map(|(label, _)| label).collect();
            assert_eq!(found, [want], "{method:?} {text}");
        }
    }

    #[test]
    fn words_need_no_encoder_and_the_head_does() {
        let encoders: [Option<&dyn TextEncoder>; 2] = [None, Some(&Broken)];
        for encoder in encoders {
            assert_eq!(
                matched(&observe(ModalityMethod::Keyword, "paint a fox", encoder)),
                [("DIFFUSION", 1.0)]
            );
            let evidence = observe(ModalityMethod::Classifier, "paint a fox", encoder);
            assert_eq!(evidence.iter().filter(|(_, o)| matches!(o, Observation::Absent(_))).count(), 3);
            assert!(matches!(
                observe(ModalityMethod::Hybrid, "fine weather", encoder).iter().next(),
                Some((_, Observation::Absent(_)))
            ));
        }
    }

    #[test]
    fn raw_is_the_heads_probability() {
        let evidence = observe(ModalityMethod::Classifier, "mural", Some(&WordBag));
        let raws: Vec<f64> = evidence
            .iter()
            .filter_map(|(_, o)| match o {
                Observation::Matched { raw, .. } | Observation::Unmatched { raw } => *raw,
                Observation::Absent(_) => None,
            })
            .collect();
        assert!((raws.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{raws:?}");
    }
}
