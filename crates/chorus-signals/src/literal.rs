//! Keywords looked for as they are: one automaton for all of them, and edges that fit the script.
//!
//! An edge that is a word character needs a word boundary beside it; a symbol edge (`C++`, `.NET`) needs none; an
//! edge of, or beside, a script without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar) needs none either.
//! A keyword never ends inside a symbol name: `C` is not found in `C++` or `C#`. Source: D03, D04.
//!
//! **Invariant:** keywords and text are in the comparable form of the same case mode.

use crate::text::{Case, comparable, is_unspaced, is_word};
use aho_corasick::{AhoCorasick, MatchKind};

/// Keywords, ready to be looked for.
#[derive(Debug)]
pub(crate) struct LiteralSet {
    automaton: AhoCorasick,
    presence: Presence,
    keywords: Vec<String>,
    case: Case,
}

/// Whether any of some words occurs at all, edges or not: most texts hold none, and this costs a tenth of a walk that
/// finds each.
#[derive(Debug)]
pub(crate) struct Presence(AhoCorasick);

impl Presence {
    pub(crate) fn of<S: AsRef<[u8]>>(words: &[S]) -> Result<Self, String> {
        // A leftmost automaton may skip ahead to where a word can begin; one that finds overlaps may not.
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(words);
        automaton.map(Self).map_err(|e| format!("too many keywords: {e}"))
    }

    pub(crate) fn in_text(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// One occurrence of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Which keyword, by its place in the list.
    pub(crate) keyword: usize,
    /// First byte.
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
}

impl LiteralSet {
    /// Compiles keywords.
    pub(crate) fn build(keywords: &[String], case: Case) -> Result<Self, String> {
        let keywords: Vec<String> = keywords.iter().map(|k| comparable(k, case)).collect();
        if keywords.iter().any(String::is_empty) {
            return Err("an empty keyword matches nothing".to_owned());
        }
        let automaton = AhoCorasick::new(&keywords).map_err(|e| format!("too many keywords: {e}"))?;
        Ok(Self { automaton, presence: Presence::of(&keywords)?, keywords, case })
    }

    /// The form of text that [`hits`](Self::hits) wants.
    pub(crate) fn case(&self) -> Case {
        self.case
    }

    /// The keywords in comparable form.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = &str> {
        self.keywords.iter().map(String::as_str)
    }

    /// How many keywords.
    pub(crate) fn len(&self) -> usize {
        self.keywords.len()
    }

    /// Every occurrence at fitting edges, overlapping ones too.
    pub(crate) fn hits<'s>(&'s self, text: &'s str) -> impl Iterator<Item = Hit> + 's {
        let automaton = self.presence.in_text(text).then_some(&self.automaton);
        automaton
            .into_iter()
            .flat_map(move |automaton| automaton.find_overlapping_iter(text))
            .map(|found| Hit { keyword: found.pattern().as_usize(), start: found.start(), end: found.end() })
            .filter(|hit| stands_alone(text, hit.start, hit.end))
    }

    /// How often the keywords occur, the longest first where they overlap ("no more than" is not also "more than").
    pub(crate) fn count(&self, text: &str) -> usize {
        let mut hits: Vec<Hit> = self.hits(text).collect();
        hits.sort_by_key(|hit| (hit.start, usize::MAX - hit.end));
        let mut free_from = 0;
        hits.iter()
            .filter(|hit| {
                let free = hit.start >= free_from;
                if free {
                    free_from = hit.end;
                }
                free
            })
            .count()
    }

    /// Whether all keywords occur in their order, none overlapping.
    pub(crate) fn in_order(&self, text: &str) -> bool {
        let hits: Vec<Hit> = self.hits(text).collect();
        (0..self.len())
            .try_fold(0, |from, keyword| {
                hits.iter().filter(|hit| hit.keyword == keyword && hit.start >= from).map(|hit| hit.end).min()
            })
            .is_some()
    }
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(inside), Some(after)) =
        (text.get(..start), text.get(start..end), text.get(end..))
    else {
        return false;
    };
    let glued_before = joined(before.chars().next_back(), inside.chars().next());
    let glued_after = joined(after.chars().next(), inside.chars().next_back());
    let in_symbol_name = inside.ends_with(is_word) && begins_symbol_name(after);
    !(glued_before || glued_after || in_symbol_name)
}

/// Whether two neighbours are parts of one word.
fn joined(neighbour: Option<char>, edge: Option<char>) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| is_word(c) && !is_unspaced(c));
    part(neighbour) && part(edge)
}

/// Whether a word goes on as a name of symbols: `++`, or `#` with no word behind it.
fn begins_symbol_name(after: &str) -> bool {
    after.starts_with("++") || after.strip_prefix('#').is_some_and(|rest| !rest.starts_with(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keyword: &str, text: &str) -> bool {
        let set = LiteralSet::build(&[keyword.to_owned()], Case::Folded).unwrap();
        set.hits(&comparable(text, Case::Folded)).next().is_some()
    }

    #[test]
    fn d03_edges_that_are_symbols_or_not_ascii() {
        for (keyword, text) in [
            ("C++", "what does C++ RAII mean"),
            ("F#", "port to F# please"),
            (".NET", "worth going to .NET, you think?"),
            ("naïve", "a naïve idea"),
            ("naïve", "a NAI\u{308}VE idea"),
            ("дом", "старый дом"),
        ] {
            assert!(found(keyword, text), "{keyword} in {text}");
            assert!(!found(keyword, "C"), "{keyword} in C");
        }
        assert!(!found("C", "what does C++ RAII mean"));
        assert!(!found("C", "port to C#."));
        assert!(found("C", "in C, please"));
        assert!(found("issue", "see issue#12"));
        assert!(!found("дом", "домик"));
    }

    #[test]
    fn d04_inside_another_word() {
        for (keyword, text, want) in [
            ("tax", "taxonomy of birds", false),
            ("tax", "income tax", true),
            ("tax", "TAX!", true),
            ("board", "the dashboard", false),
            ("ci", "special", false),
            ("tax", "tax_rate", false),
            ("at  most", "at\nmost three", true),
            ("2.5", "2x5", false),
            ("2.5", "12.5", false),
        ] {
            assert_eq!(found(keyword, text), want, "{keyword} in {text}");
        }
    }

    #[test]
    fn scripts_without_spaces_need_no_edges() {
        for (keyword, text) in [
            ("根因分析并验证修复", "请做根因分析并验证修复,把任务分解"),
            ("Python", "请用Python写一个函数"),
            ("東京", "明日東京に行く"),
            ("파이썬", "파이썬으로 작성해줘"),
            ("จดหมาย", "ช่วยเขียนจดหมายลาออก"),
        ] {
            assert!(found(keyword, text), "{keyword} in {text}");
        }
        assert!(!found("Python", "请用Pythonic风格"));
    }

    #[test]
    fn overlaps_count_once_and_order_counts() {
        let set = |words: &[&str]| {
            LiteralSet::build(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(), Case::Folded)
                .unwrap()
        };
        assert_eq!(
            set(&["no more than", "more than", "must"]).count("no more than 3, must be more than 1"),
            3
        );
        assert!(set(&["first", "then", "then"]).in_order("first a then b then c"));
        assert!(!set(&["first", "then", "then"]).in_order("then b first a then c"));
        assert!(LiteralSet::build(&[" ".to_owned()], Case::Exact).is_err());
    }
}
