//! `keyword`: words or patterns in what the user wrote.
//!
//! *Measures:* whether any, all or none of the keywords occur, literally, as patterns, or approximately.
//! *Inputs:* the last user message, its text parts joined.
//! *Cost:* 1, one automaton pass over the text for all rules, and one more for each whose words occur
//! *Fails when:* the words have other meanings or are negated; a language is not listed.
//! *Source:* contract §1.4 (`keywords`); BM25: Robertson and Zaragoza 2009; cases D03, D04, D06.
//!
//! Confidence: 1 for a literal or a pattern; the score (at most 1) for `bm25` and `ngram`; one less the share of wrong
//! letters for `fuzzy`. OR takes the best keyword, AND the mean, NOR is certain. Raw: hits (literal, regex), else the
//! best score. Literal and approximate methods read the comparable form (NFKC, folded unless `case_sensitive`, white
//! space collapsed); `regex` reads the text as written. A rule looks at the text only where the lexicon of all rules has
//! seen a word that it needs. **Invariant:** patterns are compiled once, when prepared.

use crate::approximate::{Bm25, Found, Fuzzy, Ngram};
use crate::doc::SignalDoc;
use crate::lexicon::{LexiconBuilder, Wanted};
use crate::literal::LiteralSet;
use crate::measure::Look;
use crate::subject::Subject;
use crate::text::{Case, Comparable};
use chorus_policy::Observation;
use chorus_spec::{Family, KeywordMethod, KeywordOperator, KeywordSignal};
use regex::{RegexSet, RegexSetBuilder};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Keyword,
    measures: "whether any, all or none of the keywords occur, literally, as patterns, or approximately.",
    inputs: "the last user message, its text parts joined.",
    cost: 1,
    fails_when: "the words have other meanings or are negated; a language is not listed.",
    source: "contract §1.4 (`keywords`); BM25: Robertson and Zaragoza 2009; cases D03, D04, D06.",
};

/// A keyword rule, compiled.
#[derive(Debug)]
pub(crate) struct Keyword {
    operator: KeywordOperator,
    finder: Finder,
    /// Words without which nothing is found; `None` where it is not known by words.
    wanted: Option<Wanted>,
}

#[derive(Debug)]
enum Finder {
    Literal(LiteralSet),
    Regex(RegexSet),
    Bm25(Bm25),
    Ngram(Ngram),
    Fuzzy(Fuzzy),
}

impl Keyword {
    /// Compiles a rule; the error is a sentence for people.
    pub(crate) fn prepare(signal: &KeywordSignal, lexicon: &mut LexiconBuilder) -> Result<Self, String> {
        if signal.keywords.is_empty() {
            return Err("it has no keywords".to_owned());
        }
        let (words, case) = (&signal.keywords, Case::of(signal.case_sensitive));
        let finder = match signal.method {
            KeywordMethod::Literal => Finder::Literal(LiteralSet::build(words, case)?),
            KeywordMethod::Regex => Finder::Regex(patterns(words, signal.case_sensitive)?),
            KeywordMethod::Bm25 { threshold } => Finder::Bm25(Bm25::build(words, case, threshold)?),
            KeywordMethod::Ngram { threshold, arity } => {
                Finder::Ngram(Ngram::build(words, case, threshold, arity)?)
            }
            KeywordMethod::Fuzzy { max_distance } => Finder::Fuzzy(Fuzzy::build(words, case, max_distance)?),
        };
        let wanted = match &finder {
            Finder::Literal(set) => lexicon.keywords(set.keywords()),
            Finder::Regex(_) => lexicon.patterns(words, signal.case_sensitive),
            Finder::Bm25(finder) => lexicon.keywords(finder.terms()),
            Finder::Ngram(_) | Finder::Fuzzy(_) => None,
        };
        Ok(Self { operator: signal.operator, finder, wanted })
    }

    /// What the rule says of a request.
    pub(crate) fn observe(&self, look: &mut Look<'_, '_>) -> Observation {
        let is_worth_it = self.wanted.as_ref().is_none_or(|wanted| match self.finder {
            Finder::Regex(_) => look.seen().may_match(wanted),
            _ => look.seen().may_hold(wanted),
        });
        let (found, raw) =
            if is_worth_it { self.finder.look(look.subject) } else { counted(vec![Found::NOTHING]) };
        match combine(self.operator, &found) {
            Some(confidence) => Observation::Matched { confidence, raw: Some(raw) },
            None => Observation::Unmatched { raw: Some(raw) },
        }
    }
}

impl Finder {
    /// What each keyword found, and the raw value.
    fn look(&self, subject: &Subject<'_>) -> (Vec<Found>, f64) {
        match self {
            Self::Literal(set) => counted(literal(set, subject.comparable(set.case()))),
            Self::Regex(set) => counted(matches(set, subject.text())),
            Self::Bm25(finder) => scored(finder.look(subject.comparable(finder.case()))),
            Self::Ngram(finder) => scored(finder.look(subject.comparable(finder.case()))),
            Self::Fuzzy(finder) => scored(finder.look(subject.comparable(finder.case()))),
        }
    }
}

/// Which patterns match. Whether any does is found out much faster than which, and mostly none does.
fn matches(set: &RegexSet, text: &str) -> Vec<Found> {
    if !set.is_match(text) {
        return vec![Found::NOTHING; set.len()];
    }
    let matches = set.matches(text);
    (0..set.len()).map(|at| certain(matches.matched(at))).collect()
}

