//! How hard a conversation has been, so that an easy turn in the middle of a hard task is served as the task was.
//!
//! An envelope over the difficulties of the turns, as of an audio compressor: it follows a harder turn fast (`attack`) and
//! an easier one slowly (`release`). It knows no signal, no store and no request. Source: contract §1.9
//! (`model_selection.momentum`). Unlike there, what a turn's difficulty was is remembered with the conversation and not
//! guessed from the lengths of earlier messages, and a turn that nobody measured moves nothing.
//!
//! **Invariant:** momentum is in 0..=1.

use chorus_spec::MomentumSettings;

/// Momentum before the first turn.
const NEUTRAL: f64 = 0.5;

/// The difficulty that a level of the `complexity` signal stands for, in 0..=1; `None` for another word.
#[must_use]
pub fn difficulty(level: &str) -> Option<f64> {
    match level {
        "hard" => Some(0.85),
        "medium" => Some(0.5),
        "easy" => Some(0.15),
        _ => None,
    }
}

/// Momentum after a turn of that difficulty.
#[must_use]
pub fn after(before: Option<f64>, difficulty: Option<f64>, settings: &MomentumSettings) -> Option<f64> {
    let Some(difficulty) = difficulty else { return before };
    let before = before.unwrap_or(NEUTRAL);
    let kept = if difficulty > before { settings.attack } else { settings.release };
    Some((kept * before + (1.0 - kept) * difficulty).clamp(0.0, 1.0))
}

/// Whether a turn is easier than the conversation has been so far: momentum with it is above the threshold, and it is
/// known to be below.
#[must_use]
pub fn carries(momentum: Option<f64>, difficulty: Option<f64>, settings: &MomentumSettings) -> bool {
    let above = momentum.is_some_and(|it| it > settings.threshold);
    above && difficulty.is_some_and(|it| it < settings.threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_turn_is_followed_fast_and_easy_ones_slowly() {
        let settings = MomentumSettings::default();
        let mut momentum = after(None, difficulty("hard"), &settings);
        assert!(momentum.is_some_and(|it| (it - 0.745).abs() < 1e-9), "{momentum:?}");
        let mut carried = 0;
        loop {
            momentum = after(momentum, difficulty("easy"), &settings);
            if !carries(momentum, difficulty("easy"), &settings) {
                break;
            }
            carried += 1;
        }
        assert_eq!(carried, 5, "so many easy turns go on with what served the hard one");
    }

    #[test]
    fn a_turn_that_nobody_measured_moves_and_carries_nothing() {
        let settings = MomentumSettings::default();
        assert_eq!(after(Some(0.7), None, &settings), Some(0.7));
        assert_eq!(after(None, None, &settings), None);
        assert!(!carries(Some(0.9), None, &settings));
        assert!(!carries(Some(0.9), difficulty("hard"), &settings), "a hard turn needs no help");
        assert_eq!(difficulty("very"), None);
    }

    #[test]
    fn momentum_stays_within_its_bounds() {
        for (attack, release) in [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)] {
            let settings = MomentumSettings { attack, release, threshold: 0.5 };
            let mut momentum = None;
            for level in ["hard", "easy", "easy", "medium", "hard", "hard", "easy"] {
                momentum = after(momentum, difficulty(level), &settings);
                assert!(momentum.is_some_and(|it| (0.0..=1.0).contains(&it)), "{momentum:?}");
            }
        }
    }
}
