//! What makes two texts of like meaning ask for different answers.
//!
//! An encoder puts "turn on" beside "turn off", and 10 mg beside 100 mg: nearer than many a paraphrase, so that no
//! threshold tells them apart (case F02). Here words are looked at: language, negation, opposite words, numbers and units,
//! names, the word that asks, which of two things goes to which, and what one text speaks of and the other does not. It
//! knows no encoder. **Invariant:** [`difference`] is symmetric, and two equal texts have none.
//!
//! Each guard errs on the side of a miss: what it refuses costs a call, what it lets pass costs a wrong answer.

mod entailment;
mod names;
mod numbers;
mod order;
mod polarity;
mod statement;
mod wording;
mod words;

pub use entailment::{Judgement, Verdict, entailment};
pub use statement::{sentences, sentences_by};
use std::collections::BTreeSet;
pub use wording::{Least, WORDING, least_alike, least_alike_by, shared};
use words::{Kind, Words};

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// They are written in two languages.
    Language,
    /// One says "not", the other does not.
    Negation,
    /// They use opposite words.
    Polarity,
    /// A number, its unit, or a day differs.
    Number,
    /// A name, a quotation or a piece of code differs.
    Name,
    /// One asks when, the other where.
    Question,
    /// The same things, the other way round.
    Order,
    /// One speaks of something that the other does not.
    Subject,
    /// They are no more alike than the words that they share make them.
    Wording,
}

/// A text taken apart.
#[derive(Debug, Clone)]
pub struct Reading {
    language: Option<&'static str>,
    words: Words,
    negations: usize,
    poles: polarity::Poles,
    numbers: Vec<numbers::Quantity>,
    names: BTreeSet<String>,
    asks: BTreeSet<&'static str>,
    ways: BTreeSet<(String, String)>,
}

impl Reading {
    /// Takes a text apart; its language, where it can be told.
    #[must_use]
    pub fn of(text: &str, language: Option<&'static str>) -> Self {
        let words = Words::of(text);
        Self {
            language,
            negations: polarity::negations(&words),
            poles: polarity::poles(&words),
            numbers: numbers::of(text),
            names: names::of(text, &words),
            asks: order::asks(&words),
            ways: order::ways(&words),
            words,
        }
    }
}

/// What makes the two ask for different answers; `None` where nothing does.
#[must_use]
pub fn difference(a: &Reading, b: &Reading) -> Option<Difference> {
    let are_told = a.language.is_some() && b.language.is_some();
    if are_told && a.language != b.language {
        return Some(Difference::Language);
    }
    if numbers::differ(&a.numbers, &b.numbers) {
        return Some(Difference::Number);
    }
    if a.negations % 2 != b.negations % 2 {
        return Some(Difference::Negation);
    }
    let restricts = |a: &Reading, b: &Reading| polarity::restricts(&a.poles, &b.poles, &a.words);
    if polarity::are_opposite(&a.poles, &b.poles) || restricts(a, b) || restricts(b, a) {
        return Some(Difference::Polarity);
    }
    if names::differ(&a.names, &b.names, &b.words) || names::differ(&b.names, &a.names, &a.words) {
        return Some(Difference::Name);
    }
    if !a.asks.is_empty() && !b.asks.is_empty() && a.asks.is_disjoint(&b.asks) {
        return Some(Difference::Question);
    }
    if order::are_reversed(&a.ways, &b.ways) {
        return Some(Difference::Order);
    }
    is_swapped(a, b).then_some(Difference::Subject)
}

/// What speaks against giving one the answer to the other, whose likeness is that cosine; `None` where nothing does.
#[must_use]
pub fn objection(a: &Reading, b: &Reading, cosine: f64, least: &Least) -> Option<Difference> {
    let is_alike = || cosine >= least.for_shared(shared(a, b));
    difference(a, b).or_else(|| (!is_alike()).then_some(Difference::Wording))
}

/// Whether one text is the other with something else in a place or two.
///
/// Words without meaning of their own do not count, nor do inflections. One word that is left over on both sides, beside the
/// same word or at the same end, is another subject; so are as many as there are in a text of the same build.
fn is_swapped(a: &Reading, b: &Reading) -> bool {
    let (only_a, only_b) = (left_over(a, b), left_over(b, a));
    match (only_a.as_slice(), only_b.as_slice()) {
        ([], _) | (_, []) => false,
        ([one], [other]) => a.words.stands_like(one, &b.words, other) || same_build(&a.words, &b.words),
        _ => only_a.len() == only_b.len() && same_build(&a.words, &b.words),
    }
}

