//! What a text is written with, as one vector: words, letters and marks, hashed into a fixed number of places.
//!
//! It knows no label and no model. A sentence encoder of one language sees little in another; words and runs of letters
//! are seen in any, so a head that takes both learns from each. Invariant: the same text gives the same vector on
//! every machine, and a text that does not fit into [`READ_BYTES`] is read at both of its ends.

use crate::encoder::{EncodeFault, TextEncoder};
use crate::fnv;

/// Length of the vector.
pub const DIMENSION: usize = 4096;

/// Most bytes that are read: half of them from the beginning, half from the end.
pub const READ_BYTES: usize = 4096;

/// What the features are; part of a head's encoder digest, so that a head never meets features of another kind.
const KIND: &str = "lexical-1";

/// Lengths of the three groups' parts of the vector. The encoder's vector, which is of length 1, stands beside them.
const WORDS: f32 = 0.8;
const LETTERS: f32 = 0.6;
const MARKS: f32 = 0.4;

/// Shortest and longest run of letters within a word of a script with spaces.
const RUNS: std::ops::RangeInclusive<usize> = 3..=5;

/// The vector of a text: signed sums, each group of features of a fixed length.
/// Source: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning", §2.
#[must_use]
pub fn features(text: &str) -> Vec<f32> {
    let (head, tail) = ends(text);
    let mut letters = folded(head);
    letters.push(' ');
    letters.push_str(&folded(tail));
    let words = words(&letters);
    let mut vector = vec![0.0; DIMENSION];
    add(&mut vector, WORDS, &word_features(&words));
    add(&mut vector, LETTERS, &letter_features(&words));
    add(&mut vector, MARKS, &marks(&letters, words.len()));
    vector
}

/// An encoder's vector of a text with its [`features`] behind it.
#[must_use]
pub fn join(embedding: &[f32], text: &str) -> Vec<f32> {
    let mut joined = embedding.to_vec();
    joined.extend(features(text));
    joined
}

/// The digest that a head over [`join`]ed vectors names.
#[must_use]
pub fn digest(encoder_digest: &str) -> String {
    format!("{encoder_digest}+{KIND}")
}

/// An encoder whose vectors are [`join`]ed ones: what a head over both is trained on.
pub struct WithFeatures<'a> {
    encoder: &'a dyn TextEncoder,
    digest: String,
}

impl std::fmt::Debug for WithFeatures<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WithFeatures").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl<'a> WithFeatures<'a> {
    /// Puts the features behind an encoder's vectors.
    #[must_use]
    pub fn new(encoder: &'a dyn TextEncoder) -> Self {
        Self { digest: digest(encoder.digest()), encoder }
    }
}

impl TextEncoder for WithFeatures<'_> {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn dimension(&self) -> usize {
        self.encoder.dimension() + DIMENSION
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let vectors = self.encoder.encode(texts)?;
        Ok(vectors.iter().zip(texts).map(|(vector, text)| join(vector, text)).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let windows = self.encoder.encode_windows(text)?;
        Ok(windows.iter().map(|window| join(window, text)).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.encoder.count_tokens(text)
    }
}

/// The parts of a text that are read; the second is empty when the first is all.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= READ_BYTES {
        return (text, "");
    }
    let head = text.floor_char_boundary(READ_BYTES / 2);
    let tail = text.floor_char_boundary(text.len() - READ_BYTES / 2);
    (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default())
}

/// Small letters; full-width forms as the usual ones; apostrophes gone, so that "don't" and "dont" are one word.
fn folded(text: &str) -> String {
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xFF01..=0xFF5E => char::from_u32(wide - 0xFEE0).unwrap_or(c),
        0x3000 => ' ',
        _ => c,
    };
    let kept = text.chars().map(narrow).filter(|c| !matches!(c, '\'' | '’' | '`'));
    kept.flat_map(char::to_lowercase).collect()
}

fn words(text: &str) -> Vec<&str> {
    // Combining marks belong to their words: Devanagari and Thai write vowels with them.
    let inside = |c: char| c.is_alphanumeric() || is_mark(c);
    text.split(|c: char| !inside(c)).filter(|word| !word.is_empty()).collect()
}

/// Whether a character is a vowel sign or the like, within the Indic, Thai, Arabic and Latin blocks.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x064B..=0x0652 | 0x0900..=0x0DFF | 0x0E31..=0x0E4E)
}

