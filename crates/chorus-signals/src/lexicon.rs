//! Every word that the rules of a recipe look for, looked for at once: which of them occur in a text at all.
//!
//! Most texts hold none of them, and then no rule has to look for itself. It knows no rule and no edges of words: what
//! occurs here may still stand inside another word. **Invariant:** a word that is in the text's comparable form, or in
//! the text as written where that is ASCII, is among those seen, whatever its letters' case.

use crate::subject::Subject;
use crate::text::{Case, comparable};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use std::collections::BTreeMap;

/// Shorter words occur in nearly every text, so that looking for them first gains nothing.
const SHORTEST: usize = 2;

/// Words of at least so many bytes are looked for apart, so that a short one does not slow down the search for all.
const LONG: usize = 3;

/// Most letters that are one when case does not count (`k`, `K` and the sign of kelvin); a larger class ends a beginning.
const CASES: usize = 3;

/// Longest list of beginnings by which a pattern is known.
const MOST_BEGINNINGS: usize = 64;

/// Collects the words of a recipe's rules.
#[derive(Debug, Default)]
pub(crate) struct LexiconBuilder {
    words: BTreeMap<String, usize>,
}

/// Words of one rule, by their places in the lexicon.
#[derive(Debug)]
pub(crate) struct Wanted(Vec<usize>);

impl LexiconBuilder {
    /// The words without one of which none of these keywords, in comparable form, is in a text; `None` where a keyword is
    /// too short for that.
    pub(crate) fn keywords<'k>(&mut self, keywords: impl IntoIterator<Item = &'k str>) -> Option<Wanted> {
        // White space is not the same in a text as written; the longest word of a phrase stands for it.
        let longest = |keyword: &'k str| keyword.split(' ').max_by_key(|word| word.len());
        let words: Option<Vec<&str>> = keywords.into_iter().map(longest).collect();
        self.add(words?.into_iter().map(|word| comparable(word, Case::Folded)))
    }

    /// The words with one of which every match of these patterns begins in a text of ASCII; `None` where there are no such
    /// words, or too many of them.
    pub(crate) fn patterns(&mut self, patterns: &[String], case_sensitive: bool) -> Option<Wanted> {
        let mut words = Vec::new();
        for pattern in patterns {
            words.extend(beginnings(pattern, case_sensitive)?);
        }
        self.add(words.into_iter())
    }

    fn add(&mut self, words: impl Iterator<Item = String>) -> Option<Wanted> {
        let words: Vec<String> = words.collect();
        if words.iter().any(|word| word.len() < SHORTEST) {
            return None;
        }
        let mut place = |word: String| {
            let next = self.words.len();
            *self.words.entry(word).or_insert(next)
        };
        Some(Wanted(words.into_iter().map(&mut place).collect()))
    }

    /// Compiles the words.
    ///
    /// # Errors
    /// A sentence for people: there are more words than an automaton can hold.
    pub(crate) fn build(self) -> Result<Lexicon, String> {
        let size = self.words.len();
        let (long, short): (Vec<_>, Vec<_>) =
            self.words.into_iter().partition(|(word, _)| word.len() >= LONG);
        let groups = [long, short].into_iter().filter(|words| !words.is_empty());
        Ok(Lexicon { size, groups: groups.map(|words| Group::of(&words)).collect::<Result<_, _>>()? })
    }
}

/// With which words a pattern's matches begin, where they are few and not trivial; those that are not ASCII are left out.
fn beginnings(pattern: &str, case_sensitive: bool) -> Option<Vec<String>> {
    let parser = regex_syntax::ParserBuilder::new().case_insensitive(!case_sensitive).build().parse(pattern);
    let found = regex_syntax::hir::literal::Extractor::new().limit_class(CASES).extract(&parser.ok()?);
    let literals = found.literals().filter(|literals| !literals.is_empty())?;
    let word = |bytes: &[u8]| String::from_utf8(bytes.to_ascii_lowercase()).ok().filter(|it| it.is_ascii());
    let mut words: Vec<String> = literals.iter().filter_map(|it| word(it.as_bytes())).collect();
    words.sort_unstable();
    words.dedup();
    (words.len() <= MOST_BEGINNINGS && words.iter().all(|it| it.len() >= LONG)).then_some(words)
}

/// All words of a recipe's rules, compiled.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// How many words.
    size: usize,
    groups: Vec<Group>,
}

/// Words that are looked for in one walk.
#[derive(Debug)]
struct Group {
    automaton: AhoCorasick,
    /// For each word its place in the lexicon, and the longest other word with which it begins.
    words: Vec<(usize, Option<usize>)>,
}

impl Group {
    /// Words in the order of their letters.
    fn of(words: &[(String, usize)]) -> Result<Self, String> {
        // Only a leftmost automaton may skip ahead, by vectors of bytes, to where a word can begin.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(words.iter().map(|(word, _)| word))
            .map_err(|e| format!("too many keywords: {e}"))?;
        let mut open: Vec<usize> = Vec::new();
        let mut linked = Vec::with_capacity(words.len());
        for (at, (word, place)) in words.iter().enumerate() {
            let begins = |known: &usize| words.get(*known).is_some_and(|(known, _)| word.starts_with(known));
            while open.pop_if(|known| !begins(known)).is_some() {}
            linked.push((*place, open.last().copied()));
            open.push(at);
        }
        Ok(Self { automaton, words: linked })
    }

