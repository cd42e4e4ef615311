//! A text as words: which of them carry meaning, and their stems.
//!
//! It knows no sentence. **Invariant:** words stand in the order of the text.

use super::numbers::is_part;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Words without a meaning of their own, one language after the other.
const FUNCTION: &str = include_str!("function_words.txt");
/// Words that say the same, a group a line, the first of each stands for all.
const SAME: &str = include_str!("same_words.txt");

/// Words that may stand between the two of an expression.
const APART: usize = 4;

/// What a word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It holds the sentence together.
    Function,
    /// It says what the sentence is about.
    Content,
}

/// One word.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// As written.
    pub(super) written: String,
    /// In lower case.
    pub(super) folded: String,
    /// Without its ending, and one for all that say the same.
    pub(super) stem: String,
    pub(super) kind: Kind,
    /// Whether it begins a sentence.
    pub(super) first: bool,
}

/// The words of a text.
#[derive(Debug, Clone)]
pub(super) struct Words {
    all: Vec<Word>,
    stems: BTreeSet<String>,
    folded: BTreeSet<String>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let mut all = Vec::new();
        let mut first = true;
        for piece in text.split_whitespace() {
            let ends =
                piece.trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['.', '!', '?', ':', ';']);
            for part in parts(piece) {
                all.push(word(part, first));
                first = false;
            }
            first |= ends;
        }
        let stems = all.iter().map(|word| word.stem.clone()).collect();
        let folded = all.iter().map(|word| word.folded.clone()).collect();
        Self { all, stems, folded }
    }

    pub(super) fn all(&self) -> &[Word] {
        &self.all
    }

    /// Whether a word stands in the text, in whatever case or form.
    pub(super) fn has(&self, folded: &str) -> bool {
        self.folded.contains(folded) || self.stems.contains(&stem(folded))
    }

    /// The different words of meaning that another text does not have, apart from quantities.
    pub(super) fn beside(&self, other: &Self) -> BTreeSet<&str> {
        let content = self.all.iter().filter(|word| word.kind == Kind::Content);
        let only = content.filter(|word| !other.stems.contains(&word.stem) && !is_part(&word.folded));
        only.map(|word| word.stem.as_str()).collect()
    }

    /// How many different words both have, and how many there are.
    pub(super) fn in_common(&self, other: &Self) -> (usize, usize) {
        (self.stems.intersection(&other.stems).count(), self.stems.union(&other.stems).count())
    }

    /// Whether a word of meaning has that stem.
    pub(super) fn means(&self, stem: &str) -> bool {
        self.all.iter().any(|word| word.kind == Kind::Content && word.stem == stem)
    }

    /// Whether one word stands in the text, and another at most four words after it.
    pub(super) fn holds_apart(&self, first: &str, last: &str) -> bool {
        self.all.iter().enumerate().filter(|(_, word)| word.folded == first).any(|(at, _)| {
            let after = self.all.get(at + 1..).unwrap_or_default();
            after.iter().take(APART + 1).any(|word| word.folded == last)
        })
    }

    /// Whether a word stands here as another does there: before or after the same word, or at the same end.
    pub(super) fn stands_like(&self, stem: &str, there: &Self, other: &str) -> bool {
        let places = |words: &Self, stem: &str| -> Vec<(Option<String>, Option<String>)> {
            let at = words.all.iter().enumerate().filter(|(_, word)| word.stem == stem).map(|(at, _)| at);
            let stem_at = |at: usize| words.all.get(at).map(|word| word.stem.clone());
            at.map(|at| (at.checked_sub(1).and_then(stem_at), stem_at(at + 1))).collect()
        };
        let theirs = places(there, other);
        let is_like = |(before, after): &(Option<String>, Option<String>)| {
            theirs.iter().any(|(b, a)| b == before || a == after)
        };
        places(self, stem).iter().any(is_like)
    }

    /// Whether these words stand in the text one after the other.
    pub(super) fn holds(&self, run: &[&str]) -> bool {
        self.all.windows(run.len()).any(|seen| seen.iter().zip(run).all(|(word, want)| word.folded == *want))
    }
}

/// A piece between blanks as words: `don't` is two, what hangs together by `_`, `.` or `-` with letters on both sides is
/// one, and marks around it are none.
fn parts(piece: &str) -> Vec<&str> {
    let piece = piece.trim_matches(|c: char| !c.is_alphanumeric());
    let is_inner = |c: char| matches!(c, '\'' | '’' | '_' | '.' | '-' | ':' | '@' | '#' | '+');
    let split = piece.split(move |c: char| !c.is_alphanumeric() && !is_inner(c));
    split.flat_map(contraction).filter(|part| !part.is_empty()).collect()
}

