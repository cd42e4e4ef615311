//! `context`: how large the request is.
//!
//! *Measures:* whether the tokens of the whole request lie within inclusive bounds.
//! *Inputs:* every message, image, tool definition and tool call, and the output that the request reserves.
//! *Cost:* 0, arithmetic over lengths; with vocabularies, one pass over the text
//! *Fails when:* never; an estimate errs by 0.6 to 1.6 of what a large vocabulary counts, by more for a small one.
//! *Source:* contract §1.4 (`context`); own measurement (`tests/token_estimate.rs`).
//!
//! Where every model that may answer runs in this process, each one's vocabulary counts the messages' text, and the
//! largest count stands; else, and for more than [`COUNTED_BYTES`] of text, the estimate of [`chorus_wire::tokens`]
//! does. Images, tools, what a message takes besides its text, and the reserved output are estimated in both.
//! **Invariant:** raw is the count, matched or not; all rules of a request share one.

use crate::doc::SignalDoc;
use crate::equipment::Vocabulary;
use crate::measure::{Look, Measure};
use crate::subject::Subject;
use chorus_policy::{Evidence, Observation};
use chorus_spec::{ContextSignal, Family, Recipe, SignalKey, SignalKind};
use chorus_wire::tokens;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Context,
    measures: "whether the tokens of the whole request lie within inclusive bounds.",
    inputs: "every message, image, tool definition and tool call, and the output that the request reserves.",
    cost: 0,
    fails_when: "never; an estimate errs by 0.6 to 1.6 of what a large vocabulary counts, by more for a small one.",
    source: "contract §1.4 (`context`); own measurement (`tests/token_estimate.rs`).",
};

/// Most text that vocabularies count: 64 KiB, some milliseconds of work.
pub const COUNTED_BYTES: usize = 64 * 1024;

/// All context rules of a recipe.
pub(crate) struct Contexts {
    rules: Vec<(SignalKey, ContextSignal)>,
    vocabularies: Vec<Vocabulary>,
}

impl Contexts {
    pub(crate) fn prepare(recipe: &Recipe, vocabularies: Vec<Vocabulary>) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Context(rule) => Some((SignalKey::new(Family::Context, &signal.name), *rule)),
            _ => None,
        });
        Self { rules: rules.collect(), vocabularies }
    }

    fn tokens(&self, subject: &Subject<'_>) -> u64 {
        let bytes: usize = subject.messages().iter().map(|message| message.text.len()).sum();
        if bytes > COUNTED_BYTES {
            return subject.tokens();
        }
        let counted = self.vocabularies.iter().map(|vocabulary| {
            tokens::of_request_by(subject.request(), &|text| (vocabulary.count)(text) as u64)
        });
        counted.max().unwrap_or_else(|| subject.tokens())
    }
}

impl Measure for Contexts {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        let tokens = self.tokens(look.subject);
        for (key, rule) in &self.rules {
            evidence.insert(key.clone(), judge(rule, tokens));
        }
    }
}

fn judge(rule: &ContextSignal, tokens: u64) -> Observation {
    let raw = Some(tokens as f64);
    if tokens >= rule.min_tokens && rule.max_tokens.is_none_or(|most| tokens <= most) {
        Observation::Matched { confidence: 1.0, raw }
    } else {
        Observation::Unmatched { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;
    use chorus_wire::{ChatRequest, Message, Role};
    use std::sync::Arc;

    fn raw(text: &str, vocabularies: Vec<Vocabulary>) -> f64 {
        let rule = SignalKind::Context(ContextSignal { min_tokens: 0, max_tokens: None });
        let recipe = Recipe { signals: vec![fake::signal("any", rule)], ..Recipe::default() };
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        let contexts = Contexts::prepare(&recipe, vocabularies);
        let evidence = fake::measured(&contexts, None, &Subject::of(&request));
        match evidence.get(&SignalKey::new(Family::Context, "any")) {
            Some(Observation::Matched { raw: Some(raw), .. }) => *raw,
            other => panic!("{other:?}"),
        }
    }

    fn every(bytes: usize) -> Vocabulary {
        Vocabulary {
            model: format!("every {bytes}"),
            count: Arc::new(move |text| text.len().div_ceil(bytes)),
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        for (min_tokens, max_tokens, want) in
            [(500, Some(500), true), (500, None, true), (501, None, false), (0, Some(499), false)]
        {
            let observation = judge(&ContextSignal { min_tokens, max_tokens }, 500);
            assert_eq!(matches!(observation, Observation::Matched { .. }), want);
        }
    }

    #[test]
    fn the_largest_count_of_all_vocabularies_stands_and_else_the_estimate() {
        let text = "word ".repeat(400);
        assert_eq!(raw(&text, Vec::new()), 504.0);
        assert_eq!(raw(&text, vec![every(5), every(2)]), 1004.0);
        let long = "word ".repeat(COUNTED_BYTES);
        assert_eq!(raw(&long, vec![every(1)]), raw(&long, Vec::new()));
    }
}