    fn look(&self, text: &str, seen: &mut Seen) {
        let mut from = 0;
        while let Some(found) = self.automaton.find(Input::new(text).range(from..)) {
            // The longest of the words that begin here was found; those with which it begins are here too.
            let mut word = Some(found.pattern().as_usize());
            while let Some((place, shorter)) = word.and_then(|at| self.words.get(at)) {
                seen.mark(*place);
                word = *shorter;
            }
            from = found.start() + 1;
        }
    }
}

impl Lexicon {
    /// Looks at the last user message.
    pub(crate) fn look(&self, subject: &Subject<'_>) -> Seen {
        let text = subject.text();
        let mut seen = Seen { is_ascii: text.is_ascii(), size: self.size, words: Vec::new() };
        let lower = seen.is_ascii.then(|| text.to_ascii_lowercase());
        let text = lower.as_deref().unwrap_or_else(|| subject.comparable(Case::Folded).text());
        self.groups.iter().for_each(|group| group.look(text, &mut seen));
        seen
    }
}

/// What of a lexicon occurs in a text.
#[derive(Debug)]
pub(crate) struct Seen {
    is_ascii: bool,
    /// Of the lexicon.
    size: usize,
    /// One for each word; none at all while no word was seen.
    words: Vec<bool>,
}

impl Seen {
    fn mark(&mut self, word: usize) {
        self.words.resize(self.size, false);
        if let Some(seen) = self.words.get_mut(word) {
            *seen = true;
        }
    }

    /// Whether a keyword may be in the text.
    pub(crate) fn may_hold(&self, wanted: &Wanted) -> bool {
        wanted.0.iter().any(|word| self.words.get(*word) == Some(&true))
    }

    /// Whether a pattern may match the text as written: letters outside ASCII are not the same there.
    pub(crate) fn may_match(&self, wanted: &Wanted) -> bool {
        !self.is_ascii || self.may_hold(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::comparable;
    use chorus_wire::{ChatRequest, Message, Role};

    fn seen(lexicon: &Lexicon, text: &str) -> Seen {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        lexicon.look(&Subject::of(&request))
    }

    #[test]
    fn words_that_overlap_or_begin_with_each_other_are_all_seen() {
        let words = ["more than", "no more than", "mo", "more", "moreover", "ore", "than", "thanks"];
        let mut builder = LexiconBuilder::default();
        let wanted: Vec<Wanted> = words.iter().map(|word| builder.keywords([*word]).unwrap()).collect();
        let lexicon = builder.build().unwrap();
        for (text, want) in [
            ("MOREOVER, thanks", vec!["moreover", "more", "mo", "ore", "thanks", "than"]),
            ("No  more\nthan", vec!["more", "mo", "ore", "than"]),
            ("a moor", vec!["mo"]),
            ("nothing of it", vec![]),
            ("", vec![]),
        ] {
            let seen = seen(&lexicon, text);
            for (word, wanted) in words.iter().zip(&wanted) {
                let longest = word.split(' ').max_by_key(|it| it.len()).unwrap();
                let holds = comparable(text, Case::Folded).contains(longest);
                assert_eq!(seen.may_hold(wanted), holds, "{word} in {text}");
                assert!(!want.contains(word) || holds, "{word} in {text}");
            }
        }
    }

    #[test]
    fn d03_letters_outside_ascii_are_seen_in_comparable_form() {
        let mut builder = LexiconBuilder::default();
        let wanted = builder.keywords(["naïve", "python", "根因"]).unwrap();
        let lexicon = builder.build().unwrap();
        for (text, want) in
            [("a NAI\u{308}VE idea", true), ("Ｐｙｔｈｏｎ", true), ("请做根因分析", true), ("café", false)]
        {
            assert_eq!(seen(&lexicon, text).may_hold(&wanted), want, "{text}");
        }
    }

    #[test]
    fn patterns_are_known_by_how_they_begin_or_not_at_all() {
        let of = |pattern: &str| beginnings(pattern, false);
        assert_eq!(of("TKT-[0-9]{4}"), Some(vec!["tkt-".to_owned()]));
        for two in [r"\binc\d+\b|bug-", "bug-|INC[0-9]+"] {
            assert_eq!(of(two), Some(vec!["bug-".to_owned(), "inc".to_owned()]), "{two}");
        }
        assert_eq!(of("根因"), Some(vec![]));
        for boundless in ["[?？]", ".*ticket", r"\d{4}-TKT", "", "(?:ticket)?", "([a"] {
            assert_eq!(of(boundless), None, "{boundless}");
        }
    }

    #[test]
    fn a_pattern_is_not_held_back_by_letters_that_only_a_pattern_takes_for_ascii() {
        let mut builder = LexiconBuilder::default();
        let wanted = builder.patterns(&["kelvin[0-9]".to_owned()], false).unwrap();
        let lexicon = builder.build().unwrap();
        assert!(seen(&lexicon, "\u{212a}elvin7").may_match(&wanted));
        assert!(seen(&lexicon, "KELVIN7").may_match(&wanted));
        assert!(!seen(&lexicon, "celsius7").may_match(&wanted));
    }

    #[test]
    fn short_words_leave_their_rule_to_itself() {
        let mut builder = LexiconBuilder::default();
        assert!(builder.keywords(["urgent", "c"]).is_none());
        assert!(builder.keywords(["f#"]).is_some());
    }
}
