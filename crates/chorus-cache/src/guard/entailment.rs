//! Whether a statement follows from a text, cannot hold beside it, or neither: by words, without a model of language.
//!
//! The sentence, and in it the clause, that shares most words with the statement is what is compared. A statement is
//! contradicted where that sentence speaks of the same thing with a negation, an opposite word, another number, another name
//! or another value of one kind; it follows where the text has all that it says; all else is neutral, and so is what the
//! text only supposes. It knows no encoder: how alike two sentences are is asked of the caller. **Invariant:** the same texts
//! and the same likeness give the same judgement, and a statement without a word of meaning is neutral.
//!
//! It knows no synonyms beyond the guards' lists and no kinds of things: that a dog is an animal it cannot tell. Source:
//! rules over shared words, as of MacCartney and Manning 2007, "Natural logic for textual inference", here without syntax.

use super::statement::{Statement, clauses, sentences};
use super::{Reading, numbers, polarity};

/// Share of a statement's words that the text must have, for it to follow. One added word of six says something new.
const SUPPORTED: f64 = 0.85;
/// The same where an encoder finds the two sentences alike.
const SUPPORTED_ALIKE: f64 = 0.65;
/// Likeness, on the scale of configuration files, from which two sentences say much the same.
const ALIKE: f64 = 0.88;
/// Share of a statement's words, besides those that disagree, that the sentence must have to speak of the same thing.
const SAME_THING: f64 = 0.75;

/// What a text says of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It follows.
    Entailment,
    /// It may hold or not.
    Neutral,
    /// It cannot hold.
    Contradiction,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Entailment, Self::Neutral, Self::Contradiction];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entailment => "entailment",
            Self::Neutral => "neutral",
            Self::Contradiction => "contradiction",
        }
    }
}

/// A verdict, how strongly it is meant, and what decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Shares of the statement's words that speak for it, in 0..=1: evidence, not a probability.
    pub strength: f64,
    /// What decided, in a word.
    pub reason: &'static str,
}

/// Judges every sentence of a hypothesis by a premise: one that cannot hold makes the whole contradict, and the whole follows
/// only where all do. `likeness` says how alike two sentences are, in 0..=1 on the scale of configuration files; 0 where
/// nobody can tell.
#[must_use]
pub fn entailment(premise: &str, hypothesis: &str, likeness: &dyn Fn(&str, &str) -> f64) -> Judgement {
    let known: Vec<Known<'_>> = sentences(premise).into_iter().map(Known::of).collect();
    let all = Reading::of(premise, None);
    let judged = sentences(hypothesis).into_iter().map(|text| judge(&known, &all, text, likeness));
    // The worst word of any sentence is that of the whole, and of equal words the weaker one.
    let worst = judged.max_by(|a, b| a.verdict.cmp(&b.verdict).then(b.strength.total_cmp(&a.strength)));
    worst.unwrap_or(Judgement { verdict: Verdict::Neutral, strength: 1.0, reason: "nothing stated" })
}

/// A sentence of the premise.
struct Known<'a> {
    text: &'a str,
    whole: Statement,
    clauses: Vec<Statement>,
}

impl<'a> Known<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            whole: Statement::of(text),
            clauses: clauses(text).into_iter().map(Statement::of).collect(),
        }
    }

    /// The clause that shares most with a statement, the last of equals. What a statement ends on is what it is about, and
    /// counts thrice.
    fn clause(&self, claim: &Statement) -> &Statement {
        let end = |clause: &Statement| claim.end().is_some_and(|stem| clause.reading.words.means(stem));
        let shared = |clause: &&Statement| claim.shared(&clause.reading) + 2 * usize::from(end(clause));
        self.clauses.iter().max_by_key(shared).unwrap_or(&self.whole)
    }
}

