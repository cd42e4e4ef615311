//! What a rule of `type: llm` wants to know: which of its labels fits the request.
//!
//! A plain value: the engine puts it to the model, because calls are made, bounded and counted there. It knows no
//! prompt and no answer's form. **Invariant:** an answer settles every label of the rule.

use crate::subject::Subject;
use chorus_policy::{AbsentReason, Ask, Evidence, Observation};
use chorus_spec::{ClassifierKind, Family, ModelId, Recipe, SignalKey, SignalKind};

/// What one rule wants to know of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The rule.
    pub rule: String,
    /// Who is asked.
    pub model: ModelId,
    /// What the operator says about the labels; may be empty.
    pub instructions: String,
    /// The labels; one of them is the answer.
    pub labels: Vec<String>,
    /// The text that is to be labelled; never empty.
    pub text: String,
}

impl Question {
    /// The questions of a recipe's rules, without a text.
    pub(crate) fn of(recipe: &Recipe) -> Vec<Self> {
        let question = |name: &String, kind: &SignalKind| {
            let SignalKind::Classifier(rule) = kind else { return None };
            let ClassifierKind::Llm { model, instructions } = &rule.kind else { return None };
            Some(Self {
                rule: name.clone(),
                model: model.clone(),
                instructions: instructions.clone(),
                labels: rule.labels.clone(),
                text: String::new(),
            })
        };
        recipe.signals.iter().filter_map(|signal| question(&signal.name, &signal.kind)).collect()
    }

    /// The question about a request, where the user wrote anything.
    pub(crate) fn about(&self, subject: &Subject<'_>) -> Option<Self> {
        let text = subject.task();
        (!text.trim().is_empty()).then(|| Self { text: text.to_owned(), ..self.clone() })
    }

    /// Whether this is what an ask asks.
    #[must_use]
    pub fn answers(&self, ask: &Ask) -> bool {
        ask.family == Family::Classifier && *ask.rule == *self.rule
    }

    /// Puts the answer into the evidence: the label that the model chose, or why there is none. The chosen label holds
    /// with confidence 1, as the contract has it for what is not measured; the others do not.
    pub fn observe(&self, answer: &Result<String, String>, evidence: &mut Evidence) {
        for label in &self.labels {
            let observation = match answer {
                Ok(chosen) if chosen == label => Observation::Matched { confidence: 1.0, raw: Some(1.0) },
                Ok(_) => Observation::Unmatched { raw: Some(0.0) },
                Err(why) => Observation::Absent(AbsentReason::Failed(why.clone())),
            };
            evidence
                .insert(SignalKey::new(Family::Classifier, format!("{}:{label}", self.rule)), observation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::signal;
    use chorus_spec::ClassifierSignal;
    use chorus_wire::{ChatRequest, Message, Role};

    fn recipe() -> Recipe {
        let kind = ClassifierKind::Llm { model: ModelId::new("helper"), instructions: "By area.".to_owned() };
        let labels = vec!["tax".to_owned(), "other".to_owned()];
        let rule = SignalKind::Classifier(ClassifierSignal { kind, labels });
        Recipe { signals: vec![signal("area", rule)], ..Recipe::default() }
    }

    #[test]
    fn an_answer_settles_every_label_and_a_failure_leaves_all_absent() {
        let asked = |text: &str| {
            let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
            Question::of(&recipe()).iter().find_map(|question| question.about(&Subject::of(&request)))
        };
        assert_eq!(asked("  "), None);
        let question = asked("what is VAT?").unwrap();
        assert_eq!((question.model.as_str(), question.text.as_str()), ("helper", "what is VAT?"));
        assert!(question.answers(&Ask::new(Family::Classifier, "area")));
        let mut evidence = Evidence::default();
        question.observe(&Ok("tax".to_owned()), &mut evidence);
        let of = |evidence: &Evidence, label: &str| {
            evidence.get(&SignalKey::new(Family::Classifier, label)).cloned().unwrap()
        };
        assert_eq!(of(&evidence, "area:tax"), Observation::Matched { confidence: 1.0, raw: Some(1.0) });
        assert_eq!(of(&evidence, "area:other"), Observation::Unmatched { raw: Some(0.0) });
        question.observe(&Err("it is down".to_owned()), &mut evidence);
        let absent = Observation::Absent(AbsentReason::Failed("it is down".to_owned()));
        assert_eq!((of(&evidence, "area:tax"), of(&evidence, "area:other")), (absent.clone(), absent));
    }
}
