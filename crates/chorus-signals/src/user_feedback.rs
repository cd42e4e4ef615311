//! `user_feedback`: what the user thinks of the answer before.
//!
//! *Measures:* the probability of each kind of feedback, by a linear head over the encoder and over words, and by phrases.
//! *Inputs:* the last user message, when the assistant had answered something before it.
//! *Cost:* 3, one encoder pass, shared with `embedding` and `reask`
//! *Fails when:* no encoder or no head is loaded; the feedback is irony, or hides in a long message about something else.
//! *Source:* contract §1.4 (`user_feedbacks`).
//!
//! The kinds are `satisfied`, `need_clarification`, `wrong_answer` and `want_different`; a fifth class of the head, never
//! emitted, is a message that says nothing of the answer. Before the first answer there is nothing to think of: every rule is
//! unmatched then, without a pass. Phrases of sixteen languages ("that is wrong", "je ne comprends pas") multiply the odds that
//! the head gives to their kind by a factor that was measured: so they decide where the head hesitates, as it does outside of
//! the encoder's languages, and yield where it is sure. A rule matches when its kind's probability reaches the threshold. **Invariant:** with a
//! threshold above one half at most one kind matches; raw is the kind's probability, none when there was no answer.

use crate::doc::SignalDoc;
use crate::feedback_words;
use crate::pass::SharedPass;
use crate::subject::Subject;
use crate::worded::Worded;
use chorus_infer::{Head, TextEncoder};
use chorus_policy::{Evidence, Observation};
use chorus_spec::{Family, Recipe, SignalKey, SignalKind, UserFeedbackSignal};
use chorus_wire::Role;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::UserFeedback,
    measures: "the probability of each kind of feedback, by a linear head over the encoder and over words, and by phrases.",
    inputs: "the last user message, when the assistant had answered something before it.",
    cost: 3,
    fails_when: "no encoder or no head is loaded; the feedback is irony, or hides in a long message about something else.",
    source: "contract §1.4 (`user_feedbacks`).",
};

/// All feedback rules of a recipe.
#[derive(Debug)]
pub(crate) struct Feedbacks {
    rules: Vec<(SignalKey, &'static str)>,
    threshold: f64,
    head: Worded,
}

impl Feedbacks {
    pub(crate) fn prepare(recipe: &Recipe, threshold: f64, head: Option<&'static Head>) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::UserFeedback(rule) => {
                Some((SignalKey::new(Family::UserFeedback, &signal.name), label(*rule)))
            }
            _ => None,
        });
        Self { rules: rules.collect(), threshold, head: Worded { name: "user feedback", head } }
    }

    /// What every rule says of a request.
    pub(crate) fn observe(
        &self,
        encoder: Option<&dyn TextEncoder>,
        subject: &Subject<'_>,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let text = subject.text();
        let judged = if text.trim().is_empty() || !was_answered(subject) {
            Ok(None)
        } else {
            let judged = self.head.probabilities(encoder, text, pass);
            let weigh = |labels: &[String], values: &mut [f32]| feedback_words::weigh(labels, values, text);
            judged.map(|probabilities| Some(probabilities.reweighed(weigh)))
        };
        for (key, label) in &self.rules {
            let observation = match &judged {
                Ok(None) => Observation::Unmatched { raw: None },
                Ok(Some(probabilities)) => judge(probabilities.of(label), self.threshold),
                Err(reason) => Observation::Absent(reason.clone()),
            };
            evidence.insert(key.clone(), observation);
        }
    }
}

/// Whether the assistant had said something before the last user message.
fn was_answered(subject: &Subject<'_>) -> bool {
    let messages = subject.messages();
    let last = messages.iter().rposition(|message| message.role == Role::User).unwrap_or_default();
    let before = messages.iter().take(last);
    before.into_iter().any(|message| message.role == Role::Assistant && !message.text.trim().is_empty())
}

/// The head's label for a rule.
fn label(rule: UserFeedbackSignal) -> &'static str {
    match rule {
        UserFeedbackSignal::Satisfied => "satisfied",
        UserFeedbackSignal::NeedClarification => "need_clarification",
        UserFeedbackSignal::WrongAnswer => "wrong_answer",
        UserFeedbackSignal::WantDifferent => "want_different",
    }
}

