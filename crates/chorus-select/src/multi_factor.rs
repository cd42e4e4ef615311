//! `multi_factor`: quality, latency, price and load, weighed within limits.

use crate::ask::{Candidate, Needs, SelectionAsk};
use crate::choice::Choice;
use crate::doc::SelectorDoc;
use crate::scale::{max_min, min_max, weighted};
use crate::selector::Selector;
use chorus_spec::{MultiFactorSettings, OnNoCandidates};

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "multi_factor",
    what: "Takes out candidates beyond a limit (`slo`), brings quality, latency, price and load to 0..=1 over the rest, \
           and picks the greatest weighted mean.",
    when: "Several goals count at once and their weights are known. With one goal, its own selector is clearer.",
    parameters: &[
        (
            "weights.quality",
            "weight of the card's `quality_score`; where `weights` is written, what it leaves out is 0",
            "0.25",
        ),
        ("weights.latency", "weight of low latency: time to the first token and per token alike", "0.25"),
        ("weights.cost", "weight of a low price, prompt and completion averaged", "0.25"),
        ("weights.load", "weight of few requests in flight", "0.25"),
        ("slo.max_tpot_ms", "most milliseconds per token", "none"),
        ("slo.max_ttft_ms", "most milliseconds to the first token", "none"),
        ("slo.max_cost_per_1m", "most US dollars per million tokens, prompt and completion averaged", "none"),
        ("slo.max_inflight", "most requests in flight", "none"),
        ("latency_percentile", "which percentile latency is taken at, in 1..=100", "95"),
        (
            "on_no_candidates",
            "`cheapest`, `first` or `fail`, where every candidate is beyond a limit",
            "cheapest",
        ),
    ],
    cost: "Some microseconds.",
    fails_when: "Every candidate is beyond a limit and `on_no_candidates` is `fail`: the request is refused. What was \
                 never measured is beyond no limit and takes no part in that factor's mean.",
    source: "contract §1.7.",
    example: "algorithm:\n  type: multi_factor\n  multi_factor:\n    weights: { quality: 0.6, cost: 0.4 }\n    slo: { max_ttft_ms: 800 }\n",
};

/// The selector.
#[derive(Debug, Clone, Copy)]
pub struct MultiFactor(pub MultiFactorSettings);

impl MultiFactor {
    /// The limit that a candidate is beyond.
    fn beyond(&self, it: &Candidate<'_>) -> Option<String> {
        let over =
            |value: Option<f64>, most: Option<f64>| value.zip(most).filter(|(value, most)| value > most);
        let told = |what: &str, unit: &str, (value, most): (f64, f64)| {
            format!("{what} {value:.2}{unit} is beyond {most}{unit}")
        };
        let load = f64::from(it.live.in_flight);
        over(it.live.tpot_ms, self.0.max_tpot_ms)
            .map(|it| told("time per token", " ms", it))
            .or_else(|| {
                over(it.live.ttft_ms, self.0.max_ttft_ms).map(|it| told("time to first token", " ms", it))
            })
            .or_else(|| {
                over(Some(it.usd_per_1m), self.0.max_cost_per_1m).map(|it| told("price", " $/1M", it))
            })
            .or_else(|| over(Some(load), self.0.max_inflight.map(f64::from)).map(|it| told("load", "", it)))
    }

    fn scores(&self, ask: &SelectionAsk<'_>, within: &[bool]) -> Vec<Option<f64>> {
        let of = |read: fn(&Candidate<'_>) -> Option<f64>| -> Vec<Option<f64>> {
            ask.candidates.iter().zip(within).map(|(it, within)| read(it).filter(|_| *within)).collect()
        };
        let quality = min_max(&of(|it| it.quality));
        let first = max_min(&of(|it| it.live.ttft_ms));
        let further = max_min(&of(|it| it.live.tpot_ms));
        let cost = max_min(&of(|it| Some(it.usd_per_1m)));
        let load = max_min(&of(|it| Some(f64::from(it.live.in_flight))));
        let at = |column: &[Option<f64>], row: usize| column.get(row).copied().flatten();
        let score = |row: usize| {
            let latency = weighted(&[(1.0, at(&first, row)), (1.0, at(&further, row))]);
            weighted(&[
                (self.0.quality_weight, at(&quality, row)),
                (self.0.latency_weight, latency),
                (self.0.cost_weight, at(&cost, row)),
                (self.0.load_weight, at(&load, row)),
            ])
        };
        (0..ask.candidates.len()).map(score).collect()
    }

