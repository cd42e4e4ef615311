//! What a translation between two protocols left behind, in words for a header and for the record.
//!
//! It knows no protocol. **Invariant:** the words are few, short and plain, whatever a client wrote: they go into a
//! header.

/// Most words that are kept; what comes after them is told by [`MORE`].
const MOST: usize = 16;

/// Longest word, in bytes.
const LONGEST: usize = 64;

/// Stands for all losses after the first sixteen.
const MORE: &str = "more";

/// What was lost, each word once, in the order in which it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(Vec<String>);

impl Losses {
    /// Enters a loss. Of a name that a client made up, only letters, digits and `_ - .` are kept.
    pub fn add(&mut self, word: &str) {
        let word = if self.0.len() < MOST { plain(word) } else { MORE.to_owned() };
        if !self.0.contains(&word) {
            self.0.push(word);
        }
    }

    /// [`add`](Self::add) of a word within a group, such as `block.document`.
    pub fn add_of(&mut self, group: &str, word: &str) {
        self.add(&format!("{group}.{word}"));
    }

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_few_short_and_fit_a_header() {
        let mut losses = Losses::default();
        losses.add_of("field", "a\r\nset-cookie: x=1");
        losses.add("field.aset-cookiex1");
        losses.add(&"y".repeat(500));
        for n in 0..100 {
            losses.add(&n.to_string());
        }
        assert_eq!(losses.words().len(), MOST + 1);
        assert_eq!(losses.words()[0], "field.aset-cookiex1");
        assert_eq!(losses.words()[1].len(), LONGEST);
        assert_eq!(losses.words()[MOST], MORE);
    }
}
