//! `preference`: which kind of wish the request is.
//!
//! *Measures:* nearness of the user's text to each rule's examples and description; the nearest rule wins.
//! *Inputs:* the last user message, all windows of it; the task it agrees to, if it only agrees.
//! *Cost:* 3, one encoder pass a text, shared with `embedding` and `domain`
//! *Fails when:* no encoder is loaded or it fails; two rules describe nearly the same wish.
//! *Source:* contract §1.4 (`preferences`).
//!
//! A rule's bank holds its examples and its description, as prototypes (see `embedding`). Rules compete: the nearest
//! one matches, if it reaches its own threshold (0.5 unless written); another never does. Confidence is the score.
//! **Invariant:** at most one rule matches; raw is the score, matched or not.

use crate::bank::Bank;
use crate::doc::SignalDoc;
use crate::measure::{Look, Measure};
use crate::pass::loaded;
use chorus_infer::TextEncoder;
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, PreferenceSignal, PrototypeScoring, Recipe, SignalKey, SignalKind};
use std::sync::OnceLock;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Preference,
    measures: "nearness of the user's text to each rule's examples and description; the nearest rule wins.",
    inputs: "the last user message, all windows of it; the task it agrees to, if it only agrees.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; two rules describe nearly the same wish.",
    source: "contract §1.4 (`preferences`).",
};

/// Least score of a rule that writes no threshold: the same as that of a soft match of `embedding`.
const DEFAULT_THRESHOLD: f64 = 0.5;

/// All preference rules of a recipe.
#[derive(Debug)]
pub(crate) struct Preferences {
    rules: Vec<Rule>,
    scoring: PrototypeScoring,
}

#[derive(Debug)]
struct Rule {
    key: SignalKey,
    threshold: f64,
    examples: Vec<String>,
    bank: OnceLock<Result<Bank, String>>,
}

impl Preferences {
    pub(crate) fn prepare(recipe: &Recipe, scoring: PrototypeScoring) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Preference(preference) => {
                Some(Rule::prepare(SignalKey::new(Family::Preference, &signal.name), preference))
            }
            _ => None,
        });
        Self { rules: rules.collect(), scoring }
    }

    /// One score a rule; none when the user wrote no text, which wishes nothing.
    fn scores(&self, look: &mut Look<'_, '_>) -> Result<Vec<f64>, String> {
        let text = look.subject.task();
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let encoder = loaded(look.encoder)?;
        let encoded = look.pass.encode(encoder, text)?;
        let score = |rule: &Rule| {
            let bank = rule.bank(encoder, &self.scoring)?;
            bank.score(&encoded.windows).ok_or_else(|| "a rule has no example".to_owned())
        };
        self.rules.iter().map(score).collect()
    }
}

impl Measure for Preferences {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        let scores = self.scores(look);
        let best = scores.iter().flatten().copied().reduce(f64::max);
        for (at, rule) in self.rules.iter().enumerate() {
            let observation = match &scores {
                Err(why) => Observation::Absent(AbsentReason::Failed(why.clone())),
                Ok(scores) => rule.judge(scores.get(at).copied(), best),
            };
            evidence.insert(rule.key.clone(), observation);
        }
    }

    fn warm(&self, encoder: &dyn TextEncoder) {
        for rule in &self.rules {
            let _ready = rule.bank(encoder, &self.scoring);
        }
    }
}

impl Rule {
    fn prepare(key: SignalKey, signal: &PreferenceSignal) -> Self {
        let described = Some(&signal.description).filter(|description| !description.trim().is_empty());
        let examples = signal.examples.iter().chain(described).cloned().collect();
        let threshold = signal.threshold.unwrap_or(DEFAULT_THRESHOLD);
        Self { key, threshold, examples, bank: OnceLock::new() }
    }

    fn bank(&self, encoder: &dyn TextEncoder, settings: &PrototypeScoring) -> Result<&Bank, String> {
        let build = || Bank::prototypes(encoder, &self.examples, settings);
        self.bank.get_or_init(build).as_ref().map_err(Clone::clone)
    }

    fn judge(&self, score: Option<f64>, best: Option<f64>) -> Observation {
        match score {
            Some(score) if score >= self.threshold && Some(score) == best => {
                Observation::Matched { confidence: score.clamp(0.0, 1.0), raw: Some(score) }
            }
            raw => Observation::Unmatched { raw },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, WordBag};
    use crate::subject::Subject;
    use chorus_wire::{ChatRequest, Message, Role};

    fn preferences() -> Preferences {
        let rule = |name: &str, description: &str, examples: &[&str]| {
            let examples = examples.iter().map(|text| (*text).to_owned()).collect();
            let preference =
                PreferenceSignal { description: description.to_owned(), examples, threshold: None };
            fake::signal(name, SignalKind::Preference(preference))
        };
        let signals = vec![
            rule("code", "write or repair a program", &["fix this function"]),
            rule("travel", "", &["plan a trip to the coast", "find a train for the trip"]),
        ];
        Preferences::prepare(&Recipe { signals, ..Recipe::default() }, PrototypeScoring::default())
    }

    fn observe(text: &str, encoder: Option<&dyn TextEncoder>) -> [Observation; 2] {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        let evidence = fake::measured(&preferences(), encoder, &Subject::of(&request));
        ["code", "travel"]
            .map(|name| evidence.get(&SignalKey::new(Family::Preference, name)).cloned().unwrap())
    }

    #[test]
    fn the_nearest_rule_alone_matches() {
        for (text, want) in [
            ("fix this function", [true, false]),
            ("repair or write a program", [true, false]),
            ("plan a trip to the coast", [false, true]),
            ("weather", [false, false]),
            ("", [false, false]),
        ] {
            let got = observe(text, Some(&WordBag)).map(|o| matches!(o, Observation::Matched { .. }));
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn without_an_encoder_the_wish_is_unknown() {
        for observation in observe("plan a trip", None) {
            assert!(matches!(observation, Observation::Absent(AbsentReason::Failed(_))));
        }
    }
}
