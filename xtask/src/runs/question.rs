//! Questions with options of which one is right, and which option an answer chooses.

use anyhow::Context;
use serde::Deserialize;
use std::path::Path;

/// One question.
#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) ask: String,
    /// A, B, C, …
    pub(super) options: Vec<String>,
    /// The letter of the right option.
    pub(super) right: char,
}

/// `questions.json`.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Question>> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} holds no questions", path.display()))
}

impl Question {
    /// Letters and options.
    pub(super) fn choices(&self) -> impl Iterator<Item = (char, &str)> {
        ('A'..).zip(self.options.iter().map(String::as_str))
    }

    /// As a model gets it.
    pub(super) fn prompt(&self) -> String {
        let options = self.choices().map(|(letter, option)| format!("{letter}) {option}\n"));
        let options: String = options.collect();
        let task = "Think in one or two sentences, then end with the line \"ANSWER: X\", where X is the letter of the right \
                    option.";
        format!("{}\n{options}{task}", self.ask)
    }

    /// The option that a text chooses: the letter behind the last `ANSWER:`, else the one that its last line begins with
    /// (`C) …`), else the only option that the text names.
    pub(super) fn chosen(&self, text: &str) -> Option<char> {
        let marked = text.to_uppercase().rsplit_once("ANSWER:").and_then(|(_, after)| letter(after));
        let known = |letter: &char| self.choices().any(|(known, _)| known == *letter);
        let begun = || {
            let line = text.trim().lines().next_back()?.trim();
            let (first, rest) = line.split_at_checked(1)?;
            rest.starts_with([')', '.', ':']).then(|| letter(first)).flatten()
        };
        marked.or_else(begun).filter(known).or_else(|| self.named(text))
    }

    fn named(&self, text: &str) -> Option<char> {
        let folded = text.to_lowercase();
        let mut named = self.choices().filter(|(_, option)| has_word(&folded, &option.to_lowercase()));
        let first = named.next();
        first.filter(|_| named.next().is_none()).map(|(letter, _)| letter)
    }
}

/// The letter that a text begins with, when it stands alone.
fn letter(text: &str) -> Option<char> {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || "*(\"'<[".contains(c)).chars();
    let first = rest.next().filter(char::is_ascii_uppercase)?;
    (!rest.next().is_some_and(char::is_alphanumeric)).then_some(first)
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|tail| tail.chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_that_a_text_chooses() {
        let options = ["oxygen", "nitrogen", "carbon dioxide", "hydrogen"].map(str::to_owned).to_vec();
        let question = Question { ask: "Which gas?".to_owned(), options, right: 'C' };
        for (text, chosen) in [
            ("It takes up carbon dioxide.\nANSWER: C", Some('C')),
            ("Not oxygen. Answer: (C) carbon dioxide", Some('C')),
            ("**ANSWER: B**", Some('B')),
            ("D) hydrogen", Some('D')),
            ("Plants take up Oxygen.", Some('A')),
            ("Oxygen or nitrogen.", None),
            ("ANSWER: X", None),
            ("ANSWER: Carbon dioxide", Some('C')),
            ("", None),
        ] {
            assert_eq!(question.chosen(text), chosen, "{text}");
        }
    }
}
