//! `classifier`: a classifier of the operator's own.
//!
//! *Measures:* the probability of each label, by a linear head over the encoder that is read from a file, or the label that a model names.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `domain`; with `type: llm` a call to a model, asked for last
//! *Fails when:* no encoder is loaded or it fails; with `type: llm` the model fails, is late, is beyond the budget or names no label, and always in a dry run.
//! *Source:* contract §1.4 (`classifiers`); cases D20, D21.
//!
//! A rule emits `name:label` for each of its labels. A decision asks a label with a predicate over its probability, which
//! is raw; asked without one, a label holds from 0.5 on, with the probability for its confidence. The file is a head as `chorus lab train-head` writes it; it is looked for beside the
//! configuration. A head that lacks a label, or was trained on another encoder than the loaded one, is refused when
//! the configuration is loaded (D20). A model that is asked names one label of the closed set ([`Question`]); the engine
//! asks it, so a measure only says that nobody did. **Invariant:** every label of the rule is emitted, or all are absent.

mod question;

pub use question::Question;

use crate::doc::SignalDoc;
use crate::domain::average;
use crate::knowledge::Folders;
use crate::measure::{Look, Measure};
use crate::pass::loaded;
use chorus_infer::{Head, TextEncoder, lexical};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{ClassifierKind, ClassifierSignal, Family, SignalKey};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Classifier,
    measures: "the probability of each label, by a linear head over the encoder that is read from a file, or the label that a model names.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; with `type: llm` the model fails, is late, is beyond the budget or names no label, and always in a dry run.",
    source: "contract §1.4 (`classifiers`); cases D20, D21.",
};

/// Probability from which a label holds where no predicate is written: likelier than not.
const HOLDS: f64 = 0.5;

/// A classifier rule.
#[derive(Debug)]
pub(crate) struct Classifier {
    labels: Vec<Label>,
    /// `None` for a model that must be asked.
    head: Option<Head>,
}

#[derive(Debug)]
struct Label {
    key: SignalKey,
    /// Its place among the head's labels.
    class: usize,
}

impl Classifier {
    /// Reads the rule's head; the error is a sentence for people.
    pub(crate) fn prepare(
        name: &str,
        signal: &ClassifierSignal,
        encoder: Option<&dyn TextEncoder>,
        folders: &Folders,
    ) -> Result<Self, String> {
        let key = |label: &str| SignalKey::new(Family::Classifier, format!("{name}:{label}"));
        let ClassifierKind::Local { path } = &signal.kind else {
            let labels = signal.labels.iter().map(|label| Label { key: key(label), class: 0 });
            return Ok(Self { labels: labels.collect(), head: None });
        };
        let bytes = folders.read(path)?;
        let head = Head::parse(&bytes).map_err(|fault| format!("`{path}`: {fault}"))?;
        if encoder.is_some_and(|encoder| !fits(&head, encoder)) {
            return Err(format!("`{path}` was trained on another encoder than the loaded one"));
        }
        let label = |label: &String| {
            let class = head.labels().iter().position(|known| known == label);
            let class = class.ok_or_else(|| {
                format!("`{path}` has no label `{label}`; it has {}", head.labels().join(", "))
            })?;
            Ok(Label { key: key(label), class })
        };
        let labels = signal.labels.iter().map(label).collect::<Result<_, String>>()?;
        Ok(Self { labels, head: Some(head) })
    }

    /// One probability a class of the head; none when the user wrote no text, which is of no class.
    fn probabilities(&self, look: &mut Look<'_, '_>) -> Result<Vec<f64>, String> {
        let text = look.subject.task();
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let head = self.head.as_ref().ok_or("it asks a model, and here no model is called")?;
        let encoder = loaded(look.encoder)?;
        let encoded = look.pass.encode(encoder, text)?;
        if head.encoder_digest() == encoder.digest() {
            return Ok(average(head, &encoded.windows, text));
        }
        let probabilities = head.probabilities(&lexical::join(&encoded.mean, text));
        Ok(probabilities.into_iter().map(f64::from).collect())
    }
}

impl Measure for Classifier {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        let probabilities = self.probabilities(look);
        for label in &self.labels {
            let observation = match &probabilities {
                Ok(probabilities) => {
                    let p = probabilities.get(label.class).copied().unwrap_or_default();
                    judge(p)
                }
                Err(why) => Observation::Absent(AbsentReason::Failed(why.clone())),
            };
            evidence.insert(label.key.clone(), observation);
        }
    }
}

