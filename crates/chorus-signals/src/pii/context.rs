//! The words around a candidate: they make a bare number an account, or an order.
//!
//! It knows no kind of data. Source: Presidio's context enhancement (words before a candidate raise its score), here with
//! words that lower it as well. **Invariant:** the work a candidate costs is bounded by [`BEFORE`] and [`AFTER`].

/// Bytes before a candidate in which a word counts.
const BEFORE: usize = 72;
/// Bytes after a candidate in which a word counts.
const AFTER: usize = 28;
/// Bytes before a candidate in which a word that names another kind of number counts.
const NEXT_TO: usize = 22;

/// Words that name numbers which are no personal data.
const IMPERSONAL: &[&str] = &[
    "order",
    "sku",
    "invoice",
    "tracking",
    "isbn",
    "issn",
    "ean",
    "upc",
    "doi",
    "version",
    "commit",
    "build",
    "port",
    "serial",
    "part",
    "model",
    "ticket",
    "timestamp",
    "epoch",
    "unix",
    "offset",
    "revision",
    "release",
    "hash",
    "checksum",
    "seed",
    "article",
    "product",
    "item",
    "page",
    "line",
    "row",
    "error",
    "code",
    "case",
    "lot",
    "batch",
    "rfc",
    "issue",
    "pr",
];

/// The neighbourhood of a candidate, folded.
pub(super) struct Context {
    before: String,
    after: String,
}

impl Context {
    /// Looks around `start..end`; a blank line ends the neighbourhood.
    pub(super) fn of(text: &str, start: usize, end: usize) -> Self {
        let before = text.get(floor(text, start.saturating_sub(BEFORE))..start).unwrap_or_default();
        let after = text.get(end..floor(text, end.saturating_add(AFTER))).unwrap_or_default();
        let before = before.rsplit("\n\n").next().unwrap_or_default();
        let after = after.split('\n').next().unwrap_or_default();
        Self { before: before.to_lowercase(), after: after.to_lowercase() }
    }

    /// Whether one of the words stands nearby.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| stands(&self.before, word) || stands(&self.after, word))
    }

    /// Whether one of the words stands before it.
    pub(super) fn precedes(&self, words: &[&str]) -> bool {
        words.iter().any(|word| stands(&self.before, word))
    }

    /// Whether it is named as another kind of number.
    pub(super) fn is_impersonal(&self) -> bool {
        let near = self.before.get(floor(&self.before, self.before.len().saturating_sub(NEXT_TO))..);
        near.is_some_and(|near| IMPERSONAL.iter().any(|word| stands(near, word)))
    }
}

/// The nearest place at or below `at` where a character begins.
pub(super) fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// Whether a word occurs whole; scripts without spaces have no edges to ask for.
fn stands(text: &str, word: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let unspaced = word.chars().next().is_some_and(is_unspaced);
    text.match_indices(word).any(|(at, _)| {
        unspaced
            || edge(text.get(..at).and_then(|before| before.chars().next_back()))
                && edge(text.get(at + word.len()..).and_then(|after| after.chars().next()))
    })
}

/// A letter of a script that is written without spaces.
pub(super) fn is_unspaced(c: char) -> bool {
    ('\u{2e80}'..='\u{d7ff}').contains(&c) || ('\u{f900}'..='\u{faff}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(text: &str, what: &str) -> Context {
        let start = text.find(what).unwrap();
        Context::of(text, start, start + what.len())
    }

    #[test]
    fn whole_words_nearby() {
        assert!(around("My SSN: 1", "1").has(&["ssn"]));
        assert!(!around("assn 1", "1").has(&["ssn"]));
        assert!(around("我的手机号1", "1").has(&["手机"]));
        assert!(around("1 is my phone", "1").has(&["phone"]));
        assert!(!around("1 is my phone", "1").precedes(&["phone"]));
        assert!(!around("my phone\n\n1", "1").has(&["phone"]));
        assert!(!around(&format!("phone {} 1", "x ".repeat(60)), "1").has(&["phone"]));
        assert!(around("{\"sku\":1}", "1").is_impersonal());
    }
}
