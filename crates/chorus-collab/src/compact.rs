//! Cuts texts fairly to fit a window: the longest first, head and tail kept, each cut marked (case G20).
//!
//! **Invariant:** no text is dropped, and no text is cut while a longer one stays whole.

/// What is left of a text that must be cut at least, in bytes.
const MIN_BYTES: usize = 240;
/// Room for the mark of a cut, in bytes.
const MARK_BYTES: usize = 40;

/// One text after the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// What is shown.
    pub(crate) text: String,
    /// Bytes it had.
    pub(crate) from_bytes: usize,
}

impl Cut {
    /// Whether anything was left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.text.len() < self.from_bytes
    }
}

/// The texts within `room` bytes together; `None` when they do not fit even at their least.
pub(crate) fn fit(texts: &[&str], room: usize) -> Option<Vec<Cut>> {
    let level = water_level(texts, room)?;
    Some(texts.iter().map(|text| cut(text, level)).collect())
}

/// The length to which longer texts are cut, so that all take at most `room`: `max L` with `Σ min(len, L) ≤ room`.
fn water_level(texts: &[&str], room: usize) -> Option<usize> {
    let mut lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    lengths.sort_unstable();
    let mut left = room;
    let mut above = lengths.len();
    for length in lengths {
        let share = left / above;
        if length > share {
            return (share >= MIN_BYTES).then_some(share);
        }
        left -= length;
        above -= 1;
    }
    Some(usize::MAX)
}

/// Head (two thirds) and tail (one third) of a text longer than `level`, with a mark between them.
fn cut(text: &str, level: usize) -> Cut {
    let from_bytes = text.len();
    if from_bytes <= level {
        return Cut { text: text.to_owned(), from_bytes };
    }
    let kept = level.saturating_sub(MARK_BYTES);
    let head_end = text.floor_char_boundary(kept / 3 * 2);
    let tail_start = text.ceil_char_boundary(from_bytes - kept / 3);
    let head = text.get(..head_end).unwrap_or_default();
    let tail = text.get(tail_start..).unwrap_or_default();
    let text = format!("{head}\n[… {} bytes cut …]\n{tail}", tail_start - head_end);
    Cut { text, from_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn g20_the_longest_are_cut_and_marked() {
        let (short, long, longer) =
            ("s".repeat(300), "l".repeat(5000), format!("HEAD{}TAIL", "x".repeat(9000)));
        let cuts = fit(&[&short, &long, &longer], 4300).unwrap();
        assert_eq!(cuts.iter().map(Cut::is_cut).collect::<Vec<_>>(), [false, true, true]);
        assert!(cuts[2].text.starts_with("HEAD") && cuts[2].text.ends_with("TAIL"));
        assert!(cuts[1].text.contains("bytes cut …]"));
        assert!(cuts[1].text.len() > 1900, "{}", cuts[1].text.len());
    }

    #[test]
    fn what_fits_is_whole_and_what_cannot_fit_is_none() {
        assert!(fit(&["a", "b"], 2).unwrap().iter().all(|c| !c.is_cut()));
        assert_eq!(fit(&[], 0), Some(Vec::new()));
        let text = "x".repeat(1000);
        assert_eq!(fit(&[&text, &text], 2 * MIN_BYTES - 1), None);
        assert!(fit(&[&text, &text], 2 * MIN_BYTES).is_some());
    }

    proptest! {
        #[test]
        fn cuts_keep_to_the_room(texts in prop::collection::vec("(?s).{0,900}", 0..6), room in 0usize..4000) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            if let Some(cuts) = fit(&texts, room) {
                prop_assert!(cuts.iter().map(|c| c.text.len()).sum::<usize>() <= room);
                let least_cut = cuts.iter().filter(|c| c.is_cut()).map(|c| c.from_bytes).min();
                let longest_whole = cuts.iter().filter(|c| !c.is_cut()).map(|c| c.from_bytes).max();
                prop_assert!(least_cut.zip(longest_whole).is_none_or(|(cut, whole)| whole <= cut));
            }
        }
    }
}
