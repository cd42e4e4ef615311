//! `hybrid`: experience, nearness, `AutoMix` value and price together.

use crate::ask::{Needs, SelectionAsk};
use crate::automix::Automix;
use crate::choice::{Choice, first_greatest};
use crate::doc::SelectorDoc;
use crate::elo::Ratings;
use crate::router_dc::RouterDc;
use crate::scale::{max_min, min_max, weighted};
use crate::selector::Selector;
use chorus_spec::{AutomixSettings, HybridSettings, RouterDcSettings};

/// Most that a warm cache adds. Source: contract §1.7 (`hybrid`, cache affinity).
const WARMTH_MOST: f64 = 0.14;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "hybrid",
    what: "The weighted mean of four parts: ratings from comparisons (the card's `quality_score` where there are none), \
           nearness of the card to the request, the `automix` value, and a low price. A candidate that is more than \
           `quality_gap_threshold` below the best rating gains nothing by its price. A warm cache adds up to 0.14.",
    when: "Several weak hints exist and none is good alone.",
    parameters: &[
        ("experience_weight", "weight of ratings; weights are relative, over what is known", "0.3"),
        ("router_dc_weight", "weight of nearness", "0.3"),
        ("automix_weight", "weight of the AutoMix value", "0.2"),
        ("cost_weight", "weight of a low price", "0.2"),
        (
            "quality_gap_threshold",
            "how far below the best a candidate may stand and still gain by its price, in 0..=1",
            "0.1",
        ),
        ("normalize_scores", "each part is stretched to 0..=1 over the candidates", "true"),
    ],
    cost: "One encoder pass a request, shared with the signals that need it.",
    fails_when: "Nothing is known of any candidate: `on_error` decides. A part that is not known of a candidate does \
                 not count against it.",
    source: "contract §1.7. The contract declares the quality gap and leaves it unused (§7.1, 9).",
    example: "algorithm:\n  type: hybrid\n  hybrid: { experience_weight: 0.5, cost_weight: 0.5, router_dc_weight: 0, automix_weight: 0 }\n",
};

/// The selector.
#[derive(Debug, Clone)]
pub struct Hybrid {
    settings: HybridSettings,
    nearness: RouterDc,
    value: Automix,
    ratings: Option<Ratings>,
}

impl Hybrid {
    /// It, with ratings where there are any.
    #[must_use]
    pub fn new(settings: HybridSettings, ratings: Option<Ratings>) -> Self {
        let nearness = RouterDc(RouterDcSettings { min_similarity: 0.0, ..RouterDcSettings::default() });
        Self { settings, nearness, value: Automix(AutomixSettings::default()), ratings }
    }

    /// Expected quality by experience, in 0..=1.
    fn experience(&self, ask: &SelectionAsk<'_>) -> Vec<Option<f64>> {
        let rated = self.ratings.as_ref().map(|it| it.expected(ask)).unwrap_or_default();
        let of =
            |(at, it): (usize, &crate::ask::Candidate<'_>)| rated.get(at).copied().flatten().or(it.quality);
        ask.candidates.iter().enumerate().map(of).collect()
    }
}

impl Selector for Hybrid {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let stretched =
            |column: Vec<Option<f64>>| if self.settings.normalize_scores { min_max(&column) } else { column };
        let experience = self.experience(ask);
        let best = first_greatest(&experience).and_then(|at| experience.get(at).copied().flatten());
        let prices: Vec<Option<f64>> = ask.candidates.iter().map(|it| Some(it.usd_per_1m)).collect();
        let cheapness = max_min(&prices);
        let gains = |at: usize| {
            let gap = best.zip(experience.get(at).copied().flatten()).map(|(best, own)| best - own);
            let near = gap.is_none_or(|gap| gap <= self.settings.quality_gap_threshold + 1e-9);
            cheapness.get(at).copied().flatten().map(|share| if near { share } else { 0.0 })
        };
        let parts = [
            (self.settings.experience_weight, stretched(experience.clone())),
            (self.settings.router_dc_weight, stretched(self.nearness_of(ask))),
            (self.settings.automix_weight, stretched(self.value.values(ask))),
            (self.settings.cost_weight, (0..ask.candidates.len()).map(gains).collect()),
        ];
        let score = |at: usize| {
            let known = parts.each_ref().map(|(weight, column)| (*weight, column.get(at).copied().flatten()));
            let warmth = ask.candidates.get(at).map_or(0.0, |it| it.warmth.clamp(0.0, 1.0));
            weighted(&known).map(|mean| (mean + WARMTH_MOST * warmth).min(1.0))
        };
        let scores: Vec<Option<f64>> = (0..ask.candidates.len()).map(score).collect();
        if scores.iter().all(Option::is_none) {
            return Choice::none(ask, "nothing is known of any candidate");
        }
        Choice::best(ask, &scores, "the best of experience, nearness, value and price")
    }

