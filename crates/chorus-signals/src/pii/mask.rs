//! Numbers of a fixed form: a mask says which characters stand where, a check says which of them were issued.
//!
//! It knows the forms' language and the edges of candidates; the tables are in `finance.rs` and `identity.rs`. In a mask
//! `9` is a digit, `A` a letter, `X` either, `H` a hexadecimal digit; a space is one space or hyphen, the same one
//! throughout; anything else is itself. **Invariant:** a text costs a bounded number of steps for each word.

use super::context::{Context, is_unspaced};
use super::entity::Entity;
use super::span::Span;

/// How numbers of one kind look, which of them are real, and what a finding is worth.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) entity: Entity,
    pub(super) masks: &'static [&'static str],
    /// Whether the number, compact and upper-case, could have been issued.
    pub(super) valid: fn(&str) -> bool,
    /// Score without a context word, 0..=1; nothing is found at 0.
    pub(super) alone: f64,
    /// Words that name the kind, folded.
    pub(super) context: &'static [&'static str],
    /// Score with one of them, 0..=1.
    pub(super) named: f64,
}

impl Rule {
    /// What the rule finds at a place where a word begins.
    pub(super) fn at(&self, text: &str, start: usize) -> Option<Span> {
        let end = self
            .masks
            .iter()
            .filter_map(|mask| fit(mask, text.as_bytes(), start))
            .filter(|end| ends(text, *end))
            .find(|end| (self.valid)(&compact(text.get(start..*end).unwrap_or_default())))?;
        let score = weigh(&Context::of(text, start, end), self.context, self.alone, self.named);
        (score > 0.0).then_some(Span { entity: self.entity, bytes: start..end, score, recogniser: self.name })
    }
}

/// Half the score where the context names another kind of number, the named one where it names this kind.
pub(super) fn weigh(around: &Context, words: &[&str], alone: f64, named: f64) -> f64 {
    if around.has(words) {
        named
    } else if around.is_impersonal() {
        alone / 2.0
    } else {
        alone
    }
}

/// Letters and digits only, upper-case.
pub(super) fn compact(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// Where the mask ends, if the text fits it.
fn fit(mask: &str, text: &[u8], start: usize) -> Option<usize> {
    let mut separator = None;
    for (at, want) in mask.bytes().enumerate() {
        let byte = *text.get(start + at)?;
        let fits = match want {
            b'9' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_alphabetic(),
            b'X' => byte.is_ascii_alphanumeric(),
            b'H' => byte.is_ascii_hexdigit(),
            b' ' => matches!(byte, b' ' | b'-') && *separator.get_or_insert(byte) == byte,
            literal => byte == literal,
        };
        if !fits {
            return None;
        }
    }
    Some(start + mask.len())
}

/// Whether a candidate may begin here: not inside a longer word, number, path or amount.
pub(super) fn begins(text: &str, start: usize) -> bool {
    let mut before = text.get(..start).unwrap_or_default().chars().rev();
    let Some(last) = before.next() else { return true };
    let joined = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match last {
        '_' | '$' | '€' | '£' | '¥' => false,
        '-' | '.' | '/' | '\\' | '+' => !joined(before.next()),
        ',' => !(before.next().is_some_and(|c| c.is_ascii_digit()) && thousands(text, start)),
        c => !c.is_alphanumeric() || is_unspaced(c),
    }
}

/// Whether a candidate may end here.
pub(super) fn ends(text: &str, end: usize) -> bool {
    let mut after = text.get(end..).unwrap_or_default().chars();
    let Some(next) = after.next() else { return true };
    match next {
        '_' | '@' => false,
        '-' | '.' => !after.next().is_some_and(char::is_alphanumeric),
        ',' => !thousands(text, end + 1),
        c => !c.is_alphanumeric() || is_unspaced(c),
    }
}

/// Whether a group of exactly three digits begins here.
fn thousands(text: &str, start: usize) -> bool {
    let bytes = text.as_bytes().get(start..).unwrap_or_default();
    bytes.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        for (mask, text, fits) in [
            ("9999 9999", "1234-5678", true),
            ("9999 9999", "1234 5678", true),
            ("99 99 99", "12-34 56", false),
            ("AA9", "xY7", true),
            ("AA9", "x7", false),
            ("HH:HH", "aF:09", true),
            ("9.9", "1.2", true),
            ("9.9", "1-2", false),
        ] {
            assert_eq!(fit(mask, text.as_bytes(), 0).is_some(), fits, "{mask} {text}");
        }
    }

    #[test]
    fn candidates_are_whole_words() {
        for (text, want) in [
            ("4111", true),
            ("no:4111", true),
            ("卡号4111。", true),
            ("(4111)", true),
            ("4111, 2", true),
            ("x4111", false),
            ("é4111", false),
            ("1.4111", false),
            ("a-4111", false),
            ("$4111", false),
            ("4111px", false),
            ("4111.5", false),
            ("4111,000", false),
            ("4111,0001", true),
        ] {
            let start = text.find("4111").unwrap();
            assert_eq!(begins(text, start) && ends(text, start + 4), want, "{text}");
        }
    }
}
