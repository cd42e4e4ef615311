//! Extractive shortening: the passages of a text that matter most stay, word by word and in order; marks say where others
//! stood.
//!
//! A text falls into units. A fenced block of code and a JSON value inside prose are one unit each: they stay whole or go
//! whole. A text that is JSON as a whole keeps its structure, its keys, numbers and short strings; only long strings are
//! shortened. It knows no relevance: scores of units come from outside. **Invariant:** what was JSON is JSON of the same
//! shape, and every line of a result that is no mark stands in the text.

mod json;
mod unit;

use chorus_wire::tokens::of_text;
use json::Leaf;
use std::ops::Range;

/// A text, cut into units.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    source: &'a str,
    form: Form<'a>,
}

#[derive(Debug, Clone)]
enum Form<'a> {
    Prose(Vec<&'a str>),
    /// Long strings, each with its units as ranges of its text.
    Json(Vec<(Leaf, Vec<Range<usize>>)>),
}

/// A text that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortened {
    /// What is left of it.
    pub text: String,
    /// Estimated tokens before.
    pub tokens_before: u64,
    /// Estimated tokens after.
    pub tokens_after: u64,
    /// Units that were left out.
    pub omitted: usize,
}

/// One unit, and what it takes.
struct Row<'a> {
    text: &'a str,
    tokens: u64,
}

impl<'a> Draft<'a> {
    /// Cuts a text.
    #[must_use]
    pub fn of(source: &'a str) -> Self {
        let form = match json::long_strings(source) {
            Some(leaves) => {
                let cut = |leaf: Leaf| {
                    let ranges = unit::ranges(&leaf.text);
                    (leaf, ranges)
                };
                Form::Json(leaves.into_iter().map(cut).collect())
            }
            None => Form::Prose(unit::units(source)),
        };
        Self { source, form }
    }

    /// Its units, in order.
    #[must_use]
    pub fn units(&self) -> Vec<&str> {
        match &self.form {
            Form::Prose(units) => units.clone(),
            Form::Json(leaves) => leaves.iter().flat_map(|(leaf, ranges)| cut(&leaf.text, ranges)).collect(),
        }
    }

    /// The text with the units of the greatest scores (one a unit, in the order of [`units`](Self::units)), so that it
    /// takes at most `target_tokens`; of equals the earlier stays. `note` ends every mark. `None` where the text is short
    /// enough, or cannot be that short.
    #[must_use]
    pub fn shorten(&self, scores: &[f64], target_tokens: u64, note: &str) -> Option<Shortened> {
        let tokens_before = of_text(self.source);
        if tokens_before <= target_tokens {
            return None;
        }
        let rows = self.rows();
        let mark = of_text(&mark(rows.len(), note)) + 1;
        let kept = match &self.form {
            Form::Prose(_) => choose(&rows, scores, target_tokens.checked_sub(mark)?, mark, true),
            Form::Json(leaves) => {
                let long: u64 = leaves.iter().map(|(leaf, _)| of_text(self.raw(leaf))).sum();
                // Each string may need a mark of its own.
                let fixed = tokens_before.saturating_sub(long) + mark * leaves.len() as u64;
                choose(&rows, scores, target_tokens.checked_sub(fixed)?, mark, false)
            }
        };
        let text = self.rendered(&kept, note);
        let tokens_after = of_text(&text);
        let omitted = kept.iter().filter(|kept| !**kept).count();
        (tokens_after <= target_tokens && omitted > 0).then_some(Shortened {
            text,
            tokens_before,
            tokens_after,
            omitted,
        })
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let is_json = matches!(self.form, Form::Json(_));
        let row = |text| {
            let tokens = if is_json { of_text(&json::escaped(text)) } else { of_text(text) };
            Row { text, tokens }
        };
        self.units().into_iter().map(row).collect()
    }

    fn raw(&self, leaf: &Leaf) -> &str {
        self.source.get(leaf.range.clone()).unwrap_or_default()
    }

