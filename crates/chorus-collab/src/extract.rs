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

/// Which option a text chooses: the one that its final answer is or begins with, else the only one that stands as a word
/// in its last line. Options of one or two letters keep their case there, because `a` is also an article.
#[must_use]
pub fn choice(text: &str, options: &[String]) -> Option<usize> {
    if let Some(answer) = final_answer(text)
        && let Some(at) = options.iter().position(|option| sameness(option) == answer)
    {
        return Some(at);
    }
    if let Some(answer) = boxed(text).or_else(|| marked(text)) {
        let answer = answer.trim_start_matches(dressing);
        let mut begun: Vec<usize> = (0..options.len())
            .filter(|at| options.get(*at).is_some_and(|o| begins_with(answer, o)))
            .collect();
        // `New York` and `New` may both be options: the longest one is meant.
        begun.sort_by_key(|at| options.get(*at).map_or(0, String::len));
        if let Some(at) = begun.pop() {
            return Some(at);
        }
    }
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let mut named = (0..options.len()).filter(|at| options.get(*at).is_some_and(|o| has_word(line, o)));
    named.next().filter(|_| named.next().is_none())
}

/// The last number of a text, as it stands there without thousands separators.
#[must_use]
pub fn last_number(text: &str) -> Option<String> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let head = text.get(..end)?;
    let inside = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let start = head.rfind(|c| !inside(c)).map_or(0, |at| at + head.get(at..).map_or(1, first_len));
    let digits = head.get(start..)?.trim_start_matches(['.', ',']).replace(',', "");
    let sign = head.get(..start)?.ends_with('-');
    Some(if sign { format!("-{digits}") } else { digits })
}

fn first_len(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

fn dressing(c: char) -> bool {
    c.is_whitespace() || "()[]{}$*.\"'`".contains(c)
}

fn begins_with(text: &str, option: &str) -> bool {
    let rest = text.get(..option.len()).filter(|head| head.eq_ignore_ascii_case(option));
    rest.is_some() && text.get(option.len()..).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn has_word(line: &str, option: &str) -> bool {
    let short = option.chars().count() <= 2;
    let fold = |text: &str| if short { text.to_owned() } else { text.to_lowercase() };
    let (line, option) = (fold(line), fold(option));
    line.match_indices(&option).any(|(at, found)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line.get(at + found.len()..).and_then(|tail| tail.chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
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
    fn which_option_a_text_chooses() {
        let letters: Vec<String> = ["A", "B", "C"].map(str::to_owned).into();
        let words: Vec<String> = ["approve", "reject", "New", "New York"].map(str::to_owned).into();
        for (text, options, want) in [
            ("ANSWER: B", &letters, Some(1)),
            ("It is a hard one.\nThe answer is (C) because of the sum.", &letters, Some(2)),
            (r"\boxed{A}", &letters, Some(0)),
            ("I take a look: option B it is", &letters, Some(1)),
            ("Either A or B.", &letters, None),
            ("ANSWER: D", &letters, None),
            ("Respuesta: **c**", &letters, Some(2)),
            ("After a review, I reject this.", &words, Some(1)),
            ("Answer: New York, of course", &words, Some(3)),
            ("Neither approve nor reject", &words, None),
            ("", &words, None),
        ] {
            assert_eq!(choice(text, options), want, "{text}");
        }
    }

    #[test]
    fn the_last_number() {
        for (text, want) in [
            ("3 apples and 1,204.50 pears.", Some("1204.50")),
            ("so x = -7.", Some("-7")),
            ("東京は12", Some("12")),
            ("none", None),
        ] {
            assert_eq!(last_number(text).as_deref(), want, "{text}");
        }
    }

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
