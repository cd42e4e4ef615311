//! `automix`: the cheapest candidate that is expected to pass.

use crate::ask::SelectionAsk;
use crate::choice::Choice;
use crate::doc::SelectorDoc;
use crate::selector::Selector;
use chorus_spec::AutomixSettings;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "automix",
    what: "Gives each candidate a value: its card's `quality_score` against its price. A candidate whose expected \
           quality is below `verification_threshold` would be escalated in a cascade, so that its value is discounted \
           once for every dearer candidate up to the first that reaches the threshold.",
    when: "Quality scores of the cards are measured, and one call must do. Where answers can be checked, the looper \
           `confidence` with `escalation_order: automix` does the escalation that this selector only reckons with.",
    parameters: &[
        (
            "verification_threshold",
            "expected quality from which an answer would be accepted, in 0..=1",
            "0.7",
        ),
        ("max_escalations", "escalations that a start is charged for at most", "2"),
        ("cost_aware_routing", "whether price counts", "true"),
        ("cost_quality_tradeoff", "weight of price against quality, in 0..=1", "0.3"),
        ("discount_factor", "what is left of a value after each expected escalation, in 0..=1", "0.95"),
    ],
    cost: "Some microseconds.",
    fails_when: "No card has a `quality_score`: `on_error` decides. A card's score is one number for all requests.",
    source: "contract §1.7; AutoMix (Madaan et al., arXiv:2310.12963). The contract's bonus of a tenth and its moving \
             average of quality are left out: a request would change the policy of the next.",
    example: "algorithm:\n  type: automix\n  automix: { cost_quality_tradeoff: 0.5 }\n",
};

/// The selector.
#[derive(Debug, Clone, Copy)]
pub struct Automix(pub AutomixSettings);

impl Automix {
    /// The value of each candidate, in 0..=1; `None` where its quality is not known.
    pub(crate) fn values(&self, ask: &SelectionAsk<'_>) -> Vec<Option<f64>> {
        let dearest = ask.candidates.iter().map(|it| it.usd_per_1m).fold(0.0, f64::max);
        let weight = if self.0.cost_aware_routing { self.0.cost_quality_tradeoff } else { 0.0 };
        let value = |at: usize, quality: f64, price: f64| {
            let cost = if dearest > 0.0 { price / dearest } else { 0.0 };
            let discount = self.0.discount_factor.powi(self.escalations(ask, at, quality, price));
            discount * ((1.0 - weight) * quality + weight * (1.0 - cost))
        };
        let of =
            |(at, it): (usize, &crate::ask::Candidate<'_>)| it.quality.map(|q| value(at, q, it.usd_per_1m));
        ask.candidates.iter().enumerate().map(of).collect()
    }

    /// Dearer candidates that a cascade from here would try, up to the first that is expected to pass.
    fn escalations(&self, ask: &SelectionAsk<'_>, start: usize, quality: f64, price: f64) -> i32 {
        if quality >= self.0.verification_threshold {
            return 0;
        }
        let mut dearer: Vec<(f64, f64)> = ask
            .candidates
            .iter()
            .enumerate()
            .filter(|(at, it)| *at != start && it.usd_per_1m > price)
            .filter_map(|(_, it)| Some((it.usd_per_1m, it.quality?)))
            .collect();
        dearer.sort_by(|a, b| a.0.total_cmp(&b.0));
        let passes = dearer.iter().position(|(_, quality)| *quality >= self.0.verification_threshold);
        let steps = passes.map_or(dearer.len(), |at| at + 1);
        i32::try_from(steps)
            .unwrap_or(i32::MAX)
            .min(i32::try_from(self.0.max_escalations).unwrap_or(i32::MAX))
    }
}

impl Selector for Automix {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let values = self.values(ask);
        if values.iter().all(Option::is_none) {
            return Choice::none(ask, "no candidate's card has a `quality_score`");
        }
        Choice::best(ask, &values, "the best value of quality, price and expected escalations")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Candidate;

    fn choose(settings: AutomixSettings, pool: &[(f64, f64)]) -> Choice {
        let candidates: Vec<Candidate<'_>> = pool
            .iter()
            .map(|(quality, usd_per_1m)| Candidate {
                quality: Some(*quality),
                usd_per_1m: *usd_per_1m,
                ..Candidate::default()
            })
            .collect();
        Automix(settings).choose(&SelectionAsk {
            candidates: &candidates,
            query: None,
            category: None,
            seed: 0,
        })
    }

    #[test]
    fn the_cheapest_that_passes_wins_and_price_can_be_ignored() {
        let pool = [(0.4, 0.2), (0.75, 1.0), (0.9, 10.0)];
        assert_eq!(choose(AutomixSettings::default(), &pool).pick, Some(1));
        let blind = AutomixSettings { cost_aware_routing: false, ..AutomixSettings::default() };
        assert_eq!(choose(blind, &pool).pick, Some(2));
    }

    #[test]
    fn each_expected_escalation_takes_its_share() {
        let settings = AutomixSettings { cost_aware_routing: false, ..AutomixSettings::default() };
        let value = |pool: &[(f64, f64)]| choose(settings, pool).scores[0].score.unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(value(&[(0.5, 1.0)]), 0.5), "nobody to escalate to");
        assert!(close(value(&[(0.5, 1.0), (0.8, 2.0)]), 0.5 * 0.95));
        assert!(close(value(&[(0.5, 1.0), (0.6, 2.0), (0.8, 3.0)]), 0.5 * 0.95 * 0.95));
        assert!(
            close(value(&[(0.5, 1.0), (0.6, 2.0), (0.65, 3.0), (0.8, 4.0)]), 0.5 * 0.95 * 0.95),
            "two at most"
        );
    }
}
