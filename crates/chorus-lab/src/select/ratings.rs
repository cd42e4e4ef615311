//! The artifact of `elo`: a Bradley–Terry fit of every pair of graded answers.

use super::graded::Graded;
use chorus_select::elo::{Rating, Ratings};
use std::collections::BTreeMap;

/// Rounds of the fit; it has come to rest long before.
const ROUNDS: usize = 500;

/// Wins and ties of a pair that nobody has seen, so that a model that always won has a rating.
const PRIOR: f64 = 0.5;

/// Ratings by maximum likelihood, a tie as half a win on each side. Source: Hunter 2004 (minorise, maximise).
pub(super) fn fit(train: &Graded) -> Ratings {
    let count = train.models.len();
    let mut counts = vec![(0u64, 0u64, 0u64); count];
    let mut points = vec![vec![PRIOR; count]; count];
    for grades in train.grades() {
        for (one, own) in grades.iter().enumerate() {
            for (other, their) in grades.iter().enumerate().filter(|(other, _)| *other != one) {
                let won = if own > their {
                    1.0
                } else if own < their {
                    0.0
                } else {
                    0.5
                };
                if let Some(cell) = points.get_mut(one).and_then(|row| row.get_mut(other)) {
                    *cell += won;
                }
                if let Some((all, wins, losses)) = counts.get_mut(one) {
                    *all += 1;
                    *wins += u64::from(own > their);
                    *losses += u64::from(own < their);
                }
            }
        }
    }
    let strengths = strengths(&points);
    let mean = strengths.iter().map(|it| it.ln()).sum::<f64>() / count.max(1) as f64;
    let named =
        train.models.iter().zip(strengths).zip(counts).map(|((model, it), (comparisons, wins, losses))| {
            let rating = 1500.0 + 400.0 * (it.ln() - mean) / std::f64::consts::LN_10;
            (model.clone(), Rating { rating, comparisons, wins, losses })
        });
    Ratings::new(train.digest(), named.collect(), BTreeMap::new())
}

fn strengths(points: &[Vec<f64>]) -> Vec<f64> {
    let mut strengths = vec![1.0f64; points.len()];
    let at =
        |row: usize, column: usize| points.get(row).and_then(|it| it.get(column)).copied().unwrap_or(0.0);
    for _ in 0..ROUNDS {
        let next = |(one, own): (usize, &f64)| {
            let others = strengths.iter().enumerate().filter(|(other, _)| *other != one);
            let (mut won, mut met) = (0.0, 0.0);
            for (other, their) in others {
                won += at(one, other);
                met += (at(one, other) + at(other, one)) / (own + their);
            }
            if met > 0.0 { won / met } else { *own }
        };
        strengths = strengths.iter().enumerate().map(next).collect();
    }
    strengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odds_of_wins_are_recovered() {
        // 3 to 1 and 3 to 1: about 191 points each.
        let points = vec![vec![0.0, 300.0, 450.0], vec![100.0, 0.0, 300.0], vec![50.0, 100.0, 0.0]];
        let it = strengths(&points);
        assert!((it[0] / it[1] - 3.0).abs() < 0.1 && (it[1] / it[2] - 3.0).abs() < 0.1, "{it:?}");
    }
}
