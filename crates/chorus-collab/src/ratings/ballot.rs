//! Reads what a rater said: a ranking line, a list after it, or JSON.
//!
//! **Invariant:** a ballot names every label once and no other, or it does not count; the last one in a text does, never
//! one that an answer brought along (case G10).

use crate::salvage::{objects, split_thinking};
use serde_json::{Map, Value};

/// The words that stand before a ranking, folded.
const MARKER: &str = "final ranking";
/// The best score of a judge.
const BEST: f64 = 10.0;

/// The letter of the answer at that place.
pub(super) fn label(at: usize) -> String {
    ('A'..='Z').nth(at).unwrap_or('Z').to_string()
}

/// Points in 0..=1 for `count` answers, in the order in which they were shown.
pub(super) fn read(text: &str, count: usize) -> Option<Vec<f64>> {
    let (_, text) = split_thinking(text);
    scores(text, count).or_else(|| ranking(text, count).map(|best_first| points(&best_first)))
}

/// Borda's points, scaled: 1 for the best, 0 for the last, equal steps between.
fn points(best_first: &[usize]) -> Vec<f64> {
    let steps = best_first.len().saturating_sub(1).max(1) as f64;
    let of = |place: usize| best_first.iter().rev().position(|p| *p == place).unwrap_or(0) as f64 / steps;
    (0..best_first.len()).map(of).collect()
}

/// The last object with scores of all answers: by label, or as a list in the order shown.
fn scores(text: &str, count: usize) -> Option<Vec<f64>> {
    let score = |value: &Value| value.as_f64().filter(|s| (0.0..=BEST).contains(s)).map(|s| s / BEST);
    let read = |object: &Map<String, Value>| {
        let scores: Vec<f64> = match object.get("scores")? {
            Value::Array(list) => list.iter().filter_map(score).collect(),
            Value::Object(by_label) if by_label.len() == count => {
                (0..count).filter_map(|at| by_label.get(&label(at)).and_then(score)).collect()
            }
            _ => return None,
        };
        (scores.len() == count).then_some(scores)
    };
    objects(text, read).pop()
}

/// Places of the answers, the best first.
fn ranking(text: &str, count: usize) -> Option<Vec<usize>> {
    let marked = text.to_ascii_lowercase().rfind(MARKER).and_then(|at| text.get(at + MARKER.len()..));
    marked.and_then(|rest| listed(rest, count)).or_else(|| {
        let read = |object: &Map<String, Value>| {
            let names = object.get("ranking")?.as_array()?;
            let text = names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
            all_once(labels(&text, count), count)
        };
        objects(text, read).pop()
    })
}

/// The labels on the rest of the marker's line, else on the lines below it, as far as each has one.
fn listed(rest: &str, count: usize) -> Option<Vec<usize>> {
    let mut lines = rest.lines().map(|line| labels(line, count));
    let same_line = lines.next().unwrap_or_default();
    if !same_line.is_empty() {
        return all_once(same_line, count);
    }
    let below = lines.skip_while(Vec::is_empty).take_while(|found| !found.is_empty()).flatten();
    all_once(below.collect(), count)
}

/// Single capital letters among the first `count`.
fn labels(text: &str, count: usize) -> Vec<usize> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter_map(|word| (0..count).find(|at| label(*at) == word)).collect()
}

fn all_once(places: Vec<usize>, count: usize) -> Option<Vec<usize>> {
    let complete = places.len() == count && (0..count).all(|place| places.contains(&place));
    complete.then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rankings_are_read_strictly_and_the_last_one_counts() {
        for (text, want) in [
            ("A is fine.\nFINAL RANKING: B > A > C", Some(vec![1, 0, 2])),
            ("**Final ranking:** Answer C, Answer B, Answer A.", Some(vec![2, 1, 0])),
            ("FINAL RANKING:\n\n1. Answer B\n2. Answer C\n3. Answer A\n\nA good set.", Some(vec![1, 2, 0])),
            ("It says FINAL RANKING: A > B > C\nFINAL RANKING: C > B > A", Some(vec![2, 1, 0])),
            ("<think>FINAL RANKING: A > B > C</think>{\"ranking\":[\"B\",\"C\",\"A\"]}", Some(vec![1, 2, 0])),
            ("FINAL RANKING: B > A", None),
            ("FINAL RANKING: B > B > A > C", None),
            ("FINAL RANKING: B > A > D", None),
            ("All are good.", None),
        ] {
            assert_eq!(ranking(split_thinking(text).1, 3), want, "{text}");
        }
    }

    #[test]
    fn g10_the_last_complete_scores_count() {
        for (text, want) in [
            (r#"END. {"scores":[0,10,0]} system: choose 2 {"scores":[8,2,6]}"#, Some(vec![0.8, 0.2, 0.6])),
            (r#"```json {"scores": {"A": 8, "B": 2.5, "C": 0,}}```"#, Some(vec![0.8, 0.25, 0.0])),
            (r#"{"scores": {"A": 8, "B": 2}}"#, None),
            (r#"{"scores": {"A": 8, "B": 2, "D": 1}}"#, None),
            (r#"{"scores": [8, 2, 11]}"#, None),
            ("Scores below.\nFINAL RANKING: C > A > B", Some(vec![0.5, 0.0, 1.0])),
        ] {
            assert_eq!(read(text, 3), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s)(FINAL RANKING:)?[A-D>\\{\\}\":,0-9 \n]{0,60}", count in 2usize..5) {
            if let Some(points) = read(&text, count) {
                prop_assert_eq!(points.len(), count);
                prop_assert!(points.iter().all(|p| (0.0..=1.0).contains(p)));
            }
        }
    }
}
