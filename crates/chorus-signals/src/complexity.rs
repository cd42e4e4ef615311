//! `complexity`: how hard the question is.
//!
//! *Measures:* whether the text is nearer to the hard examples or to the easy ones, with a trained head as a prior.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `domain`
//! *Fails when:* no encoder is loaded or it fails; hard questions are written in easy words.
//! *Source:* contract §1.4 (`complexity`); cases D13, D14.
//!
//! Margin = score(hard) − score(easy), both as in `embedding`: the contract's formula. The head, which sees words beside the
//! encoder's vector, adds two things. Where it finds the text likelier hard than easy, the margin moves towards hard by its
//! prior P(hard) − P(easy) times the threshold: it can settle what the examples leave open, and never makes a text hard to
//! which they are neutral. And where P(easy) is below the rule's `easy_certainty`, the margin is not below minus the
//! threshold: few examples are near to an expert's question, so the lowest tier needs both to agree, and what is unknown is
//! in the middle (D13). A rule without examples has the prior alone for its margin. Above the threshold `name:hard`, below
//! minus the threshold `name:easy`, else `name:medium`; an empty text is medium. Confidence is the logistic of four times the
//! distance to the label's edge. The composer is the policy's. **Invariant:** exactly one of the three labels matches, or all
//! are absent; raw is the margin.

use crate::bank::Bank;
use crate::doc::SignalDoc;
use crate::pass::{SharedPass, loaded};
use crate::predicate::confidence;
use crate::worded::Worded;
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{ComplexitySignal, Family, PrototypeScoring, SignalKey};
use std::sync::OnceLock;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Complexity,
    measures: "whether the text is nearer to the hard examples or to the easy ones, with a trained head as a prior.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; hard questions are written in easy words.",
    source: "contract §1.4 (`complexity`); cases D13, D14.",
};

/// A complexity rule.
#[derive(Debug)]
pub(crate) struct Complexity {
    name: String,
    signal: ComplexitySignal,
    scoring: PrototypeScoring,
    head: Worded,
    banks: OnceLock<Result<Banks, String>>,
}

#[derive(Debug)]
struct Banks {
    hard: Bank,
    easy: Bank,
}

impl Complexity {
    pub(crate) fn prepare(
        name: &str,
        signal: &ComplexitySignal,
        scoring: PrototypeScoring,
        head: Option<&'static Head>,
    ) -> Self {
        let head = Worded { name: "complexity", head };
        Self { name: name.to_owned(), signal: signal.clone(), scoring, head, banks: OnceLock::new() }
    }

    /// Encodes the examples if they are not encoded yet.
    pub(crate) fn warm(&self, encoder: &dyn TextEncoder) {
        let _ready = self.banks(encoder);
    }

