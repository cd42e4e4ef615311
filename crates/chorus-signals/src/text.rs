//! Text made comparable: NFKC, optional case folding, one space for any run of white space; and what a word is.
//!
//! It knows no signal. **Invariant:** a keyword and a text that went through the same [`Case`] can be compared byte
//! by byte.

use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

/// Whether capital letters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Letters as written.
    Exact,
    /// Letters folded.
    Folded,
}

impl Case {
    /// The case mode of a rule's `case_sensitive`.
    pub(crate) fn of(case_sensitive: bool) -> Self {
        if case_sensitive { Self::Exact } else { Self::Folded }
    }
}

/// A text in comparable form, with its words found at most once.
#[derive(Debug)]
pub(crate) struct Comparable {
    text: String,
    words: OnceLock<Vec<(usize, usize)>>,
}

impl Comparable {
    /// Brings a text into comparable form.
    pub(crate) fn of(text: &str, case: Case) -> Self {
        Self { text: comparable(text, case), words: OnceLock::new() }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Byte ranges of the words: by UAX #29, so that a run of ideographs is one word each.
    pub(crate) fn words(&self) -> &[(usize, usize)] {
        self.words.get_or_init(|| {
            self.text.unicode_word_indices().map(|(start, word)| (start, start + word.len())).collect()
        })
    }

    /// How many units of language the text holds: words, and ideographs one by one.
    pub(crate) fn units(&self) -> usize {
        self.words().len()
    }

    /// Runs of `width` consecutive words, as they stand in the text; none when the text is shorter.
    pub(crate) fn runs(&self, width: usize) -> impl Iterator<Item = &str> {
        self.words().windows(width.max(1)).filter_map(|run| {
            let (start, end) = (run.first()?.0, run.last()?.1);
            self.text.get(start..end)
        })
    }
}

/// A text in comparable form.
pub(crate) fn comparable(text: &str, case: Case) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|b| !b.is_ascii());
        // A mark may join the letter before it; nothing else that is ASCII changes beside what is not.
        let (plain, other) = rest.split_at(ascii.map_or(rest.len(), |at| at.saturating_sub(1)));
        push_ascii(&mut out, plain, case);
        let joined = usize::from(ascii.is_some_and(|at| at > 0));
        let end = other.bytes().skip(joined).position(|b| b.is_ascii()).map_or(other.len(), |at| at + joined);
        let (other, after) = other.split_at(end);
        other.nfkc().for_each(|c| push(&mut out, c, case));
        rest = after;
    }
    if out.ends_with(' ') {
        out.pop();
    }
    out
}

/// The same form where every character is its own, word by word instead of letter by letter.
fn push_ascii(out: &mut String, text: &str, case: Case) {
    let from = out.len();
    for (at, word) in text.split(char::is_whitespace).enumerate() {
        if at > 0 {
            push(out, ' ', case);
        }
        out.push_str(word);
    }
    if let (Case::Folded, Some(new)) = (case, out.get_mut(from..)) {
        new.make_ascii_lowercase();
    }
}

fn push(out: &mut String, c: char, case: Case) {
    if c.is_whitespace() {
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        return;
    }
    if case == Case::Exact {
        out.push(c);
        return;
    }
    match c {
        'A'..='Z' => out.push(c.to_ascii_lowercase()),
        _ if c.is_ascii() => out.push(c),
        // The two folds that lower-casing alone does not do: sharp s, and sigma at the end of a word.
        'ß' | 'ẞ' => out.push_str("ss"),
        'ς' => out.push('σ'),
        _ => out.extend(c.to_lowercase()),
    }
}

/// At most `count` stretches of about `bytes` bytes each, evenly spaced from a text's first byte to its last; the
/// whole text when it is no longer than that.
pub(crate) fn excerpts(text: &str, count: usize, bytes: usize) -> Vec<&str> {
    if text.len() <= count * bytes || count < 2 {
        return vec![text];
    }
    let cut = |at: usize| {
        let start = at * (text.len() - bytes) / (count - 1);
        text.get(text.floor_char_boundary(start)..text.floor_char_boundary(start + bytes))
    };
    (0..count).filter_map(cut).collect()
}

/// Whether a character belongs to a word.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_combining_mark(c)
}

/// Whether a character is of a script that writes words without spaces between them, or that hangs its particles on
/// the word (Hangul): a word may begin or end beside it anywhere.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF            // Thai, Lao
        | 0x1000..=0x109F          // Myanmar
        | 0x1780..=0x17FF          // Khmer
        | 0x1100..=0x11FF          // Hangul Jamo
        | 0x3005..=0x3007          // ideographic iteration mark, closing mark, zero
        | 0x3040..=0x30FF          // Hiragana, Katakana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF          // Han
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7FF          // Hangul
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_case_and_white_space_do_not_matter() {
        for (text, want) in [
            ("  TAX \n\t Return ", "tax return"),
            ("Ｐｙｔｈｏｎ，ok", "python,ok"),
            ("cafe\u{301}", "café"),
            ("STRASSE Straße", "strasse strasse"),
            ("ΟΔΟΣ", "οδοσ"),
            ("", ""),
        ] {
            assert_eq!(comparable(text, Case::Folded), want);
        }
        assert_eq!(comparable("Tax  A", Case::Exact), "Tax A");
    }

    #[test]
    fn stretches_of_ascii_do_not_change_the_form_of_what_is_between() {
        for text in [
            "cafe\u{301} e\u{301}",
            "\u{301}a",
            "x ﬁ y",
            "a\u{a0}\u{2003}b",
            "한\u{1100}\u{1161} k",
            "Ⅳ IV",
            "1⁄2 ½",
        ] {
            for case in [Case::Exact, Case::Folded] {
                let mut whole = String::new();
                text.nfkc().for_each(|c| push(&mut whole, c, case));
                assert_eq!(comparable(text, case), whole.trim_end(), "{text:?}");
            }
        }
    }

    #[test]
    fn ascii_is_made_comparable_as_any_other_text_is() {
        for text in [" A\tb\r\nC ", "a\u{b}b", "\u{c}X\u{1f}y", "  ", "one"] {
            for case in [Case::Exact, Case::Folded] {
                // A letter outside ASCII takes the long way.
                let long = comparable(&format!("{text} é"), case);
                assert_eq!(format!("{} é", comparable(text, case)).trim_start(), long, "{text:?}");
            }
        }
    }

    #[test]
    fn excerpts_reach_from_the_first_byte_to_the_last() {
        let text = format!("a{}z", "é".repeat(5000));
        let cuts = excerpts(&text, 4, 100);
        assert_eq!(cuts.len(), 4);
        assert!(cuts[0].starts_with('a') && cuts[3].ends_with('z'));
        assert!(cuts.iter().all(|cut| (98..=102).contains(&cut.len())));
        assert_eq!(excerpts("short", 4, 100), ["short"]);
    }

    #[test]
    fn ideographs_are_units_of_their_own() {
        assert_eq!(Comparable::of("compare two plans", Case::Folded).units(), 3);
        assert_eq!(Comparable::of("不超过三天", Case::Folded).units(), 5);
        assert_eq!(Comparable::of("a b c", Case::Folded).runs(2).collect::<Vec<_>>(), ["a b", "b c"]);
        assert_eq!(Comparable::of("a", Case::Folded).runs(2).count(), 0);
    }
}
