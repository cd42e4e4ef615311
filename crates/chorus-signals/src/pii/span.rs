//! A place in a text that is taken to be personal data, and who wins where two of them meet.
//!
//! It knows no rule. **Invariant:** settled spans are in the text's order and never overlap.

use super::entity::Entity;
use std::cmp::Reverse;
use std::ops::Range;

/// A finding in bytes, as recognisers make it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) entity: Entity,
    pub(super) bytes: Range<usize>,
    pub(super) score: f64,
    pub(super) recogniser: &'static str,
}

/// A finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub entity: Entity,
    /// First character, counted in Unicode scalar values from 0.
    pub start: usize,
    /// One past the last character, counted like `start`.
    pub end: usize,
    /// How sure and how personal it is, in 0..=1.
    pub score: f64,
    /// Which rule found it.
    pub recogniser: &'static str,
}

/// Drops what overlaps a better finding: a higher score, then a longer text, then the earlier one.
pub(super) fn settle(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| {
            (Reverse(a.bytes.len()), a.bytes.start, a.entity).cmp(&(
                Reverse(b.bytes.len()),
                b.bytes.start,
                b.entity,
            ))
        })
    });
    // Kept ends by start: what overlaps a new span begins before its end, and is the last to do so.
    let mut kept = std::collections::BTreeMap::<usize, Span>::new();
    for span in spans {
        let before = kept.range(..span.bytes.end).next_back();
        if !span.bytes.is_empty() && before.is_none_or(|(_, other)| other.bytes.end <= span.bytes.start) {
            kept.insert(span.bytes.start, span);
        }
    }
    kept.into_values().collect()
}

/// Byte places as character places, in one pass over the text.
pub(super) fn findings(text: &str, spans: &[Span]) -> Vec<Finding> {
    let (mut byte, mut character) = (0, 0);
    let mut place = |target: usize| {
        character += text.get(byte..target).map_or(0, |part| part.chars().count());
        byte = target;
        character
    };
    let found = spans.iter().map(|span| Finding {
        entity: span.entity,
        start: place(span.bytes.start),
        end: place(span.bytes.end),
        score: span.score,
        recogniser: span.recogniser,
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: Range<usize>, score: f64) -> Span {
        Span { entity: Entity::PhoneNumber, bytes, score, recogniser: "test" }
    }

    #[test]
    fn the_better_then_the_longer_one_stays() {
        let spans =
            vec![span(0..4, 0.5), span(3..9, 0.9), span(8..12, 0.9), span(12..13, 0.4), span(3..8, 0.9)];
        let settled = settle(spans);
        assert_eq!(settled, [span(3..9, 0.9), span(12..13, 0.4)]);
        assert_eq!(settle(vec![span(2..5, 0.5), span(0..9, 0.5), span(4..4, 1.0)]), [span(0..9, 0.5)]);
    }

    #[test]
    fn places_are_characters() {
        let found = findings("é😀ab ü c", &[span(6..8, 1.0), span(9..11, 1.0)]);
        assert_eq!(found.iter().map(|f| (f.start, f.end)).collect::<Vec<_>>(), [(2, 4), (5, 6)]);
    }
}