    /// What the rule says of a text, for each label.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let margin = self.margin(encoder, text, pass);
        for label in ["hard", "medium", "easy"] {
            let key = SignalKey::new(Family::Complexity, format!("{}:{label}", self.name));
            let observation = match &margin {
                Ok(margin) => judge(label, *margin, self.signal.threshold),
                Err(reason) => Observation::Absent(AbsentReason::Failed(reason.clone())),
            };
            evidence.insert(key, observation);
        }
    }

    fn margin(
        &self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<f64, String> {
        if text.trim().is_empty() {
            return Ok(0.0);
        }
        let encoder = loaded(encoder)?;
        let encoded = pass.encode(encoder, text)?;
        let banks = self.banks(encoder)?;
        let (hard, easy) = (banks.hard.score(&encoded.windows), banks.easy.score(&encoded.windows));
        let prior = self.prior(encoder, text, pass);
        match (hard, easy, prior) {
            (None, None, None) => {
                Err("the rule has no example, and no head fits the loaded encoder".to_owned())
            }
            (None, None, Some(prior)) => Ok(prior.margin()),
            (hard, easy, prior) => {
                let margin = hard.unwrap_or_default() - easy.unwrap_or_default();
                Ok(prior.map_or(margin, |prior| self.weigh(margin, prior)))
            }
        }
    }

    /// What the head says of a text; `None` without a head that fits.
    fn prior(&self, encoder: &dyn TextEncoder, text: &str, pass: &mut SharedPass) -> Option<Prior> {
        let probabilities = self.head.probabilities(Some(encoder), text, pass).ok()?;
        Some(Prior { easy: probabilities.of("easy"), hard: probabilities.of("hard") })
    }

    /// The examples' margin with the head's opinion weighed in.
    fn weigh(&self, margin: f64, prior: Prior) -> f64 {
        let edge = self.signal.threshold.abs();
        let leaning = margin + edge * prior.margin().max(0.0);
        if prior.easy >= self.signal.easy_certainty { leaning } else { leaning.max(-edge) }
    }

    fn banks(&self, encoder: &dyn TextEncoder) -> Result<&Banks, String> {
        let build = || {
            Ok(Banks {
                hard: Bank::prototypes(encoder, &self.signal.hard, &self.scoring)?,
                easy: Bank::prototypes(encoder, &self.signal.easy, &self.scoring)?,
            })
        };
        self.banks.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

/// The head's opinion of a text.
#[derive(Debug, Clone, Copy)]
struct Prior {
    easy: f64,
    hard: f64,
}

impl Prior {
    fn margin(self) -> f64 {
        self.hard - self.easy
    }
}

fn judge(label: &str, margin: f64, threshold: f64) -> Observation {
    let (holds, distance) = match label {
        "hard" => (margin > threshold, margin - threshold),
        "easy" => (margin < -threshold, -threshold - margin),
        _ => ((-threshold..=threshold).contains(&margin), threshold - margin.abs()),
    };
    if holds {
        Observation::Matched { confidence: confidence(distance), raw: Some(margin) }
    } else {
        Observation::Unmatched { raw: Some(margin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag, worded_head};

    fn observe(
        examples: (&[&str], &[&str]),
        head: Option<&'static Head>,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
    ) -> Evidence {
        let owned = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
        let (hard, easy) = (owned(examples.0), owned(examples.1));
        let signal = ComplexitySignal { threshold: 0.1, easy_certainty: 0.5, hard, easy, composer: None };
        let mut evidence = Evidence::default();
        Complexity::prepare("needs", &signal, PrototypeScoring::default(), head).observe(
            encoder,
            text,
            &mut SharedPass::new(),
            &mut evidence,
        );
        evidence
    }

    fn label(evidence: &Evidence) -> Option<String> {
        let mut matched = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
        let only = matched.next().map(|(key, _)| key.name().to_owned());
        assert!(matched.next().is_none());
        only
    }

    const EXAMPLES: (&[&str], &[&str]) = (&["prove the theorem rigorously"], &["brief definition please"]);

    #[test]
    fn three_labels_of_which_one_matches() {
        for (text, want) in [
            ("prove the theorem", "needs:hard"),
            ("brief definition", "needs:easy"),
            ("something else", "needs:medium"),
            ("", "needs:medium"),
        ] {
            let evidence = observe(EXAMPLES, None, Some(&WordBag), text);
            assert_eq!(evidence.iter().count(), 3);
            assert_eq!(label(&evidence).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn d13_the_prior_keeps_a_hard_text_out_of_the_lowest_tier() {
        let head = worded_head(&[("easy", "definition"), ("hard", "cyclic")]);
        // One easy word of twelve: the examples alone say easy, the head knows better.
        let text = "brief show that each finite group of order fifteen is always cyclic";
        assert_eq!(label(&observe(EXAMPLES, None, Some(&WordBag), text)).as_deref(), Some("needs:easy"));
        assert_eq!(
            label(&observe(EXAMPLES, Some(head), Some(&WordBag), text)).as_deref(),
            Some("needs:medium")
        );
        // However near the easy examples are, the lowest tier needs the head to agree.
        let text = "brief definition please cyclic cyclic cyclic";
        assert_eq!(label(&observe(EXAMPLES, None, Some(&WordBag), text)).as_deref(), Some("needs:easy"));
        let head_says_hard = observe(EXAMPLES, Some(head), Some(&WordBag), text);
        assert_eq!(label(&head_says_hard).as_deref(), Some("needs:medium"));
        let hard = head_says_hard.get(&SignalKey::new(Family::Complexity, "needs:hard"));
        assert_eq!(hard, Some(&Observation::Unmatched { raw: Some(-0.1) }));
        // The prior alone never makes a text hard where the examples are neutral.
        assert_eq!(
            label(&observe(EXAMPLES, Some(head), Some(&WordBag), "cyclic")).as_deref(),
            Some("needs:medium")
        );
        assert_eq!(
            label(&observe((&[], &[]), Some(head), Some(&WordBag), "cyclic")).as_deref(),
            Some("needs:hard")
        );
    }

    #[test]
    fn failures_are_absent_for_all_labels() {
        let cases: [(_, Option<&dyn TextEncoder>); 3] =
            [(EXAMPLES, None), (EXAMPLES, Some(&Broken)), ((&[], &[]), Some(&WordBag))];
        for (examples, encoder) in cases {
            let evidence = observe(examples, None, encoder, "x");
            assert_eq!(evidence.iter().filter(|(_, o)| matches!(o, Observation::Absent(_))).count(), 3);
        }
    }
}
