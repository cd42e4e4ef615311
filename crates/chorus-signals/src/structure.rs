//! `structure`: the countable form of what the user wrote.
//!
//! *Measures:* existence, count, density or order of patterns, words or phrases, or the text's length in bytes.
//! *Inputs:* the last user message, its text parts joined.
//! *Cost:* 1, one pass over the text for each rule of patterns, and for each whose words occur
//! *Fails when:* the user quotes a text of another form than the request has.
//! *Source:* contract §1.4 (`structure`).
//!
//! Density is occurrences a unit of language; a unit is a word, or one ideograph, so that one bound serves English
//! and Chinese alike. Occurrences of words follow the edges of `keyword`, the longest first where they overlap;
//! patterns read the text as written. Confidence is the logistic of four times the distance to the nearest bound, at
//! least 0.5. **Invariant:** raw is the measured value, matched or not.

use crate::doc::SignalDoc;
use crate::lexicon::{LexiconBuilder, Wanted};
use crate::literal::LiteralSet;
use crate::measure::Look;
use crate::predicate::judge;
use crate::subject::Subject;
use crate::text::Case;
use chorus_policy::Observation;
use chorus_spec::{Family, FeatureKind, NumericPredicate, StructureSignal, StructureSource};
use regex::{Regex, RegexBuilder};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Structure,
    measures: "existence, count, density or order of patterns, words or phrases, or the text's length in bytes.",
    inputs: "the last user message, its text parts joined.",
    cost: 1,
    fails_when: "the user quotes a text of another form than the request has.",
    source: "contract §1.4 (`structure`).",
};

/// A structure rule, compiled.
#[derive(Debug)]
pub(crate) struct Structure {
    kind: FeatureKind,
    counter: Counter,
    /// Words without which there is nothing to count; `None` where it is not known by words.
    wanted: Option<Wanted>,
    predicate: Option<NumericPredicate>,
}

#[derive(Debug)]
enum Counter {
    Pattern(Regex),
    Words(LiteralSet),
    Sequences(Vec<LiteralSet>),
    Bytes,
}

impl Structure {
    /// Compiles a rule; the error is a sentence for people.
    pub(crate) fn prepare(signal: &StructureSignal, lexicon: &mut LexiconBuilder) -> Result<Self, String> {
        let counter = match &signal.feature.source {
            StructureSource::Regex { pattern, case_sensitive } => Counter::Pattern(
                RegexBuilder::new(pattern)
                    .case_insensitive(!case_sensitive)
                    .build()
                    .map_err(|e| format!("the pattern does not compile: {e}"))?,
            ),
            StructureSource::KeywordSet { keywords, case_sensitive } => {
                Counter::Words(LiteralSet::build(keywords, Case::of(*case_sensitive))?)
            }
            StructureSource::Sequence { sequences, case_sensitive } => Counter::Sequences(
                sequences
                    .iter()
                    .map(|phrases| LiteralSet::build(phrases, Case::of(*case_sensitive)))
                    .collect::<Result<_, _>>()?,
            ),
            StructureSource::TextBytes => Counter::Bytes,
        };
        let wanted = match &counter {
            Counter::Words(set) => lexicon.keywords(set.keywords()),
            Counter::Sequences(sets) => lexicon.keywords(sets.iter().flat_map(LiteralSet::keywords)),
            Counter::Pattern(_) | Counter::Bytes => None,
        };
        Ok(Self { kind: signal.feature.kind, counter, wanted, predicate: signal.predicate })
    }

    /// What the rule says of a request.
    pub(crate) fn observe(&self, look: &mut Look<'_, '_>) -> Observation {
        let subject = look.subject;
        let is_worth_it = self.wanted.as_ref().is_none_or(|wanted| look.seen().may_hold(wanted));
        let occurrences = if is_worth_it { self.counter.count(subject) as f64 } else { 0.0 };
        let value = match self.kind {
            FeatureKind::Count => occurrences,
            FeatureKind::Exists | FeatureKind::Sequence => f64::from(u8::from(occurrences > 0.0)),
            // To find the units takes longer than anything else here.
            FeatureKind::Density if occurrences == 0.0 => 0.0,
            FeatureKind::Density => occurrences / subject.comparable(Case::Folded).units().max(1) as f64,
        };
        judge(value, self.predicate.as_ref())
    }
}

impl Counter {
    fn count(&self, subject: &Subject<'_>) -> usize {
        match self {
            Self::Pattern(pattern) => pattern.find_iter(subject.text()).count(),
            Self::Words(set) => set.count(subject.comparable(set.case()).text()),
            Self::Sequences(sets) => {
                sets.iter().filter(|set| set.in_order(subject.comparable(set.case()).text())).count()
            }
            Self::Bytes => subject.text().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::SharedPass;
    use chorus_spec::StructureFeature;
    use chorus_wire::{ChatRequest, Message, Role};

    fn raw(kind: FeatureKind, source: StructureSource, text: &str) -> f64 {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        let signal = StructureSignal { feature: StructureFeature { kind, source }, predicate: None };
        let mut lexicon = LexiconBuilder::default();
        let rule = Structure::prepare(&signal, &mut lexicon).unwrap();
        let lexicon = lexicon.build().unwrap();
        match rule.observe(&mut Look::new(None, &lexicon, &Subject::of(&request), &mut SharedPass::new())) {
            Observation::Matched { raw: Some(raw), .. } | Observation::Unmatched { raw: Some(raw) } => raw,
            other => panic!("{other:?}"),
        }
    }

    fn words(keywords: &[&str]) -> StructureSource {
        let keywords = keywords.iter().map(|k| (*k).to_owned()).collect();
        StructureSource::KeywordSet { keywords, case_sensitive: false }
    }

    fn pattern(pattern: &str) -> StructureSource {
        StructureSource::Regex { pattern: pattern.to_owned(), case_sensitive: false }
    }

    #[test]
    fn values_by_hand() {
        use FeatureKind::{Count, Density, Exists, Sequence};
        let ordered = StructureSource::Sequence {
            sequences: vec![vec!["first".into(), "then".into()], vec!["先".into(), "再".into()]],
            case_sensitive: false,
        };
        for (kind, source, text, want) in [
            (Count, pattern("[?？]"), "why? how？", 2.0),
            (Exists, pattern(r"(?m)^\s*\d+\.\s+"), "do\n1. this\n2. that", 1.0),
            (Exists, pattern(r"(?m)^\s*\d+\.\s+"), "no list", 0.0),
            (Density, words(&["at most", "must"]), "It must be at most three pages long", 2.0 / 8.0),
            (Density, words(&["不超过"]), "不超过三天", 1.0 / 5.0),
            (Density, words(&["must"]), "", 0.0),
            (Sequence, ordered.clone(), "First read, then write", 1.0),
            (Sequence, ordered.clone(), "then write, first read", 0.0),
            (Sequence, ordered, "先读再写", 1.0),
            (Count, StructureSource::TextBytes, "né", 3.0),
        ] {
            assert!((raw(kind, source, text) - want).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        let feature = StructureFeature { kind: FeatureKind::Count, source: pattern("([a") };
        let broken = StructureSignal { feature, predicate: None };
        assert!(Structure::prepare(&broken, &mut LexiconBuilder::default()).is_err());
    }
}
