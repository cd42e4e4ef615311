//! `fact_check`: whether the answer will state facts that have to be checked.
//!
//! *Measures:* the probability that an answer states facts, by a linear head over the encoder and over words.
//! *Inputs:* the last user message; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass, shared with `domain` and `complexity`
//! *Fails when:* no encoder or no head is loaded; facts are asked for in the middle of a task of writing.
//! *Source:* contract §1.4 (`fact_check`); case D12.
//!
//! A question of knowledge, a claim to confirm, a dose, a law, a figure, a request for sources need checking; what is made
//! up, reckoned, translated, programmed or only said does not. `needs_fact_check` matches when its probability reaches the
//! threshold, `no_fact_check_needed` when it does not: a policy that names either always knows which. Confidence is the
//! label's own probability (D12). **Invariant:** exactly one of the two labels holds, or both are absent; raw is the label's
//! probability.

use crate::doc::SignalDoc;
use crate::pass::SharedPass;
use crate::subject::Subject;
use crate::worded::Worded;
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{Evidence, Observation};
use chorus_spec::{FactCheckSignal, Family, Recipe, SignalKey, SignalKind};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::FactCheck,
    measures: "the probability that an answer states facts, by a linear head over the encoder and over words.",
    inputs: "the last user message; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder or no head is loaded; facts are asked for in the middle of a task of writing.",
    source: "contract §1.4 (`fact_check`); case D12.",
};

/// The head's label for a text whose answer states facts; the other one is its opposite.
const NEEDED: &str = "needs_fact_check";

/// All fact check rules of a recipe.
#[derive(Debug)]
pub(crate) struct FactChecks {
    rules: Vec<(SignalKey, FactCheckSignal)>,
    threshold: f64,
    head: Worded,
}

impl FactChecks {
    pub(crate) fn prepare(recipe: &Recipe, threshold: f64, head: Option<&'static Head>) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::FactCheck(rule) => Some((SignalKey::new(Family::FactCheck, &signal.name), *rule)),
            _ => None,
        });
        Self { rules: rules.collect(), threshold, head: Worded { name: "fact check", head } }
    }

    /// What every rule says of a request.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        subject: &Subject<'_>,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let text = subject.task();
        // Nothing said is nothing to check.
        let needed = if text.trim().is_empty() {
            Ok(0.0)
        } else {
            self.head.probabilities(encoder, text, pass).map(|probabilities| probabilities.of(NEEDED))
        };
        for (key, rule) in &self.rules {
            let observation = match &needed {
                Ok(needed) => judge(*rule, *needed, self.threshold),
                Err(reason) => Observation::Absent(reason.clone()),
            };
            evidence.insert(key.clone(), observation);
        }
    }
}

fn judge(rule: FactCheckSignal, needed: f64, threshold: f64) -> Observation {
    let (holds, probability) = match rule {
        FactCheckSignal::Needed => (needed >= threshold, needed),
        FactCheckSignal::NotNeeded => (needed < threshold, 1.0 - needed),
    };
    if holds {
        Observation::Matched { confidence: probability, raw: Some(probability) }
    } else {
        Observation::Unmatched { raw: Some(probability) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag, signal, worded_head};
    use chorus_wire::{ChatRequest, Message, Role};

    const BOTH: [(&str, FactCheckSignal); 2] =
        [(NEEDED, FactCheckSignal::Needed), ("no_fact_check_needed", FactCheckSignal::NotNeeded)];

    fn observe(turns: &[(Role, &str)], encoder: Option<&dyn TextEncoder>) -> Evidence {
        let signals = BOTH.map(|(name, rule)| signal(name, SignalKind::FactCheck(rule))).to_vec();
        let recipe = Recipe { signals, ..Recipe::default() };
        let head = worded_head(&[("no_fact_check_needed", "poem"), (NEEDED, "capital")]);
        let messages = turns.iter().map(|(role, text)| Message::new(role.clone(), text)).collect();
        let request = ChatRequest::new("m", messages);
        let mut evidence = Evidence::default();
        FactChecks::prepare(&recipe, 0.6, Some(head)).observe(
            encoder,
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        evidence
    }

    fn matched(evidence: &Evidence) -> Vec<&str> {
        let holding = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
        holding.map(|(key, _)| key.name()).collect()
    }

    #[test]
    fn one_of_two_labels_holds() {
        for (text, want) in
            [("capital of Peru", NEEDED), ("a poem", "no_fact_check_needed"), (" ", "no_fact_check_needed")]
        {
            let evidence = observe(&[(Role::User, text)], Some(&WordBag));
            assert_eq!(evidence.iter().count(), 2);
            assert_eq!(matched(&evidence), [want], "{text}");
        }
    }

    #[test]
    fn d12_confidence_is_the_labels_own_probability() {
        // Below the threshold and above one half: not needed, with less than even confidence.
        let [needed, not_needed] = BOTH.map(|(_, rule)| judge(rule, 0.55, 0.6));
        assert_eq!(needed, Observation::Unmatched { raw: Some(0.55) });
        assert!(
            matches!(not_needed, Observation::Matched { confidence, .. } if (confidence - 0.45).abs() < 1e-9)
        );
        assert!(matches!(judge(FactCheckSignal::Needed, 0.6, 0.6), Observation::Matched { .. }));
    }

    #[test]
    fn d14_an_assent_is_judged_by_its_task() {
        let turns =
            [(Role::User, "capital of Peru"), (Role::Assistant, "Shall I look?"), (Role::User, "yes please")];
        assert_eq!(matched(&observe(&turns, Some(&WordBag))), [NEEDED]);
    }

    #[test]
    fn failures_are_absent_for_both_labels() {
        let encoders: [Option<&dyn TextEncoder>; 2] = [None, Some(&Broken)];
        for encoder in encoders {
            let evidence = observe(&[(Role::User, "capital of Peru")], encoder);
            assert_eq!(evidence.iter().filter(|(_, o)| matches!(o, Observation::Absent(_))).count(), 2);
        }
    }
}
