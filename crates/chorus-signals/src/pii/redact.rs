//! Personal data taken out of a text, and put back.
//!
//! It knows findings and places, no rule. A placeholder says the kind and counts, so that the same text always gets the same
//! one: `<EMAIL_ADDRESS_1>`. **Invariant:** [`Redacted::restore`] of the redacted text is the text.

use super::span::Finding;
use std::collections::BTreeMap;

/// Characters of a value that a sample shows.
const SHOWN: usize = 2;
/// Characters that a value must have for a sample to show any of it.
const LONG_ENOUGH: usize = 8;

/// A text without its personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text with placeholders.
    pub text: String,
    /// What each placeholder stands for.
    pub values: BTreeMap<String, String>,
}

impl Redacted {
    /// Puts the values back into a text that has placeholders, for example a model's answer.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        let mut restored = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, from)) = rest.split_once('<') {
            restored.push_str(before);
            let end = from.find('>').map(|end| end + 1);
            let name = end.and_then(|end| from.get(..end)).map(|name| format!("<{name}"));
            match name.and_then(|name| self.values.get(&name)).zip(end) {
                Some((value, end)) => {
                    restored.push_str(value);
                    rest = from.get(end..).unwrap_or_default();
                }
                None => {
                    restored.push('<');
                    rest = from;
                }
            }
        }
        restored.push_str(rest);
        restored
    }
}

/// Replaces findings, which are in the text's order and do not overlap, as [`super::find`] returns them.
#[must_use]
pub fn redact(text: &str, findings: &[Finding]) -> Redacted {
    let mut redacted = Redacted { text: String::with_capacity(text.len()), values: BTreeMap::new() };
    let mut names: BTreeMap<(&str, String), String> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut chars = text.chars();
    let mut at = 0;
    for finding in findings {
        redacted.text.extend(chars.by_ref().take(finding.start.saturating_sub(at)));
        let value: String = chars.by_ref().take(finding.end.saturating_sub(finding.start.max(at))).collect();
        at = finding.end.max(at);
        let kind = finding.entity.name();
        let name = names.entry((kind, value.clone())).or_insert_with(|| {
            let count = counts.entry(kind).or_insert(0);
            // A placeholder that the text has of its own would not come back as it was.
            loop {
                *count += 1;
                let name = format!("<{kind}_{count}>");
                if !text.contains(&name) {
                    break name;
                }
            }
        });
        redacted.text.push_str(name);
        redacted.values.insert(name.clone(), value);
    }
    redacted.text.extend(chars);
    redacted
}

/// A value as a report may show it: its first two characters if it is long, and stars.
#[must_use]
pub fn sample(value: &str) -> String {
    let count = value.chars().count();
    let shown = if count < LONG_ENOUGH { 0 } else { SHOWN };
    value.chars().take(shown).chain(std::iter::repeat_n('*', count - shown)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn a_text_comes_back_whole() {
        for text in [
            "Mail ada@example.com or bob@example.com, not ada@example.com!",
            "é😀 card 4111 1111 1111 1111, <EMAIL_ADDRESS_1> and a@example.com",
            "nothing < here >",
            "",
        ] {
            let redacted = redact(text, &find(text));
            assert_eq!(redacted.restore(&redacted.text), text);
            assert!(
                !redacted.text.contains("@example.com") && !redacted.text.contains("4111"),
                "{redacted:?}"
            );
        }
    }

    #[test]
    fn the_same_value_gets_the_same_placeholder() {
        let text = "ada@example.com, bob@example.com, ada@example.com";
        let redacted = redact(text, &find(text));
        assert_eq!(redacted.text, "<EMAIL_ADDRESS_1>, <EMAIL_ADDRESS_2>, <EMAIL_ADDRESS_1>");
        assert_eq!(redacted.restore("Hello <EMAIL_ADDRESS_2> <X>"), "Hello bob@example.com <X>");
    }

    #[test]
    fn e04_samples_are_masked() {
        assert_eq!(sample("4111111111111111"), "41**************");
        assert_eq!(sample("Ada"), "***");
    }
}
