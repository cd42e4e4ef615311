//! One encoder pass a text, shared by every learned signal of a request.
//!
//! It knows no rule. A text up to [`PASS_BYTES`] is read whole, window by window; of a longer one, evenly spaced
//! excerpts from its first byte to its last are read, so that the cost has a bound and no stretch is ignored (a head
//! of the text alone would be). **Invariant:** the encoder runs at most once for a text.

use crate::text::excerpts;
use chorus_infer::TextEncoder;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest text that is read whole, and the most that is read of a longer one: 3 KiB, about 750 tokens. The contract's
/// engine reads 2,048 characters of any text (§1.4).
pub const PASS_BYTES: usize = EXCERPTS * EXCERPT_BYTES;

/// Excerpts of a longer text.
const EXCERPTS: usize = 12;

/// Bytes of one excerpt: a paragraph. Short windows cost less a token than long ones, and a short passage outweighs
/// what stands around it sooner.
const EXCERPT_BYTES: usize = 256;

/// A text as vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The mean over windows, a unit vector.
    pub mean: Vec<f32>,
    /// One unit vector a window; at least one.
    pub windows: Vec<Vec<f32>>,
}

/// The encoder that learned signals need.
///
/// # Errors
/// A sentence that says that there is none.
pub(crate) fn loaded(encoder: Option<&dyn TextEncoder>) -> Result<&dyn TextEncoder, String> {
    encoder.ok_or_else(|| "no encoder is loaded".to_owned())
}

/// The encoder passes of one request.
#[derive(Debug, Default)]
pub struct SharedPass {
    texts: Vec<(String, Result<Arc<Encoded>, String>)>,
    runs: usize,
}

impl SharedPass {
    /// No pass yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The vectors of a text, computed at first need.
    ///
    /// # Errors
    /// A sentence that says why the encoder could not; the same text fails again without another try.
    pub fn encode(&mut self, encoder: &dyn TextEncoder, text: &str) -> Result<Arc<Encoded>, String> {
        if let Some((_, known)) = self.texts.iter().find(|(known, _)| known == text) {
            return known.clone();
        }
        self.runs += 1;
        let encoded = encode(encoder, text).map(Arc::new);
        self.texts.push((text.to_owned(), encoded.clone()));
        encoded
    }

    /// The vectors of a text that has been read.
    #[must_use]
    pub fn known(&self, text: &str) -> Option<Arc<Encoded>> {
        let (_, known) = self.texts.iter().find(|(known, _)| known == text)?;
        known.as_ref().ok().cloned()
    }

    /// How many texts the encoder really read.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }
}

fn encode(encoder: &dyn TextEncoder, text: &str) -> Result<Encoded, String> {
    // A padded text repeats itself: equal excerpts are read once.
    let distinct: BTreeSet<&str> = excerpts(text, EXCERPTS, EXCERPT_BYTES).into_iter().collect();
    let mut windows = Vec::new();
    for excerpt in distinct {
        windows.extend(encoder.encode_windows(excerpt).map_err(|fault| fault.to_string())?);
    }
    let mean = mean(&windows).ok_or("the encoder returned no vector")?;
    Ok(Encoded { mean, windows })
}

fn mean(windows: &[Vec<f32>]) -> Option<Vec<f32>> {
    let (first, rest) = windows.split_first()?;
    let mut sum = first.clone();
    for window in rest {
        sum.iter_mut().zip(window).for_each(|(total, value)| *total += value);
    }
    let length = sum.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    sum.iter_mut().for_each(|v| *v /= length);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Broken, WordBag};

    #[test]
    fn a_text_is_read_once() {
        let mut pass = SharedPass::new();
        let first = pass.encode(&WordBag, "one two three").unwrap();
        assert_eq!(first, pass.encode(&WordBag, "one two three").unwrap());
        assert_eq!((pass.known("one two three"), pass.known("one")), (Some(first.clone()), None));
        assert_eq!(pass.runs(), 1);
        pass.encode(&WordBag, "another").unwrap();
        assert_eq!(pass.runs(), 2);
        let length: f32 = first.mean.iter().map(|v| v * v).sum();
        assert!((length - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_end_of_a_long_text_is_read_and_the_cost_is_bounded() {
        let end = "derive the spectral theorem for compact operators on hilbert spaces";
        let text = "filler and more filler ".repeat(20_000) + end;
        let encoded = SharedPass::new().encode(&WordBag, &text).unwrap();
        let wanted = WordBag.encode(&[end]).unwrap();
        // The last window holds the wanted words among filler.
        let nearest = |windows: &[Vec<f32>]| {
            windows.iter().map(|w| crate::bank::cosine(w, &wanted[0])).fold(0.0, f64::max)
        };
        assert!(nearest(&encoded.windows) > 0.3);
        assert!(nearest(&WordBag.encode_windows(&text[..1024]).unwrap()) < 0.1);
        assert!(encoded.windows.len() <= 200);
    }

    #[test]
    fn a_fault_is_kept() {
        let mut pass = SharedPass::new();
        assert_eq!(pass.encode(&Broken, "x"), Err("the encoder broke".to_owned()));
        assert!(pass.encode(&Broken, "x").is_err());
        assert_eq!(pass.runs(), 1);
    }
}