    /// Nobody keeps the limits.
    fn nobody(&self, ask: &SelectionAsk<'_>) -> Choice {
        let prices: Vec<Option<f64>> = ask.candidates.iter().map(|it| Some(-it.usd_per_1m)).collect();
        match self.0.on_no_candidates {
            OnNoCandidates::Cheapest => {
                let cheapest = crate::choice::first_greatest(&prices).unwrap_or(0);
                Choice::picked(ask, cheapest, &[], "every candidate is beyond a limit; the cheapest")
            }
            OnNoCandidates::First => {
                Choice::picked(ask, 0, &[], "every candidate is beyond a limit; the first")
            }
            OnNoCandidates::Fail => {
                Choice { refused: true, ..Choice::none(ask, "every candidate is beyond a limit") }
            }
        }
    }
}

impl Selector for MultiFactor {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let beyond: Vec<Option<String>> = ask.candidates.iter().map(|it| self.beyond(it)).collect();
        let within: Vec<bool> = beyond.iter().map(Option::is_none).collect();
        let mut choice = if within.contains(&true) {
            let scores = self.scores(ask, &within);
            // With nothing known of anybody, the first that keeps the limits is as good as any.
            let first = within.iter().position(|within| *within).unwrap_or(0);
            let reason = "the best of quality, latency, price and load";
            if scores.iter().all(Option::is_none) {
                Choice::picked(ask, first, &scores, "nothing is known of any factor; the first candidate")
            } else {
                Choice::best(ask, &scores, reason)
            }
        } else {
            self.nobody(ask)
        };
        for (at, why) in beyond.into_iter().enumerate() {
            if let Some(why) = why {
                choice.note(at, why);
            }
        }
        choice
    }

    fn needs(&self) -> Needs {
        let percentile = Some(self.0.latency_percentile);
        Needs { ttft_percentile: percentile, tpot_percentile: percentile, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::LiveFigures;

    fn pool() -> [Candidate<'static>; 3] {
        let live = |ttft, in_flight| LiveFigures {
            ttft_ms: Some(ttft),
            tpot_ms: Some(ttft / 10.0),
            in_flight,
            ended: 5,
        };
        let of = |model, quality, usd_per_1m, live| Candidate {
            model,
            quality: Some(quality),
            usd_per_1m,
            live,
            ..Candidate::default()
        };
        [
            of("large", 0.9, 10.0, live(900.0, 8)),
            of("middle", 0.7, 2.0, live(400.0, 2)),
            of("small", 0.4, 0.2, live(100.0, 0)),
        ]
    }

    fn choose(settings: MultiFactorSettings) -> Choice {
        MultiFactor(settings).choose(&SelectionAsk {
            candidates: &pool(),
            query: None,
            category: None,
            seed: 0,
        })
    }

    #[test]
    fn weights_decide_and_limits_take_out() {
        let quality = MultiFactorSettings {
            quality_weight: 1.0,
            latency_weight: 0.0,
            cost_weight: 0.0,
            load_weight: 0.0,
            ..MultiFactorSettings::default()
        };
        assert_eq!(choose(quality).model(), Some("large"));
        assert_eq!(choose(MultiFactorSettings::default()).model(), Some("small"));
        let limited = MultiFactorSettings { max_ttft_ms: Some(500.0), ..quality };
        let choice = choose(limited);
        assert_eq!(choice.model(), Some("middle"));
        assert!(choice.scores[0].note.as_deref().unwrap().contains("beyond 500 ms"));
    }

    #[test]
    fn nobody_within_the_limits_ends_as_declared() {
        let none = MultiFactorSettings { max_cost_per_1m: Some(0.1), ..MultiFactorSettings::default() };
        assert_eq!(choose(none).model(), Some("small"));
        let first = MultiFactorSettings { on_no_candidates: OnNoCandidates::First, ..none };
        assert_eq!(choose(first).model(), Some("large"));
        let fail = MultiFactorSettings { on_no_candidates: OnNoCandidates::Fail, ..none };
        assert!(choose(fail).refused && choose(fail).pick.is_none());
    }

    #[test]
    fn what_was_never_measured_is_beyond_no_limit() {
        let mut pool = pool();
        pool[0].live = LiveFigures::default();
        let settings = MultiFactorSettings {
            quality_weight: 1.0,
            latency_weight: 0.1,
            cost_weight: 0.0,
            load_weight: 0.0,
            max_ttft_ms: Some(500.0),
            ..MultiFactorSettings::default()
        };
        let ask = SelectionAsk { candidates: &pool, query: None, category: None, seed: 0 };
        assert_eq!(MultiFactor(settings).choose(&ask).model(), Some("large"));
    }
}
