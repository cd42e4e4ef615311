//! Series that were counted lately, found by borrowed words: the usual request finds its own without making a label.
//!
//! It knows no metric. **Invariant:** at most [`KEPT`] are kept; what is not among them is looked for where all are.

use std::sync::{Mutex, PoisonError};

/// Most that are kept.
const KEPT: usize = 32;

/// Series by the labels that lead to them.
#[derive(Debug)]
pub(super) struct Lately<L, S>(Mutex<Vec<(L, S)>>);

impl<L, S> Default for Lately<L, S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L, S: Clone> Lately<L, S> {
    /// The series whose labels are these; `find` makes the labels and finds the series where it has not been seen lately.
    pub(super) fn series(&self, is: impl Fn(&L) -> bool, find: impl FnOnce() -> (L, S)) -> S {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, series)) = kept.iter().find(|(labels, _)| is(labels)) {
            return series.clone();
        }
        let (labels, series) = find();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push((labels, series.clone()));
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_looked_for_once_while_it_is_kept() {
        let lately = Lately::<usize, usize>::default();
        let of = |wanted: usize, found: bool| {
            let series =
                lately.series(|labels| *labels == wanted, || (wanted, wanted * 2 + usize::from(!found)));
            assert_eq!(series, wanted * 2, "{wanted}");
        };
        (0..KEPT).for_each(|n| of(n, true));
        (0..KEPT).for_each(|n| of(n, false));
        of(KEPT, true);
        of(0, true);
    }
}
