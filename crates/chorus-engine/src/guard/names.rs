//! Placeholders for personal data: one for each value, whatever text it stands in.
//!
//! What one text proves to be personal data is taken out of all: a number that only its neighbour calls a telephone leaves
//! in no other message either. It knows texts and findings, no request.

use chorus_signals::pii;
use std::collections::BTreeMap;

/// Characters of a value from which it is taken out wherever it stands: shorter ones are words of any text.
const TELLING: usize = 4;
/// Score from which a finding is taken out, like the default of the `pii` signal.
const LEAST_SCORE: f64 = 0.5;
/// Placeholders and what they stand for.
#[derive(Default)]
pub(super) struct Names {
    by_value: BTreeMap<(&'static str, String), String>,
    pub(super) values: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
}

/// A place of a text, in bytes, and the placeholder for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    end: usize,
    name: String,
}

impl Names {
    /// Finds what is personal data in each text, and gives each value its placeholder.
    pub(super) fn learn(&mut self, texts: &[&str]) -> Vec<Vec<Span>> {
        let mut all = Vec::with_capacity(texts.len());
        for text in texts {
            let mut spans = Vec::new();
            for (start, end, kind) in found(text) {
                let value = text.get(start..end).unwrap_or_default();
                spans.push(Span { start, end, name: self.name(kind, value, texts) });
            }
            all.push(spans);
        }
        all
    }

    /// The text with placeholders where something was found, and wherever else a value stands that has one.
    pub(super) fn redacted(&self, text: &str, mut spans: Vec<Span>) -> String {
        let telling = self.by_value.iter().filter(|((_, value), _)| value.chars().count() >= TELLING);
        for ((_, value), name) in telling {
            let places = text.match_indices(value.as_str()).map(|(start, _)| (start, start + value.len()));
            let alone = places.filter(|(start, end)| stands_alone(text, *start, *end));
            spans.extend(alone.map(|(start, end)| Span { start, end, name: name.clone() }));
        }
        // The longest of those that begin together: the whole address and not the name in it.
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for span in spans.iter().filter(|span| span.end > span.start) {
            if span.end > at {
                out.push_str(text.get(at..span.start).unwrap_or_default());
                out.push_str(&span.name);
                at = span.end;
            }
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// The placeholder of a value: the same one wherever it stands, and none that a text has of its own.
    fn name(&mut self, kind: &'static str, value: &str, texts: &[&str]) -> String {
        if let Some(name) = self.by_value.get(&(kind, value.to_owned())) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_insert(0);
        let name = loop {
            *count += 1;
            let name = format!("<{kind}_{count}>");
            if !texts.iter().any(|text| text.contains(&name)) {
                break name;
            }
        };
        self.values.insert(name.clone(), value.to_owned());
        self.by_value.insert((kind, value.to_owned()), name.clone());
        name
    }
}

/// What is found in a text: from which byte to which, and its kind; in order.
fn found(text: &str) -> Vec<(usize, usize, &'static str)> {
    let mut found = pii::find(text);
    found.retain(|it| it.score >= LEAST_SCORE);
    if found.is_empty() {
        return Vec::new();
    }
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.push(text.len());
    let byte = |at: usize| places.get(at).copied().unwrap_or(text.len());
    found.iter().map(|it| (byte(it.start), byte(it.end), it.entity.name())).collect()
}

/// Whether a value is no part of a longer word at that place.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let touches = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let inside = text.get(start..end).unwrap_or_default();
    let before = text.get(..start).and_then(|it| it.chars().next_back());
    let after = text.get(end..).and_then(|it| it.chars().next());
    let joins_before = touches(before) && touches(inside.chars().next());
    let joins_after = touches(after) && touches(inside.chars().next_back());
    !joins_before && !joins_after
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those texts as they leave, and what the placeholders stand for.
    fn sent(texts: &[&str]) -> (Vec<String>, pii::Redacted) {
        let mut names = Names::default();
        let found = names.learn(texts);
        let out = texts.iter().zip(found).map(|(text, spans)| names.redacted(text, spans)).collect();
        (out, pii::Redacted { text: String::new(), values: names.values })
    }

    #[test]
    fn one_value_has_one_placeholder_in_every_text_and_comes_back() {
        let (out, back) = sent(&[
            "Write to anna.berg@example.com today.",
            "anna.berg@example.com answered tom.hill@example.org",
        ]);
        assert_eq!(
            out,
            ["Write to <EMAIL_ADDRESS_1> today.", "<EMAIL_ADDRESS_1> answered <EMAIL_ADDRESS_2>"]
        );
        assert_eq!(back.restore("Dear <EMAIL_ADDRESS_2>"), "Dear tom.hill@example.org");
    }

    #[test]
    fn what_one_text_proves_is_taken_out_of_all() {
        let (out, _) = sent(&["Is 212-555-0187 still right?", "My telephone number is 212-555-0187."]);
        assert!(out.iter().all(|text| !text.contains("0187")), "{out:?}");
        let (out, _) = sent(&["Part 2125550187x", "Call me at 2125550187, please."]);
        assert!(out[0].contains("2125550187x"), "a part of a longer word is another word: {out:?}");
    }

    #[test]
    fn a_placeholder_that_a_text_has_is_not_taken() {
        let (out, _) = sent(&["mine is anna.berg@example.com", "The form says <EMAIL_ADDRESS_1>"]);
        assert_eq!(out, ["mine is <EMAIL_ADDRESS_2>", "The form says <EMAIL_ADDRESS_1>"]);
    }
}