/// Whether a word is of a script that puts no spaces between words.
fn is_unspaced(word: &str) -> bool {
    word.chars().any(|c| {
        matches!(u32::from(c), 0x0E00..=0x0EFF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
    })
}

/// Words, pairs and triples of them, and what the text begins and ends with.
fn word_features(words: &[&str]) -> Vec<u64> {
    let mut found = Vec::with_capacity(words.len() * 3 + 4);
    for width in 1..=3 {
        found.extend(words.windows(width).map(|run| hash("word", run)));
    }
    for width in 1..=2 {
        found.extend(words.get(..width).map(|run| hash("first", run)));
        found.extend(
            words.len().checked_sub(width).and_then(|at| words.get(at..)).map(|run| hash("last", run)),
        );
    }
    found
}

/// Runs of letters of every word, its ends marked; of an unspaced run every one, two and three letters.
fn letter_features(words: &[&str]) -> Vec<u64> {
    let mut found = Vec::new();
    for word in words {
        let unspaced = is_unspaced(word);
        let letters: Vec<char> =
            if unspaced { word.chars().collect() } else { format!("<{word}>").chars().collect() };
        for width in if unspaced { 1..=3 } else { RUNS } {
            for run in letters.windows(width) {
                let run: String = run.iter().collect();
                found.push(hash("letters", &[run.as_str()]));
            }
        }
    }
    found
}

/// Marks that say what a text is, whatever its language: a question, code, figures, its length.
fn marks(text: &str, words: usize) -> Vec<u64> {
    let asks = |c: char| matches!(c, '?' | '؟' | '？' | '¿');
    let ends_asking = text.trim_end().ends_with(asks);
    let code = ["def ", "();", "{", "==", "=>", "</", "import ", "->", "= ["];
    let shown = [
        ("asks", text.contains(asks)),
        ("ends asking", ends_asking),
        ("exclaims", text.contains(['!', '！'])),
        ("figures", text.contains(|c: char| c.is_numeric())),
        ("code", code.iter().any(|mark| text.contains(mark))),
        ("lines", text.trim().contains('\n')),
        ("quotes", text.contains(['"', '“', '«', '「'])),
        ("colon", text.contains([':', '：'])),
    ];
    let mut found: Vec<u64> =
        shown.iter().filter(|(_, holds)| *holds).map(|(name, _)| hash("mark", &[name])).collect();
    found.push(hash("length", &[&(words.max(1).ilog2()).to_string()]));
    found
}

/// The hash of a group's name and its parts.
fn hash(group: &str, parts: &[&str]) -> u64 {
    fnv::of(std::iter::once(&group).chain(parts).flat_map(|part| part.bytes().chain([0])))
}

/// Adds a group's features, its part of the vector scaled to `length`.
fn add(vector: &mut [f32], length: f32, features: &[u64]) {
    let mut part = vec![0.0_f32; vector.len()];
    for feature in features {
        // FNV mixes its low bits worst for short inputs: fold the high half in.
        let mixed = (feature ^ feature >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (mixed >> 20) as usize % DIMENSION;
        if let Some(slot) = part.get_mut(place) {
            *slot += if mixed >> 63 == 0 { 1.0 } else { -1.0 };
        }
    }
    let norm = part.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().zip(part).for_each(|(slot, value)| *slot += length * value / norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(left: &str, right: &str) -> f32 {
        features(left).iter().zip(features(right)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_same_words_are_near_whatever_their_form() {
        let exact = dot("that is wrong", "that is wrong");
        for (left, right) in
            [("That's WRONG!", "thats wrong!"), ("Ｗｒｏｎｇ answer", "wrong answer"), ("don’t", "don't")]
        {
            assert!((dot(left, right) - exact).abs() < 0.15, "{left} / {right}: {}", dot(left, right));
        }
        assert!(dot("das ist leider falsch", "das ist falsch") > dot("das ist falsch", "danke, perfekt"));
        assert!(dot("这个答案不对", "你的答案不对") > dot("这个答案不对", "谢谢你的帮助") + 0.1);
    }

    #[test]
    fn a_group_has_its_length_however_long_the_text_is() {
        let longest = WORDS + LETTERS + MARKS;
        for text in ["no", "¿por qué?", &"a long text of many words ".repeat(400)] {
            let length = features(text).iter().map(|v| v * v).sum::<f32>().sqrt();
            assert!(length > 0.8 && length <= longest, "{length}");
        }
        assert!(features("").iter().any(|value| *value != 0.0), "the length of nothing is a mark too");
    }

    #[test]
    fn of_a_long_text_both_ends_are_read() {
        let filler = "filler ".repeat(2_000);
        let (plain, begun, ended) =
            (features(&filler), features(&format!("thanks {filler}")), features(&format!("{filler} thanks")));
        assert_ne!(plain, begun);
        assert_ne!(plain, ended);
        let middle = format!("{}é{}", "é".repeat(4_000), "é".repeat(4_000));
        assert_eq!(features(&middle).len(), DIMENSION);
    }

    #[test]
    fn scripts_without_spaces_have_letters_for_words() {
        assert!(!letter_features(&words("错了")).is_empty());
        assert_eq!(letter_features(&["错了"]).len(), 3);
        // Two letters between two marks: runs of three and of four.
        assert_eq!(letter_features(&["no"]).len(), 3);
        assert_eq!(words("क्यों नहीं").len(), 2);
    }
}
