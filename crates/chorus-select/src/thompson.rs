//! `thompson`: a draw from what is believed about each candidate.

use crate::ask::{Candidate, SelectionAsk};
use crate::choice::{Choice, drawn};
use crate::doc::SelectorDoc;
use crate::elo::Ratings;
use crate::selector::Selector;
use chorus_spec::ThompsonSettings;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Beta, Distribution};

/// Quality that is assumed of a card without a `quality_score`.
const UNKNOWN_QUALITY: f64 = 0.5;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "thompson",
    what: "Believes in each candidate's quality as a Beta distribution: the card's `quality_score`, worth \
           `prior_strength` observations, and the wins and losses of an artifact. With `explore: true` each request \
           draws from these and picks the greatest draw less its price; otherwise the greatest mean is picked and \
           nothing is explored. The record keeps the probability of the pick, for evaluation offline.",
    when: "New models are to earn a share of real traffic, on routes where a weaker answer now and then does no harm.",
    parameters: &[
        ("explore", "whether a draw decides", "false"),
        (
            "pretrained_path",
            "wins and losses to start from (an artifact of `elo`)",
            "`model_selection.ml.elo`, or none",
        ),
        ("prior_strength", "how many observations a card's quality is worth, at least 0", "10"),
        ("cost_weight", "what the dearest candidate's price takes from its draw, in 0..=1", "0.04"),
    ],
    cost: "Some tens of microseconds.",
    fails_when: "It never fails. Constraints come before it: what cannot serve a request is never explored with it.",
    source: "Thompson 1933; contract §4.8 for the prior and the price. Draws are made from the request's own seed, so \
             that a record can be checked.",
    example: "algorithm:\n  type: thompson\n  thompson: { explore: true }\n",
};

/// The selector.
#[derive(Debug, Clone)]
pub struct Thompson {
    settings: ThompsonSettings,
    experience: Option<Ratings>,
}

impl Thompson {
    /// It, with what is known from elsewhere.
    #[must_use]
    pub fn new(settings: ThompsonSettings, experience: Option<Ratings>) -> Self {
        Self { settings, experience }
    }

    /// Parameters of the belief in one candidate, both above 0.
    fn belief(&self, it: &Candidate<'_>, category: Option<&str>) -> (f64, f64) {
        let quality = it.quality.unwrap_or(UNKNOWN_QUALITY).clamp(0.0, 1.0);
        let seen = self.experience.as_ref().and_then(|ratings| ratings.of(it.model, category, 1));
        let (wins, losses) = seen.map_or((0.0, 0.0), |it| (it.wins as f64, it.losses as f64));
        let strength = self.settings.prior_strength;
        (strength * quality + wins + 1.0, strength * (1.0 - quality) + losses + 1.0)
    }
}

impl Selector for Thompson {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let dearest = ask.candidates.iter().map(|it| it.usd_per_1m).fold(0.0, f64::max);
        let penalties: Vec<f64> = ask
            .candidates
            .iter()
            .map(|it| if dearest > 0.0 { self.settings.cost_weight * it.usd_per_1m / dearest } else { 0.0 })
            .collect();
        let beliefs: Vec<(f64, f64)> =
            ask.candidates.iter().map(|it| self.belief(it, ask.category)).collect();
        let means: Vec<Option<f64>> =
            beliefs.iter().zip(&penalties).map(|((a, b), penalty)| Some(a / (a + b) - penalty)).collect();
        if !self.settings.explore {
            return Choice::best(ask, &means, "the greatest mean; nothing is explored");
        }
        let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
        let draw = || -> Vec<Option<f64>> {
            let one = |((a, b), penalty): (&(f64, f64), &f64)| {
                Beta::new(*a, *b).ok().map(|belief| belief.sample(&mut rng) - penalty)
            };
            beliefs.iter().zip(&penalties).map(one).collect()
        };
        let Some((pick, scores, propensity)) = drawn(draw) else {
            return Choice::none(ask, "there are no candidates");
        };
        let mut choice = Choice::picked(ask, pick, &scores, "the greatest draw");
        choice.propensity = Some(propensity);
        for (at, mean) in means.iter().enumerate() {
            choice.note(at, format!("mean {:.3}", mean.unwrap_or_default()));
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> [Candidate<'static>; 2] {
        [("a", 0.7), ("b", 0.6)].map(|(model, quality)| Candidate {
            model,
            quality: Some(quality),
            ..Candidate::default()
        })
    }

    fn choose(explore: bool, seed: u64) -> Choice {
        let settings = ThompsonSettings { explore, ..ThompsonSettings::default() };
        let ask = SelectionAsk { candidates: &pool(), query: None, category: None, seed };
        Thompson::new(settings, None).choose(&ask)
    }

    #[test]
    fn nothing_is_explored_unless_it_is_declared() {
        assert!((0..50).all(|seed| choose(false, seed).model() == Some("a")));
        assert_eq!(choose(false, 1).propensity, None);
    }

    #[test]
    fn draws_are_the_seeds_and_their_share_is_the_propensity() {
        assert_eq!(choose(true, 7), choose(true, 7));
        let runs: Vec<Choice> = (0..400).map(|seed| choose(true, seed)).collect();
        let share = runs.iter().filter(|it| it.model() == Some("b")).count() as f64 / 400.0;
        assert!((0.1..0.5).contains(&share), "{share}");
        let told: Vec<f64> =
            runs.iter().filter(|it| it.model() == Some("b")).filter_map(|it| it.propensity).collect();
        let mean = told.iter().sum::<f64>() / told.len() as f64;
        assert!((mean - share).abs() < 0.08, "{mean} told, {share} seen");
    }
}