/// Whether a head was trained on that encoder, alone or with the text's words and letters beside its vector.
fn fits(head: &Head, encoder: &dyn TextEncoder) -> bool {
    head.encoder_digest() == encoder.digest() || head.encoder_digest() == lexical::digest(encoder.digest())
}

fn judge(probability: f64) -> Observation {
    let raw = Some(probability);
    if probability >= HOLDS {
        Observation::Matched { confidence: probability, raw }
    } else {
        Observation::Unmatched { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Broken, WordBag, head_of_words};
    use crate::subject::Subject;
    use chorus_spec::ModelId;
    use chorus_wire::{ChatRequest, Message, Role};

    fn local(labels: &[&str]) -> ClassifierSignal {
        let kind = ClassifierKind::Local { path: "heads/mood.safetensors".to_owned() };
        ClassifierSignal { kind, labels: labels.iter().map(|label| (*label).to_owned()).collect() }
    }

    fn folders() -> (tempfile::TempDir, Folders) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("heads")).unwrap();
        let head = head_of_words(&[("glad", "thanks"), ("cross", "useless")]);
        std::fs::write(root.path().join("heads/mood.safetensors"), head.to_bytes().unwrap()).unwrap();
        let folders = Folders { config: Some(root.path().join("deeper/still")), ..Folders::default() };
        (root, folders)
    }

    fn observe(classifier: &Classifier, text: &str, encoder: Option<&dyn TextEncoder>) -> Evidence {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        fake::measured(classifier, encoder, &Subject::of(&request))
    }

    fn of(evidence: &Evidence, name: &str) -> Observation {
        evidence.get(&SignalKey::new(Family::Classifier, name)).cloned().unwrap()
    }

    #[test]
    fn a_head_beside_the_configuration_gives_probabilities() {
        let (_root, folders) = folders();
        let mood = Classifier::prepare("mood", &local(&["cross", "glad"]), Some(&WordBag), &folders).unwrap();
        let evidence = observe(&mood, "utterly useless", Some(&WordBag));
        let p = |label: &str| match of(&evidence, label) {
            Observation::Matched { confidence, raw: Some(raw) } if confidence == raw && raw >= 0.5 => raw,
            Observation::Unmatched { raw: Some(raw) } if raw < 0.5 => raw,
            other => panic!("{other:?}"),
        };
        assert!(p("mood:cross") > 0.9 && (p("mood:cross") + p("mood:glad") - 1.0).abs() < 1e-6);
        for encoder in [None, Some(&Broken as &dyn TextEncoder)] {
            assert!(matches!(of(&observe(&mood, "x", encoder), "mood:glad"), Observation::Absent(_)));
        }
    }

    #[test]
    fn d20_what_does_not_fit_is_refused_at_load() {
        let (_root, folders) = folders();
        let refused = |signal: &ClassifierSignal, encoder: &dyn TextEncoder, folders: &Folders| {
            Classifier::prepare("mood", signal, Some(encoder), folders).unwrap_err()
        };
        assert!(refused(&local(&["sad"]), &WordBag, &folders).contains("no label `sad`; it has glad, cross"));
        assert!(refused(&local(&["glad"]), &Broken, &folders).contains("another encoder"));
        assert!(refused(&local(&["glad"]), &WordBag, &Folders::default()).contains("heads/mood.safetensors"));
    }

    #[test]
    fn a_model_that_nobody_asks_is_absent_and_no_text_needs_none() {
        let kind = ClassifierKind::Llm { model: ModelId::new("helper"), instructions: String::new() };
        let signal = ClassifierSignal { kind, labels: vec!["a".to_owned()] };
        let asked = Classifier::prepare("mood", &signal, None, &Folders::default()).unwrap();
        let absent = of(&observe(&asked, "x", Some(&WordBag)), "mood:a");
        assert!(
            matches!(absent, Observation::Absent(AbsentReason::Failed(why)) if why.contains("no model is called"))
        );
        assert_eq!(of(&observe(&asked, " ", None), "mood:a"), Observation::Unmatched { raw: Some(0.0) });
    }
}
