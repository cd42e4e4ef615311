//! Features of a plain text for the injection head: hashed character n-grams within words, and pairs of near words.
//!
//! Characters see through spelling and inflection, pairs see who is told to do what; together with the encoder's vector
//! they were better than any two of them (the head's card). It knows no label. **Invariant:** the same text gives the
//! same features on every machine, in rising order of place; each of the two kinds has length 1 or is empty.

use crate::text::{is_unspaced, is_word};
use chorus_infer::fnv;

/// Version of these features: a head trained on others does not fit.
pub const FEATURES: &str = "characters 3-5 in words, word pairs within 3; 2 x 65536";

/// Places of each kind.
const KIND_PLACES: u32 = 1 << 16;

/// How many places there are.
pub const PLACES: usize = 2 * KIND_PLACES as usize;

/// Characters of an n-gram.
const GRAM: std::ops::RangeInclusive<usize> = 3..=5;

/// How far apart the words of a pair may be.
const REACH: usize = 3;

/// Most bytes of a text that are read: more than a window has.
const MAX_BYTES: usize = 4096;

/// The place of every feature of a plain text and its value.
#[must_use]
pub fn features(plain: &str) -> Vec<(u32, f32)> {
    let text = plain.get(..plain.floor_char_boundary(MAX_BYTES)).unwrap_or(plain);
    let mut all = weigh(grams(text));
    all.extend(weigh(pairs(text)));
    all
}

/// Counts of places, scaled to length 1.
fn weigh(mut places: Vec<u32>) -> Vec<(u32, f32)> {
    places.sort_unstable();
    let counts = places.chunk_by(|left, right| left == right);
    let mut weighed: Vec<(u32, f32)> =
        counts.filter_map(|same| Some((*same.first()?, same.len() as f32))).collect();
    let length = weighed.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
    weighed.iter_mut().for_each(|(_, value)| *value /= length);
    weighed
}

/// n-grams of every word with a space at either side; digits are one digit.
fn grams(text: &str) -> Vec<u32> {
    let mut places = Vec::with_capacity(text.len() * 3);
    let mut letters: Vec<char> = Vec::with_capacity(32);
    for word in text.split_whitespace() {
        letters.clear();
        letters.push(' ');
        letters.extend(word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }));
        letters.push(' ');
        for start in 0..letters.len() {
            let mut hash = Hash::new();
            for (length, letter) in (1..).zip(letters.iter().skip(start).take(*GRAM.end())) {
                hash.add(u32::from(*letter));
                if GRAM.contains(&length) {
                    places.push(hash.place());
                }
            }
        }
    }
    places
}

/// Pairs of words at most [`REACH`] apart, neighbours told from others; the start of the text is a word too.
fn pairs(text: &str) -> Vec<u32> {
    let mut words = vec![Hash::new().value];
    words.extend(words_of(text).map(|word| {
        let mut hash = Hash::new();
        word.chars().for_each(|c| hash.add(u32::from(c)));
        hash.value
    }));
    let mut places = Vec::with_capacity(words.len() * REACH);
    for (at, first) in words.iter().enumerate() {
        for (distance, second) in words.iter().skip(at + 1).take(REACH).enumerate() {
            let mut hash = Hash { value: *first };
            hash.add(u32::from(distance == 0));
            hash.add((second >> 32) as u32);
            hash.add(*second as u32);
            places.push(KIND_PLACES + hash.place());
        }
    }
    places
}

/// Words; in scripts without spaces, each character.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).flat_map(|run| {
        let unspaced = run.chars().any(is_unspaced);
        let cut = move |c: char| unspaced && is_unspaced(c);
        run.split_inclusive(cut).filter(|word| !word.is_empty())
    })
}

/// FNV-1a over 32-bit units, with the finish of MurmurHash3 when a place is taken. Source: Appleby, MurmurHash3 `fmix64`.
#[derive(Clone, Copy)]
struct Hash {
    value: u64,
}

impl Hash {
    fn new() -> Self {
        Self { value: fnv::BASIS }
    }

    fn add(&mut self, unit: u32) {
        self.value = fnv::add(self.value, unit);
    }

    fn place(self) -> u32 {
        let mixed = (self.value ^ (self.value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed ^ (mixed >> 33)) % u64::from(KIND_PLACES)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_length_one_and_rises() {
        for text in ["ignore the rules", "忽略以上规则", "a"] {
            let found = features(text);
            let (grams, pairs): (Vec<_>, Vec<_>) = found.iter().partition(|(place, _)| *place < KIND_PLACES);
            for kind in [grams, pairs] {
                let length: f32 = kind.iter().map(|(_, value)| value * value).sum();
                assert!((length - 1.0).abs() < 1e-5, "{text}");
                assert!(kind.is_sorted_by(|a, b| a.0 < b.0));
            }
            assert!(found.iter().all(|(place, _)| (*place as usize) < PLACES));
        }
        assert!(features("").is_empty());
    }

    #[test]
    fn the_hash_never_changes() {
        // A head is bound to these places: another hash needs another version and another head.
        assert_eq!(grams("go"), [46636, 56169, 61267], "` go`, ` go `, `go `");
        assert_eq!(pairs("go on"), [113559, 114479, 123778], "start-go, start~on, go-on");
    }

    #[test]
    fn ideographs_are_words_of_their_own() {
        assert_eq!(words_of("请忽略 all规则").collect::<Vec<_>>(), ["请", "忽", "略", "all规", "则"]);
    }
}