    fn rendered(&self, kept: &[bool], note: &str) -> String {
        match &self.form {
            Form::Prose(units) => joined(units, kept, note),
            Form::Json(leaves) => {
                let (mut out, mut at, mut first) = (String::new(), 0, 0);
                for (leaf, ranges) in leaves {
                    let units = cut(&leaf.text, ranges);
                    let own = kept.get(first..first + units.len()).unwrap_or_default();
                    first += units.len();
                    out.push_str(self.source.get(at..leaf.range.start).unwrap_or_default());
                    at = leaf.range.end;
                    if own.iter().all(|kept| *kept) {
                        out.push_str(self.raw(leaf));
                    } else {
                        out.push_str(&json::quoted(&joined(&units, own, note)));
                    }
                }
                out.push_str(self.source.get(at..).unwrap_or_default());
                out
            }
        }
    }
}

fn cut<'t>(text: &'t str, ranges: &[Range<usize>]) -> Vec<&'t str> {
    ranges.iter().filter_map(|range| text.get(range.clone())).collect()
}

/// Which units stay within that many tokens, where each that stays may need another mark. In prose the first and the last
/// stay before any other: they say what the text is and how it ended.
fn choose(rows: &[Row<'_>], scores: &[f64], budget: u64, mark: u64, ends: bool) -> Vec<bool> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let score = |at: usize| scores.get(at).copied().unwrap_or(0.0);
    let is_end = |at: usize| ends && (at == 0 || at + 1 == rows.len());
    order.sort_by(|a, b| is_end(*b).cmp(&is_end(*a)).then(score(*b).total_cmp(&score(*a))).then(a.cmp(b)));
    let mut kept = vec![false; rows.len()];
    let mut spent = 0;
    for at in order {
        let (Some(row), Some(slot)) = (rows.get(at), kept.get_mut(at)) else { continue };
        let is_large_end = is_end(at) && row.tokens > budget / 4;
        if spent + row.tokens + mark <= budget && !is_large_end && !row.text.is_empty() {
            spent += row.tokens + mark;
            *slot = true;
        }
    }
    kept
}

fn joined(units: &[&str], kept: &[bool], note: &str) -> String {
    let mut out = String::new();
    let mut gap = 0;
    let mut ends_line = true;
    for (unit, is_kept) in units.iter().zip(kept) {
        if *is_kept {
            write_mark(&mut out, &mut gap, ends_line, note);
            out.push_str(unit);
        } else {
            gap += 1;
            ends_line = unit.ends_with('\n');
        }
    }
    write_mark(&mut out, &mut gap, false, note);
    out
}

fn write_mark(out: &mut String, gap: &mut usize, ends_line: bool, note: &str) {
    if *gap == 0 {
        return;
    }
    if !out.is_empty() && !out.ends_with(char::is_whitespace) {
        out.push(' ');
    }
    out.push_str(&mark(*gap, note));
    out.push(if ends_line { '\n' } else { ' ' });
    *gap = 0;
}

/// What stands where passages were left out.
fn mark(omitted: usize, note: &str) -> String {
    let noun = if omitted == 1 { "passage" } else { "passages" };
    format!("[… {omitted} {noun} left out{note} …]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bm25;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn by_words(text: &str, query: &str, target: u64) -> Option<Shortened> {
        let draft = Draft::of(text);
        let scores = Bm25::of(draft.units()).scores(query);
        draft.shorten(&scores, target, "")
    }

    fn log() -> String {
        let line = |n: usize| match n {
            117 => "12:01:57 ERROR disk /dev/sdb1 is full, writes fail\n".to_owned(),
            n => format!("12:01:{:02} INFO request {n} was served in {} ms\n", n % 60, n * 7 % 90),
        };
        (0..200).map(line).collect()
    }

    #[test]
    fn the_line_that_was_asked_for_stays_with_the_first_and_the_last() {
        let text = log();
        let it = by_words(&text, "why do writes to the disk fail?", 200).unwrap();
        assert!(it.text.contains("disk /dev/sdb1 is full"));
        assert!(it.text.starts_with("12:01:00 INFO request 0 "), "{}", it.text);
        assert!(it.text.trim_end().ends_with("request 199 was served in 43 ms"), "{}", it.text);
        assert!(it.tokens_before > 1500 && it.tokens_after <= 200, "{it:?}");
        assert_eq!(by_words(&text, "why do writes to the disk fail?", 200), Some(it), "twice the same");
    }

    #[test]
    fn a_short_text_is_left_alone() {
        assert_eq!(by_words("a short one", "one", 50), None);
    }

    #[test]
    fn code_and_json_in_prose_stay_whole_or_go_whole() {
        let code = format!("```python\n{}```\n", "x = compute(x)\n".repeat(30));
        let value = format!("{}\n", serde_json::to_string_pretty(&json!({"a": [1, 2, {"b": "c"}]})).unwrap());
        let text = format!(
            "Start of it.\n{code}Middle, about whales.\n{value}{}The end.\n",
            "Filler line.\n".repeat(80)
        );
        let units = Draft::of(&text).units().iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert!(units.contains(&code) && units.contains(&value), "{units:?}");
        for target in [40, 120, 300] {
            let it = by_words(&text, "compute whales", target).unwrap();
            assert_eq!(it.text.matches("```").count() % 2, 0);
            assert!(it.text.contains(&code) || !it.text.contains("compute"), "{target}");
            assert!(it.text.contains(&value) || !it.text.contains("\"b\""), "{target}");
        }
    }

    #[test]
    fn json_keeps_its_shape_its_keys_and_its_numbers() {
        let body = "The harbour was built in 1880. ".repeat(40)
            + "Whales are seen in May. "
            + &"Ships pass. ".repeat(60);
        let text = format!(
            r#"{{"id": 1.10, "title": "Harbour", "body": {}, "tags": ["a", null, true], "body": "short"}}"#,
            Value::from(body)
        );
        let it = by_words(&text, "when are whales seen?", 120).unwrap();
        let value: Value = serde_json::from_str(&it.text).unwrap();
        assert!(value["tags"] == json!(["a", null, true]) && value["title"] == "Harbour");
        assert!(
            it.text.contains("\"id\": 1.10") && it.text.contains("Whales are seen in May."),
            "{}",
            it.text
        );
        assert!(it.tokens_after <= 120);
        let numbers = serde_json::to_string(&(0..4000).collect::<Vec<_>>()).unwrap();
        assert_eq!(by_words(&numbers, "7", 100), None, "numbers cannot be left out");
    }

    #[test]
    fn a_line_without_end_is_cut_into_sentences() {
        let text =
            "One sentence about cats. ".repeat(50) + "Dogs bark at night. " + &"More of cats. ".repeat(50);
        let it = by_words(&text, "dogs", 60).unwrap();
        assert!(it.text.contains("Dogs bark at night.") && it.tokens_after <= 60, "{}", it.text);
    }

    #[test]
    fn the_note_stands_in_every_mark() {
        let text = log();
        let draft = Draft::of(&text);
        let it = draft.shorten(&vec![0.0; draft.units().len()], 200, "; key k1").unwrap();
        assert!(it.text.contains("left out; key k1 …]"));
    }

    proptest! {
        #[test]
        fn every_line_that_is_no_mark_stands_in_the_text(text in "(?s)([a-z ]{0,30}\n|`{3}\n|\\{\"a\":1\\}\n|漢字。){0,60}", target in 5u64..80) {
            let text = format!("Log:\n{text}");
            let draft = Draft::of(&text);
            prop_assert_eq!(draft.units().concat(), text.clone());
            if let Some(it) = draft.shorten(&vec![1.0; draft.units().len()], target, "") {
                prop_assert!(it.tokens_after <= target && it.tokens_after < it.tokens_before);
                for line in it.text.lines().filter(|line| !line.contains("left out")) {
                    prop_assert!(text.contains(line));
                }
            }
        }
    }
}
