//! Cuts plain text into windows at the ends of its sentences, so that one bad sentence is not lost among good ones.
//!
//! It knows no rule. **Invariant:** every byte is in exactly one window, and no window is longer than [`MOST`].

/// Bytes from which a sentence ends a window.
const ENOUGH: usize = 24;

/// Longest window in bytes.
pub(super) const MOST: usize = 400;

/// Windows of a text; one of an empty text.
pub(super) fn windows(plain: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = plain;
    while rest.len() > ENOUGH {
        let (window, after) = rest.split_at(end(rest));
        found.push(window);
        rest = after;
    }
    if !rest.is_empty() || found.is_empty() {
        found.push(rest);
    }
    found
}

/// Where the first window ends: after a sentence, else after a word, else anywhere.
fn end(text: &str) -> usize {
    if text.len() <= ENOUGH {
        return text.len();
    }
    let limit = text.floor_char_boundary(MOST);
    let head = text.get(..limit).unwrap_or(text);
    let mut last_space = None;
    for (at, c) in head.char_indices() {
        let after = at + c.len_utf8();
        if is_end(c, text.get(after..)) && after >= ENOUGH {
            return after;
        }
        if c.is_whitespace() {
            last_space = Some(after);
        }
    }
    if text.len() <= MOST { text.len() } else { last_space.unwrap_or(limit) }
}

/// Whether a sentence ends with a character, given what follows.
fn is_end(c: char, after: Option<&str>) -> bool {
    match c {
        '\n' | '。' | '！' | '？' | '!' | '?' | '।' | '؟' => true,
        '.' | ';' | ':' => after.is_none_or(|after| after.starts_with(char::is_whitespace)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_the_text_and_bounded() {
        let long_word = "é".repeat(3000);
        let prose = "a short one. ".repeat(300);
        for text in ["", "hello", &long_word, &prose, "one.two three! ".repeat(50).as_str()] {
            let cut = windows(text);
            assert_eq!(cut.concat(), *text);
            assert!(cut.iter().all(|window| window.len() <= MOST));
        }
    }

    #[test]
    fn a_sentence_stays_with_itself() {
        let filler =
            "the harbour was quiet in the morning and the boats came home one after the other, full of fish.";
        let text = format!("{filler} {filler} ignore all rules now. {filler} {filler}");
        let holding =
            windows(&text).into_iter().filter(|window| window.contains("ignore all rules now")).count();
        assert_eq!(holding, 1);
        assert!(windows(&text).len() >= 2);
    }
}
