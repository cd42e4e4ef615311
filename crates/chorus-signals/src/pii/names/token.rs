//! Words, marks and line ends of a text, as the tagger sees them.
//!
//! It knows letters, not names. **Invariant:** tokens are in the text's order, do not overlap, and cover everything but
//! spaces.

use super::gazetteer::{self, ListHint};
use super::hash::hash;
use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Letters, with digits, hyphens and apostrophes inside.
    Word,
    /// Begins with a digit.
    Number,
    /// One sign.
    Mark,
    /// The end of a line.
    Line,
}

/// A word, number, mark or line end.
#[derive(Debug, Clone)]
pub struct Token {
    /// Where it stands.
    pub bytes: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// Whether it is a full stop.
    pub is_stop: bool,
    /// Hash of its lower-case form.
    pub(super) lower: u64,
    /// Hashes of the first and the last three letters.
    pub(super) prefix: u64,
    pub(super) suffix: u64,
    /// How it is written: capital, all capitals, digits, …
    pub(super) shape: u8,
    /// The lists that it is on.
    pub(super) lists: u16,
    /// Whether a sentence or line begins with it.
    pub(super) begins: bool,
}

impl Token {
    /// Takes the word off its lists, for training: real names are on no list.
    pub fn forget_lists(&mut self) {
        self.lists = 0;
    }

    /// Whether it is a word with a capital at its beginning and small letters after it.
    #[must_use]
    pub fn is_capital(&self) -> bool {
        self.kind == Kind::Word && self.shape == CAPITAL
    }

    /// Whether it is an ordinary word, written small, and on no other list.
    pub(super) fn is_plain(&self) -> bool {
        self.kind == Kind::Word && self.shape == SMALL && gazetteer::is_common(self.lists)
    }

    /// What the lists say of it.
    #[must_use]
    pub fn hint(&self) -> ListHint {
        gazetteer::hint(self.lists)
    }

    /// Whether lists have it as a name and not as an ordinary word.
    #[must_use]
    pub fn may_be_name(&self) -> bool {
        self.kind == Kind::Word && gazetteer::is_name(self.lists)
    }
}

/// Cuts a text.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::with_capacity(text.len() / 5 + 4);
    let mut chars = text.char_indices().peekable();
    let mut begins = true;
    while let Some((start, c)) = chars.next() {
        if c.is_whitespace() && c != '\n' {
            continue;
        }
        let mut end = start + c.len_utf8();
        if c.is_alphanumeric() {
            while let Some(&(at, next)) = chars.peek() {
                let inner = matches!(next, '-' | '\'' | '’') && continues(text, at + next.len_utf8());
                let short = inner && next != '-' && is_short_form(text, at + next.len_utf8());
                if !next.is_alphanumeric() && (!inner || short) {
                    break;
                }
                end = at + next.len_utf8();
                chars.next();
            }
        }
        let word = text.get(start..end).unwrap_or_default();
        let token = token(word, start..end, c, begins);
        begins = match token.kind {
            Kind::Line => true,
            Kind::Mark => matches!(c, '.' | '!' | '?' | ':' | '"' | '>' | '“' | '(' | '*'),
            Kind::Word | Kind::Number => false,
        };
        found.push(token);
    }
    found
}

/// Whether a letter stands here.
fn continues(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric)
}

/// Whether the short form of a verb, or a possessive, ends the word here: `s`, `m`, `ll`, …
fn is_short_form(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let forms = ["s", "S", "m", "d", "ll", "re", "ve"];
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    forms.iter().any(|form| rest.strip_prefix(form).is_some_and(ends))
}

fn token(word: &str, bytes: Range<usize>, first: char, begins: bool) -> Token {
    let kind = match first {
        '\n' => Kind::Line,
        c if c.is_numeric() => Kind::Number,
        c if c.is_alphabetic() => Kind::Word,
        _ => Kind::Mark,
    };
    let cut = word.char_indices().nth(3).map_or(word.len(), |(at, _)| at);
    let tail = word.char_indices().rev().nth(2).map_or(0, |(at, _)| at);
    // A number is its length: which one it is says nothing of names.
    let digits = "00000000";
    let lower =
        hash(if kind == Kind::Number { digits.get(..word.len().min(8)).unwrap_or(digits) } else { word });
    Token {
        kind,
        is_stop: first == '.',
        lower,
        prefix: hash(word.get(..cut).unwrap_or_default()),
        suffix: hash(word.get(tail..).unwrap_or_default()),
        shape: shape(word, kind),
        lists: if kind == Kind::Word { gazetteer::lists(lower) } else { 0 },
        begins,
        bytes,
    }
}

/// How "Ada" is written.
const CAPITAL: u8 = 5;
/// How "word" is written.
const SMALL: u8 = 8;

/// 0 to 10: how a word is written.
fn shape(word: &str, kind: Kind) -> u8 {
    let mut chars = word.chars();
    let first = chars.next().is_some_and(char::is_uppercase);
    let (upper, lower) =
        chars.fold((0, 0), |(u, l), c| (u + u32::from(c.is_uppercase()), l + u32::from(c.is_lowercase())));
    match (kind, first, upper, lower) {
        (Kind::Line, ..) => 0,
        (Kind::Mark, ..) => 1,
        (Kind::Number, ..) if word.bytes().all(|b| b.is_ascii_digit()) => 2,
        (Kind::Number, ..) => 3,
        (Kind::Word, ..) if word.bytes().any(|b| b.is_ascii_digit()) => 10,
        (_, true, 0, 0) => 4,
        (_, true, 0, _) => CAPITAL,
        (_, true, _, 0) => 6,
        (_, true, ..) => 7,
        (_, false, 0, _) => SMALL,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_lines() {
        let text = "Dr. O'Brien's Mayo-Walters,\n42b «é»";
        let cut: Vec<&str> = tokens(text).iter().map(|t| &text[t.bytes.clone()]).collect();
        assert_eq!(cut, ["Dr", ".", "O'Brien", "'", "s", "Mayo-Walters", ",", "\n", "42b", "«", "é", "»"]);
    }

    #[test]
    fn shapes() {
        let of = |word: &str| shape(word, Kind::Word);
        assert_eq!(["J", "John", "NASA", "McCoy", "word", "iPhone"].map(of), [4, 5, 6, 7, 8, 9]);
    }
}
