//! Sentences and windows of a text, both bounded.

/// The first sentences of a text, each cut after that many characters.
pub(super) fn of(text: &str, most: usize, chars: usize) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n' | '!' | '?' | '。' | '！' | '？');
    let rough = text.split_inclusive(ends).flat_map(|part| part.split_inclusive(". "));
    let trimmed = rough.map(str::trim).filter(|sentence| sentence.chars().any(char::is_alphanumeric));
    trimmed.take(most).map(|sentence| head(sentence, chars)).collect()
}

/// The first windows of a text, of that many characters.
pub(super) fn windows(text: &str, most: usize, chars: usize) -> Vec<&str> {
    let mut rest = text;
    let mut windows = Vec::new();
    while !rest.is_empty() && windows.len() < most {
        let window = head(rest, chars);
        rest = rest.get(window.len()..).unwrap_or_default();
        windows.push(window);
    }
    windows
}

fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_windows_are_bounded() {
        assert_eq!(of("It is 3.5 m. Is it? Yes!\n\n- so", 9, 99), ["It is 3.5 m.", "Is it?", "Yes!", "- so"]);
        assert_eq!(of("Eins. Zwei. Drei.", 2, 4), ["Eins", "Zwei"]);
        assert_eq!(windows("äbcdefg", 2, 3), ["äbc", "def"]);
        assert!(of("", 3, 3).is_empty() && windows("", 3, 3).is_empty());
    }
}
