//! The answer inside an answer: what a question with one short solution comes down to.
//!
//! It knows no question. **Invariant:** it finds what is written, and never guesses.

use crate::answers::sameness;

/// Words that stand before a final answer, folded; the last one in a text counts. Nine of the languages people ask in.
const MARKERS: [&str; 14] = [
    "answer:",
    "final answer is",
    "answer is",
    "antwort:",
    "antwort ist",
    "respuesta:",
    "respuesta es",
    "réponse :",
    "réponse est",
    "resposta:",
    "risposta:",
    "ответ:",
    "答案：",
    "答案:",
];

/// Longest answer in bytes; a longer one is prose.
const MAX_BYTES: usize = 120;

/// The short answer that a text ends in: the last `\boxed{…}`, else what follows the last marker on its line, else a text
/// that is short itself. In the form of [`sameness`], so that equal answers are equal texts.
#[must_use]
pub fn final_answer(text: &str) -> Option<String> {
    let found = boxed(text).or_else(|| marked(text)).unwrap_or(text);
    let found = found.trim();
    if found.is_empty() || found.len() > MAX_BYTES || found.contains('\n') {
        return None;
    }
    let dressing = |c: char| c.is_whitespace() || "()[]{}$*.".contains(c);
    let core = sameness(found.trim_matches(dressing));
    (!core.is_empty()).then_some(core)
}

fn boxed(text: &str) -> Option<&str> {
    let (_, after) = text.rsplit_once("\\boxed{")?;
    let mut depth = 1;
    let end = after.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        (depth == 0).then_some(at)
    })?;
    after.get(..end)
}

fn marked(text: &str) -> Option<&str> {
    let lines = text.lines().rev();
    lines.into_iter().find_map(|line| {
        let folded = line.to_lowercase();
        let at =
            MARKERS.iter().filter_map(|marker| folded.rfind(marker).map(|at| at + marker.len())).max()?;
        // Folding may change a line's length; such a line is looked at as it was folded by nobody.
        let rest = (folded.len() == line.len()).then(|| line.get(at..)).flatten()?;
        let rest = rest.trim_start_matches([':', ' ', '*']);
        (!rest.trim().is_empty()).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_ends_in() {
        for (text, want) in [
            ("First, 3·4 = 12.\nANSWER: B", Some("b")),
            ("So the answer is **(C)**.", Some("c")),
            ("The answer is 5. No wait.\nThe final answer is 7.", Some("7")),
            (r"thus \boxed{\frac{1}{2}}", Some(r"\frac{1}{2")),
            ("42", Some("42")),
            ("Die Antwort ist 12 km.", Some("12 km")),
            ("推理如下。\n答案：东京", Some("东京")),
            ("Answer:\nI cannot say,\nreally", None),
            ("A long text about many things.\nIt has two lines and comes to no point.", None),
            ("", None),
        ] {
            assert_eq!(final_answer(text).as_deref(), want, "{text}");
        }
    }
}