fn patterns(words: &[String], case_sensitive: bool) -> Result<RegexSet, String> {
    RegexSetBuilder::new(words)
        .case_insensitive(!case_sensitive)
        .build()
        .map_err(|e| format!("a pattern does not compile: {e}"))
}

fn literal(set: &LiteralSet, text: &Comparable) -> Vec<Found> {
    let mut found = vec![Found::NOTHING; set.len()];
    let mut missing = set.len();
    for hit in set.hits(text.text()) {
        if let Some(slot) = found.get_mut(hit.keyword).filter(|slot| slot.confidence.is_none()) {
            *slot = Found::CERTAIN;
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    found
}

fn certain(hit: bool) -> Found {
    if hit { Found::CERTAIN } else { Found::NOTHING }
}

fn counted(found: Vec<Found>) -> (Vec<Found>, f64) {
    let hits = found.iter().filter(|f| f.confidence.is_some()).count() as f64;
    (found, hits)
}

fn scored(found: Vec<Found>) -> (Vec<Found>, f64) {
    let best = found.iter().map(|f| f.score).fold(0.0, f64::max);
    (found, best)
}

fn combine(operator: KeywordOperator, found: &[Found]) -> Option<f64> {
    let mut hits = found.iter().filter_map(|f| f.confidence);
    match operator {
        KeywordOperator::Or => hits.reduce(f64::max),
        KeywordOperator::And => {
            let all: Option<Vec<f64>> = found.iter().map(|f| f.confidence).collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        }
        KeywordOperator::Nor => hits.next().is_none().then_some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::SharedPass;
    use chorus_wire::{ChatRequest, Message, Role};

    fn observe(signal: &KeywordSignal, text: &str) -> Observation {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        let mut lexicon = LexiconBuilder::default();
        let rule = Keyword::prepare(signal, &mut lexicon).unwrap();
        let lexicon = lexicon.build().unwrap();
        rule.observe(&mut Look::new(None, &lexicon, &Subject::of(&request), &mut SharedPass::new()))
    }

    fn signal(operator: KeywordOperator, method: KeywordMethod, keywords: &[&str]) -> KeywordSignal {
        let keywords = keywords.iter().map(|k| (*k).to_owned()).collect();
        KeywordSignal { operator, keywords, case_sensitive: false, method }
    }

    fn matches(signal: &KeywordSignal, text: &str) -> bool {
        matches!(observe(signal, text), Observation::Matched { .. })
    }

    #[test]
    fn operators() {
        use KeywordOperator::{And, Nor, Or};
        for (operator, text, want) in [
            (Or, "red and blue", true),
            (Or, "green", false),
            (And, "red and blue", true),
            (And, "red", false),
            (Nor, "green", true),
            (Nor, "red", false),
            (Nor, "", true),
            (And, "", false),
        ] {
            assert_eq!(
                matches(&signal(operator, KeywordMethod::Literal, &["red", "blue"]), text),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn d06_regex_is_compiled_as_written() {
        let ticket = signal(KeywordOperator::Or, KeywordMethod::Regex, &["TKT-[0-9]{4}", "^never$"]);
        assert_eq!(
            observe(&ticket, "see tkt-2291"),
            Observation::Matched { confidence: 1.0, raw: Some(1.0) }
        );
        assert!(!matches(&ticket, "see TKT-29"));
        let exact = KeywordSignal { case_sensitive: true, ..ticket };
        assert!(!matches(&exact, "see tkt-2291"));
        let broken = signal(KeywordOperator::Or, KeywordMethod::Regex, &["([a"]);
        let empty = signal(KeywordOperator::Or, KeywordMethod::Literal, &[]);
        for wrong in [broken, empty] {
            assert!(Keyword::prepare(&wrong, &mut LexiconBuilder::default()).is_err());
        }
    }

    #[test]
    fn a_keyword_at_the_end_of_a_padded_text() {
        let rule =
            signal(KeywordOperator::Or, KeywordMethod::Literal, &["break this into independent workstreams"]);
        let text = "Background to be read. ".repeat(2600) + "Then break this into independent workstreams.";
        assert!(matches(&rule, &text));
    }

    #[test]
    fn a_rule_finds_the_same_whether_or_not_the_lexicon_holds_its_words_back() {
        let literal = |keywords: &[&str], case_sensitive| KeywordSignal {
            case_sensitive,
            ..signal(KeywordOperator::Or, KeywordMethod::Literal, keywords)
        };
        for (rule, text, want) in [
            (literal(&["stack  trace"], false), "a STACK\n trace", true),
            (literal(&["ÜBER alles"], true), "ÜBER alles", true),
            (literal(&["ÜBER alles"], true), "über alles", false),
            (literal(&["Tax"], true), "income tax", false),
            (literal(&["c", "rust"], false), "in C, please", true),
            (literal(&["ﬁne"], false), "a fine day", true),
        ] {
            assert_eq!(matches(&rule, text), want, "{text}");
        }
    }

    #[test]
    fn confidence_of_approximate_methods_is_their_score() {
        let fuzzy =
            signal(KeywordOperator::And, KeywordMethod::Fuzzy { max_distance: 2 }, &["urgent", "invoice"]);
        let Observation::Matched { confidence, raw } = observe(&fuzzy, "urgnet invoice") else {
            panic!("no match");
        };
        assert!((confidence - (1.0 + 5.0 / 6.0) / 2.0).abs() < 1e-9);
        assert_eq!(raw, Some(1.0));
    }
}