fn judge(known: &[Known<'_>], all: &Reading, text: &str, likeness: &dyn Fn(&str, &str) -> f64) -> Judgement {
    let claim = Statement::of(text);
    let neutral = |strength, reason| Judgement { verdict: Verdict::Neutral, strength, reason };
    let nearest = known.iter().rev().max_by_key(|it| claim.shared(&it.whole.reading));
    let Some(nearest) = nearest.filter(|_| claim.says_something()) else {
        return neutral(1.0, "nothing stated");
    };
    let alike = likeness(nearest.text, text);
    // What says the opposite of the text is no news where one of the two is negated, and a conflict where none is.
    let opposite = opposed(&nearest.whole.reading, &claim.reading).unwrap_or_default();
    // One sentence has to say it; what two parts of a statement say may stand in two.
    let said = if claim.joins() { all } else { &nearest.whole.reading };
    let covered = claim.covered(said, &opposite);
    let clause = nearest.clause(&claim);
    if clause.supposes(&claim) || nearest.whole.is_conditional(&claim) {
        return neutral(1.0, "the text only supposes it");
    }
    if let Some((reason, strength)) = conflict(&nearest.whole, clause, &claim) {
        return Judgement { verdict: Verdict::Contradiction, strength, reason };
    }
    let needed = if alike >= ALIKE { SUPPORTED_ALIKE } else { SUPPORTED };
    if covered < needed {
        return neutral(1.0 - covered, "it says more than the text");
    }
    if let Some(reason) = claim.exceeds(&nearest.whole, all) {
        return neutral(covered, reason);
    }
    Judgement {
        verdict: Verdict::Entailment,
        strength: covered.max(alike.min(1.0)),
        reason: "the text says so",
    }
}

/// What makes a statement impossible beside a sentence, and how much of it both speak of.
fn conflict(whole: &Statement, clause: &Statement, claim: &Statement) -> Option<(&'static str, f64)> {
    let same = |besides: &[&str]| Some(claim.covered(&whole.reading, besides)).filter(|it| *it >= SAME_THING);
    let negated = clause.reading.negations % 2 != claim.reading.negations % 2;
    let opposite = opposed(&whole.reading, &claim.reading);
    if let Some(words) = &opposite
        && let Some(share) = same(words)
    {
        // Who buys of one that sells: with the two exchanged, opposite words say the same.
        if claim.begins_elsewhere(whole) {
            return None;
        }
        // An opposite word and a negation say the same again.
        return (!negated).then_some(("opposite words", share));
    }
    if negated && let Some(share) = same(&[]) {
        return Some(("a negation", share));
    }
    let number = || numbers::other_value(&claim.reading.numbers, &whole.reading.numbers, claim.bound());
    if let Some(share) = same(&[]).filter(|_| number()) {
        return Some(("another number", share));
    }
    if claim.is_turned(whole) {
        return Some(("the other way round", 1.0));
    }
    let (missing, instead) = claim.replaced(whole)?;
    same(&[missing]).map(|share| (instead, share))
}

/// The words of a statement that say the opposite of what a sentence says.
fn opposed<'a>(sentence: &Reading, claim: &'a Reading) -> Option<Vec<&'a str>> {
    polarity::are_opposite(&sentence.poles, &claim.poles)
        .then(|| polarity::opposed(&claim.poles, &sentence.poles).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(premise: &str, hypothesis: &str) -> (Verdict, &'static str) {
        let judged = entailment(premise, hypothesis, &|_, _| 0.0);
        (judged.verdict, judged.reason)
    }

    #[test]
    fn what_the_text_says_follows() {
        for (premise, hypothesis) in [
            ("The bridge, opened in 1932, spans the harbour.", "The bridge spans the harbour."),
            ("The shop, which does not sell bread, opens at 9.", "The shop opens at 9."),
            ("All lamps in the hall are on. The cellar is dark.", "The lamps are on."),
            ("The dog is not asleep.", "The dog is awake."),
            ("The box weighs 12 kg.", "The box weighs more than 10 kg."),
            ("Anna wants to buy a boat.", "Anna wants to buy a boat."),
        ] {
            assert_eq!(verdict(premise, hypothesis).0, Verdict::Entailment, "{premise} | {hypothesis}");
        }
    }

    #[test]
    fn what_the_text_excludes_contradicts() {
        for (premise, hypothesis, reason) in [
            ("The bridge was opened in 1932.", "The bridge was opened in 1950.", "another number"),
            ("The bridge was opened in 1932.", "The bridge was not opened in 1932.", "a negation"),
            ("The door is open.", "The door is closed.", "opposite words"),
            ("The wall is painted green.", "The wall is painted white.", "another value of its kind"),
            ("The train goes to Lisbon at noon.", "The train goes to Porto at noon.", "another name"),
            ("The box weighs 12 kg.", "The box weighs less than 10 kg.", "another number"),
            ("The dog chased the fox.", "The fox chased the dog.", "the other way round"),
        ] {
            assert_eq!(
                verdict(premise, hypothesis),
                (Verdict::Contradiction, reason),
                "{premise} | {hypothesis}"
            );
        }
    }

    #[test]
    fn the_rest_is_neutral() {
        for (premise, hypothesis) in [
            ("The bridge was opened in 1932.", "The bridge has four lanes."),
            ("The ferry may be late.", "The ferry is late."),
            ("If it rains, the match is cancelled.", "The match is cancelled."),
            ("Some of the windows are broken.", "All windows are broken."),
            ("The shop does not sell bread.", "The shop sells cakes."),
            ("The shop sells bread.", "Penguins eat fish."),
            ("The shop sells bread.", "Yes."),
            ("", "The shop sells bread."),
            ("The shop sells bread.", ""),
        ] {
            assert_eq!(verdict(premise, hypothesis).0, Verdict::Neutral, "{premise} | {hypothesis}");
        }
    }

    #[test]
    fn one_sentence_that_cannot_hold_decides() {
        let premise = "The library is open on Monday. It has 3 floors.";
        assert_eq!(verdict(premise, "The library is open. It has 5 floors.").0, Verdict::Contradiction);
        assert_eq!(verdict(premise, "The library is open. It has a garden.").0, Verdict::Neutral);
        assert_eq!(verdict(premise, "The library is open. It has 3 floors.").0, Verdict::Entailment);
    }

    #[test]
    fn likeness_stands_in_for_words_and_outweighs_no_conflict() {
        let judged = |hypothesis| entailment("The firm bought 3 lorries.", hypothesis, &|_, _| 0.95).verdict;
        assert_eq!(judged("The firm acquired 3 lorries."), Verdict::Entailment);
        assert_eq!(judged("The firm acquired 4 lorries."), Verdict::Neutral);
        assert_eq!(judged("The firm bought 4 lorries."), Verdict::Contradiction);
    }
}
