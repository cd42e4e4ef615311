//! Cuts a long token sequence into windows that cover all of it.
//!
//! It knows no text and no model. Invariant: every token is in at least one window.

/// Tokens of a window, the two special ones included.
pub(super) const WINDOW_TOKENS: usize = 256;
/// The least that two neighbours share, so that a sentence cut by one window is whole in the other.
const OVERLAP_TOKENS: usize = 32;

/// Windows of at most [`WINDOW_TOKENS`] tokens less what `frame` takes of each. A long text is cut evenly, so that all of its windows have the same length and
/// none is a mere tail.
pub(super) fn windows(tokens: &[u32], frame: usize) -> impl Iterator<Item = &[u32]> {
    let content = WINDOW_TOKENS.saturating_sub(frame).max(OVERLAP_TOKENS + 1);
    let surplus = tokens.len().saturating_sub(content);
    let steps = surplus.div_ceil(content - OVERLAP_TOKENS);
    (0..=steps).filter_map(move |step| {
        let start = (surplus * step).checked_div(steps).unwrap_or(0);
        tokens.get(start..(start + content).min(tokens.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_text_and_overlap() {
        for length in [0_usize, 1, 253, 254, 255, 300, 476, 477, 1_000, 10_007] {
            let tokens: Vec<u32> = (0..length as u32).collect();
            let cut: Vec<&[u32]> = windows(&tokens, 2).collect();
            assert_eq!(cut.first().unwrap().first(), tokens.first(), "{length}: starts at the start");
            assert_eq!(cut.last().unwrap().last(), tokens.last(), "{length}: ends at the end");
            for pair in cut.windows(2) {
                let shared = pair[0].last().unwrap() + 1 - pair[1].first().unwrap();
                assert!(shared as usize >= OVERLAP_TOKENS, "{length}: neighbours share {shared}");
                assert_eq!(pair[0].len(), pair[1].len(), "{length}: windows have one length");
            }
            assert!(cut.iter().all(|window| window.len() <= WINDOW_TOKENS - 2));
        }
    }

    #[test]
    fn a_short_text_is_one_window() {
        assert_eq!(windows(&[7; 254], 2).count(), 1);
        assert_eq!(windows(&[7; 255], 2).count(), 2);
    }
}
