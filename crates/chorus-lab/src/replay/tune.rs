//! Chooses the thresholds of a cascade: the most accurate ones on the training half whose cost stays below a cap.
//!
//! **Invariant:** the last step of a path always answers, whatever it seems likely to be.

use super::score::Scored;

/// Thresholds that are tried, in percent.
const GRID: std::ops::RangeInclusive<u32> = 30..=99;
/// Distance of two of them, in percent.
const STRIDE: usize = 3;

/// One training question: after each step, whether the leader is right, how likely it seems, and what was paid so far.
pub(super) type Path = Vec<(bool, f64, f64)>;

/// Thresholds of the steps before the last, of at most two of them.
pub(super) type Thresholds = [f64; 2];

/// The thresholds, and the right answers with them; none where no thresholds stay below the cap.
pub(super) fn thresholds(paths: &[Path], cap: f64) -> Option<(Thresholds, usize)> {
    let grid = || GRID.step_by(STRIDE).map(|percent| f64::from(percent) / 100.0);
    let mut best: Option<(Thresholds, usize, f64)> = None;
    for first in grid() {
        for second in grid() {
            let (right, paid) = outcome(paths, [first, second]);
            let better = best.is_none_or(|(_, most, least)| right > most || (right == most && paid < least));
            if paid <= cap * paths.len() as f64 && better {
                best = Some(([first, second], right, paid));
            }
        }
    }
    best.map(|(thresholds, right, _)| (thresholds, right))
}

/// Right answers, and what was paid.
fn outcome(paths: &[Path], thresholds: Thresholds) -> (usize, f64) {
    paths.iter().fold((0, 0.0), |(right, paid), path| {
        let stop = path.iter().zip(thresholds).find(|((_, share, _), needed)| share >= needed);
        let end = stop.map(|(step, _)| step).filter(|_| path.len() > 1).or(path.last());
        end.map_or((right, paid), |(is_right, _, price)| (right + usize::from(*is_right), paid + price))
    })
}

/// The path of a run that stopped nowhere; `prices` is what each step costs.
pub(super) fn path(scored: &Scored, prices: &[f64], is_right: impl Fn(Option<&str>) -> bool) -> Path {
    let mut paid = 0.0;
    let steps = scored.trace.steps.iter().zip(prices);
    steps
        .map(|(step, price)| {
            paid += price;
            (is_right(step.leader.as_deref()), step.share.unwrap_or_default(), paid)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_accurate_thresholds_below_the_cap() {
        let sure = || vec![(true, 0.95, 1.0), (true, 0.95, 2.0), (true, 0.95, 7.0)];
        let unsure = || vec![(false, 0.5, 1.0), (false, 0.6, 2.0), (true, 0.9, 7.0)];
        let paths: Vec<Path> = vec![sure(), unsure()];
        let (rich, right) = thresholds(&paths, 4.0).unwrap();
        assert_eq!((outcome(&paths, rich), right), ((2, 8.0), 2));
        let (poor, right) = thresholds(&paths, 1.0).unwrap();
        assert_eq!((outcome(&paths, poor), right), ((1, 2.0), 1));
        assert_eq!(thresholds(&paths, 0.5), None);
    }

    #[test]
    fn the_last_step_answers_in_any_case() {
        let two_steps: Vec<Path> = vec![vec![(false, 0.1, 1.0), (true, 0.2, 6.0)]];
        assert_eq!(outcome(&two_steps, [0.9, 0.9]), (1, 6.0));
    }
}