fn judge(probability: f64, threshold: f64) -> Observation {
    if probability >= threshold {
        Observation::Matched { confidence: probability, raw: Some(probability) }
    } else {
        Observation::Unmatched { raw: Some(probability) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag, signal, worded_head};
    use chorus_wire::{ChatRequest, Message};

    const KINDS: [UserFeedbackSignal; 4] = [
        UserFeedbackSignal::Satisfied,
        UserFeedbackSignal::NeedClarification,
        UserFeedbackSignal::WrongAnswer,
        UserFeedbackSignal::WantDifferent,
    ];

    fn observe(turns: &[(Role, &str)], encoder: Option<&dyn TextEncoder>) -> Evidence {
        let signals = KINDS.map(|kind| signal(label(kind), SignalKind::UserFeedback(kind))).to_vec();
        let recipe = Recipe { signals, ..Recipe::default() };
        let head = worded_head(&[
            ("none", "tower"),
            ("need_clarification", "unclear"),
            ("satisfied", "thanks"),
            ("want_different", "another"),
            ("wrong_answer", "wrong"),
        ]);
        let messages = turns.iter().map(|(role, text)| Message::new(role.clone(), text)).collect();
        let request = ChatRequest::new("m", messages);
        let mut evidence = Evidence::default();
        Feedbacks::prepare(&recipe, 0.7, Some(head)).observe(
            encoder,
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        evidence
    }

    fn after_an_answer(text: &str) -> Evidence {
        let turns = [(Role::User, "Capital of Peru?"), (Role::Assistant, "Quito."), (Role::User, text)];
        observe(&turns, Some(&WordBag))
    }

    fn matched(evidence: &Evidence) -> Vec<&str> {
        let holding = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
        holding.map(|(key, _)| key.name()).collect()
    }

    #[test]
    fn each_kind_is_told_and_the_rest_is_none() {
        for (text, want) in [
            ("wrong", Some("wrong_answer")),
            ("thanks", Some("satisfied")),
            ("unclear", Some("need_clarification")),
            ("another", Some("want_different")),
            ("tower", None),
            ("", None),
        ] {
            let evidence = after_an_answer(text);
            assert_eq!(evidence.iter().count(), 4);
            assert_eq!(matched(&evidence), want.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn phrases_decide_where_the_head_hesitates() {
        // The head knows none of these words: it gives every label the same.
        assert_eq!(matched(&after_an_answer("Das stimmt nicht.")), ["wrong_answer"]);
        assert_eq!(matched(&after_an_answer("没看懂")), ["need_clarification"]);
        // It knows this one, and is sure that it is no feedback.
        assert!(matched(&after_an_answer("merci tower tower tower")).is_empty());
    }

    #[test]
    fn without_an_answer_before_it_there_is_no_feedback() {
        let conversations: [&[(Role, &str)]; 4] = [
            &[(Role::User, "wrong")],
            &[(Role::System, "Answer briefly"), (Role::User, "wrong")],
            // A turn that only calls tools has said nothing yet.
            &[(Role::User, "Capital?"), (Role::Assistant, ""), (Role::Tool, "Lima"), (Role::User, "wrong")],
            // The answer to the message is not one before it.
            &[(Role::User, "wrong"), (Role::Assistant, "What is?")],
        ];
        for turns in conversations {
            let evidence = observe(turns, None);
            assert!(evidence.iter().all(|(_, o)| o == &Observation::Unmatched { raw: None }), "{turns:?}");
        }
    }

    #[test]
    fn failures_are_absent_for_every_kind() {
        let encoders: [Option<&dyn TextEncoder>; 2] = [None, Some(&Broken)];
        for encoder in encoders {
            let turns = [(Role::User, "Capital?"), (Role::Assistant, "Quito."), (Role::User, "wrong")];
            let evidence = observe(&turns, encoder);
            assert_eq!(evidence.iter().filter(|(_, o)| matches!(o, Observation::Absent(_))).count(), 4);
        }
    }
}