    fn needs(&self) -> Needs {
        Needs { similarity: self.settings.router_dc_weight > 0.0, ..Needs::default() }
    }
}

impl Hybrid {
    /// Nothing where no card could be compared, so that the part does not count.
    fn nearness_of(&self, ask: &SelectionAsk<'_>) -> Vec<Option<f64>> {
        if ask.candidates.iter().all(|it| it.similarity.is_none()) {
            return vec![None; ask.candidates.len()];
        }
        self.nearness.similarities(ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Candidate;

    fn choose(settings: HybridSettings, pool: &[Candidate<'_>]) -> Choice {
        let ask = SelectionAsk { candidates: pool, query: None, category: None, seed: 0 };
        Hybrid::new(settings, None).choose(&ask)
    }

    fn of(quality: f64, usd_per_1m: f64, similarity: Option<f64>) -> Candidate<'static> {
        Candidate { quality: Some(quality), usd_per_1m, similarity, ..Candidate::default() }
    }

    #[test]
    fn a_candidate_far_below_the_best_gains_nothing_by_its_price() {
        let only = HybridSettings {
            experience_weight: 0.1,
            cost_weight: 1.0,
            router_dc_weight: 0.0,
            automix_weight: 0.0,
            ..HybridSettings::default()
        };
        assert_eq!(
            choose(only, &[of(0.9, 5.0, None), of(0.5, 0.1, None), of(0.85, 1.0, None)]).pick,
            Some(2)
        );
        let lenient = HybridSettings { quality_gap_threshold: 0.5, ..only };
        assert_eq!(choose(lenient, &[of(0.9, 5.0, None), of(0.5, 0.1, None)]).pick, Some(1));
    }

    #[test]
    fn what_is_unknown_does_not_count_and_nothing_known_is_no_choice() {
        let nearness = HybridSettings {
            experience_weight: 0.0,
            cost_weight: 0.0,
            automix_weight: 0.0,
            ..HybridSettings::default()
        };
        assert_eq!(choose(nearness, &[of(0.9, 5.0, Some(0.1)), of(0.5, 1.0, Some(0.6))]).pick, Some(1));
        assert_eq!(choose(nearness, &[of(0.9, 5.0, None), of(0.5, 1.0, None)]).pick, None);
    }

    #[test]
    fn a_warm_cache_tips_the_scale_and_no_more() {
        let quality = HybridSettings {
            cost_weight: 0.0,
            router_dc_weight: 0.0,
            automix_weight: 0.0,
            normalize_scores: false,
            ..HybridSettings::default()
        };
        let warm = |quality| Candidate { warmth: 1.0, ..of(quality, 1.0, None) };
        assert_eq!(choose(quality, &[of(0.8, 1.0, None), warm(0.7)]).pick, Some(1));
        assert_eq!(choose(quality, &[of(0.9, 1.0, None), warm(0.7)]).pick, Some(0));
    }
}