/// `n't` is a word of its own, and the other endings after an apostrophe say nothing.
fn contraction(word: &str) -> Vec<&str> {
    for ending in ["n't", "n’t"] {
        if let Some(stem) = strip_suffix_of_any_case(word, ending) {
            return vec![stem, "not"];
        }
    }
    match word.split_once(['\'', '’']) {
        Some((stem, ending)) if !stem.is_empty() && ending.chars().count() <= 2 => vec![stem],
        _ => vec![word.trim_matches(|c: char| !c.is_alphanumeric())],
    }
}

fn strip_suffix_of_any_case<'a>(word: &'a str, ending: &str) -> Option<&'a str> {
    let at = word.len().checked_sub(ending.len())?;
    let tail = word.get(at..)?;
    tail.eq_ignore_ascii_case(ending).then(|| word.get(..at).unwrap_or_default())
}

fn word(written: &str, first: bool) -> Word {
    let folded = written.to_lowercase();
    let kind = if function_words().contains(folded.as_str()) { Kind::Function } else { Kind::Content };
    let stem = if kind == Kind::Function { folded.clone() } else { stem(&folded) };
    Word { written: written.to_owned(), stem, kind, first, folded }
}

/// A word without its usual ending; one for all that say the same.
pub(super) fn stem(folded: &str) -> String {
    let same = same_words();
    if let Some(one) = same.get(folded) {
        return (*one).to_owned();
    }
    let stripped = stripped(folded);
    same.get(stripped.as_str()).map_or(stripped, |one| (*one).to_owned())
}

/// English endings: plural, past, progressive, adverb. Short words keep theirs.
fn stripped(word: &str) -> String {
    let word = word.strip_suffix("ly").filter(|stem| stem.len() >= 4 && word.is_ascii()).unwrap_or(word);
    let strip = |ending: &str, least: usize| {
        word.strip_suffix(ending).filter(|stem| stem.chars().count() >= least && word.is_ascii())
    };
    let stem = if let Some(stem) = strip("ies", 2) {
        return format!("{stem}y");
    } else if let Some(stem) = strip("sses", 2) {
        return format!("{stem}ss");
    } else if let Some(stem) = strip("ing", 3).or_else(|| strip("ed", 3)) {
        undoubled(stem)
    } else if let Some(stem) = strip("s", 3).filter(|stem| !stem.ends_with(['s', 'u', 'i'])) {
        stem
    } else {
        word
    };
    stem.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(stem).to_owned()
}

/// `stopp` as `stop`.
fn undoubled(stem: &str) -> &str {
    let mut last = stem.chars().rev();
    match (last.next(), last.next()) {
        (Some(a), Some(b)) if a == b && !"lsz".contains(a) => {
            stem.get(..stem.len() - a.len_utf8()).unwrap_or(stem)
        }
        _ => stem,
    }
}

fn function_words() -> &'static BTreeSet<&'static str> {
    static WORDS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| lines(FUNCTION).flat_map(str::split_whitespace).collect())
}

fn same_words() -> &'static BTreeMap<&'static str, &'static str> {
    static WORDS: OnceLock<BTreeMap<&'static str, &'static str>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let group = |line: &'static str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            line.split_whitespace().map(move |word| (word, first))
        };
        lines(SAME).flat_map(group).collect()
    })
}

/// The lines of a list, without its comments.
pub(super) fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_apart_where_people_read_them_apart() {
        let words = Words::of("I can't open foo_bar.rs (v1.2); it's John's. Why?");
        let written: Vec<&str> = words.all().iter().map(|word| word.written.as_str()).collect();
        assert_eq!(written, ["I", "ca", "not", "open", "foo_bar.rs", "v1.2", "it", "John", "Why"]);
        let first: Vec<&str> =
            words.all().iter().filter(|word| word.first).map(|word| word.written.as_str()).collect();
        assert_eq!(first, ["I", "it", "Why"]);
    }

    #[test]
    fn inflections_share_a_stem() {
        for (a, b) in [
            ("doses", "dose"),
            ("cancelled", "cancelled"),
            ("stopping", "stop"),
            ("cities", "city"),
            ("opened", "open"),
            ("classes", "class"),
        ] {
            assert_eq!(stem(a), stem(b));
        }
        assert_ne!(stem("open"), stem("close"));
    }
}