/// Words of meaning that only one text has, and that do not say what the other says with another word of the same pole.
fn left_over<'a>(a: &'a Reading, b: &Reading) -> Vec<&'a str> {
    let said = polarity::shared(&a.poles, &b.poles);
    a.words.beside(&b.words).into_iter().filter(|word| !said.contains(word)).collect()
}

/// Whether two texts differ in nothing but their words of meaning, place by place.
fn same_build(a: &Words, b: &Words) -> bool {
    let (a, b) = (a.all(), b.all());
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(x, y)| x.stem == y.stem || (x.kind == Kind::Content && y.kind == Kind::Content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn differs(a: &str, b: &str) -> Option<Difference> {
        let (a, b) = (Reading::of(a, None), Reading::of(b, None));
        let found = difference(&a, &b);
        assert_eq!(found, difference(&b, &a));
        found
    }

    #[test]
    fn f02_what_asks_for_another_answer_is_told_apart() {
        use Difference::{Name, Negation, Number, Order, Polarity, Question, Subject};
        for (a, b, want) in [
            ("How do I enable guest access?", "How do I disable guest access?", Polarity),
            ("How do I turn on the alarm?", "How do I turn off the alarm?", Polarity),
            ("How can I switch on guest access?", "How do I disable guest access?", Polarity),
            ("Is port 5432 open?", "Is port 5432 closed?", Polarity),
            ("Why is the light on?", "Why is the light not on?", Negation),
            ("May I take it with food?", "May I take it without food?", Negation),
            ("Can I mix them?", "Can't I mix them?", Negation),
            ("Is 10 mg a safe dose?", "Is 100 mg a safe dose?", Number),
            ("Is 10 mg a safe dose?", "Is 10 g a safe dose?", Number),
            ("Is it open on Monday?", "Is it open on Tuesday?", Number),
            ("Give me two examples", "Give me three examples", Number),
            ("Who is the mayor of Paris?", "Who is the mayor of Lyon?", Name),
            ("Paris opening hours", "Lyon opening hours", Name),
            ("What does 'foo' mean?", "What does 'bar' mean?", Name),
            ("What does parse_args do?", "What does parse_known do?", Name),
            ("When was the bridge opened?", "Where was the bridge opened?", Question),
            ("How do I convert miles to kilometres?", "How do I convert kilometres to miles?", Order),
            ("Is tea healthier than coffee?", "Is coffee healthier than tea?", Order),
            ("best restaurants in paris", "best restaurants in rome", Subject),
            ("How do I boil an egg?", "How do I fry an egg?", Subject),
        ] {
            assert_eq!(differs(a, b), Some(want), "{a} | {b}");
        }
        let (de, en) = (Reading::of("Guten Morgen", Some("de")), Reading::of("Guten Morgen", Some("en")));
        assert_eq!(difference(&de, &en), Some(Difference::Language));
    }

    #[test]
    fn other_words_for_the_same_pass() {
        for (a, b) in [
            ("How do I enable guest access?", "How can I switch on guest access?"),
            ("How do I reset my password?", "I forgot my password, how can I reset it?"),
            ("Can you tell me the capital of France?", "What is the capital of France"),
            ("Is 10 mg a safe dose?", "Would a dose of 10 milligrams be safe?"),
            ("Give me two examples", "please give me 2 examples"),
            ("Is it open on Mondays?", "Would it be open on a Monday?"),
            ("When does the shop open?", "What time does the shop open?"),
            ("What's the weather in Paris?", "Tell me the weather in paris"),
        ] {
            assert_eq!(differs(a, b), None, "{a} | {b}");
        }
    }

    #[test]
    fn a_way_there_and_back_is_no_other_order() {
        for text in ["q?tO\"q\"", "from Rome to Paris to Rome", "Is tea better than tea?"] {
            assert_eq!(differs(text, text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_does_not_differ_from_itself(text in "[a-zA-Z0-9 '\"_.,?%-]{0,60}") {
            prop_assert_eq!(differs(&text, &text), None);
        }
    }
}
