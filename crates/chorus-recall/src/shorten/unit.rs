//! Prose as units: lines, sentences of long lines, and blocks that are not cut.

use crate::chunk::{sentences, split_long};
use chorus_wire::tokens::of_text;
use serde::de::IgnoredAny;
use std::ops::Range;

/// A line of more tokens is cut into sentences, and a sentence of more into stretches.
const LINE_TOKENS: u64 = 60;

/// The units of a text; together they are the text.
pub(super) fn units(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let block = fence(rest).or_else(|| value(rest)).unwrap_or(0);
        if block > 0 {
            let (head, tail) = rest.split_at(block);
            found.push(head);
            rest = tail;
            continue;
        }
        let (line, tail) = rest.split_at(line_end(rest, 0));
        push_line(line, &mut found);
        rest = tail;
    }
    found
}

/// [`units`] as ranges of the text.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let range = |unit: &str| {
        let start = at;
        at += unit.len();
        start..at
    };
    units(text).into_iter().map(range).collect()
}

fn push_line<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    if of_text(line) <= LINE_TOKENS {
        found.push(line);
        return;
    }
    for sentence in sentences(line) {
        split_long(sentence, LINE_TOKENS, found);
    }
}

/// Where the line ends that this place is in, its line break included.
fn line_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |at| from + at + 1)
}

/// Where the fenced block ends that the text begins with; one that is never closed ends with the text.
fn fence(text: &str) -> Option<usize> {
    let mark = |line: &str| {
        let line = line.trim_start();
        ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))
    };
    let mut at = line_end(text, 0);
    let opened = mark(text.get(..at)?)?;
    while at < text.len() {
        let end = line_end(text, at);
        let closes = text.get(at..end).is_some_and(|line| line.trim_start().starts_with(opened));
        at = end;
        if closes {
            return Some(at);
        }
    }
    Some(text.len())
}

/// Where the line ends in which the JSON object or list ends that the text begins with.
fn value(text: &str) -> Option<usize> {
    if !text.trim_start_matches([' ', '\t']).starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(line_end(text, values.byte_offset().saturating_sub(1)))
}
