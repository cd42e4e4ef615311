//! `latency_aware`: the candidate that has been quickest.

use crate::ask::{Candidate, Needs, SelectionAsk};
use crate::choice::{Choice, first_greatest};
use crate::doc::SelectorDoc;
use crate::scale::weighted;
use crate::selector::Selector;
use chorus_spec::LatencyAwareSettings;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "latency_aware",
    what: "Takes each candidate's time to the first token and time per token at a percentile of recent calls, divides \
           the best by it, and picks the greatest mean. A candidate that was never called is called once, first.",
    when: "Candidates are equally good and latency is what users feel. Not where a quick model is a weak one.",
    parameters: &[
        (
            "tpot_percentile",
            "percentile of the time per token, in 1..=100; left out, it does not count",
            "95",
        ),
        (
            "ttft_percentile",
            "percentile of the time to the first token, in 1..=100; left out, it does not count",
            "95",
        ),
        ("description", "for people", "none"),
    ],
    cost: "Some microseconds.",
    fails_when: "Nothing was measured yet: the first candidate is taken. Past latency is no promise: a burst is seen \
                 only once its calls end.",
    source: "contract §1.7. There a candidate without statistics is never measured while another has them; here each \
             is called once.",
    example: "algorithm:\n  type: latency_aware\n  latency_aware: { ttft_percentile: 90 }\n",
};

/// The selector.
#[derive(Debug, Clone, Copy)]
pub struct LatencyAware(pub LatencyAwareSettings);

impl Selector for LatencyAware {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let scores = speeds(ask, &self.0);
        if scores.iter().all(Option::is_none) {
            return Choice::picked(ask, 0, &scores, "nothing has been measured; the first candidate");
        }
        // One call each, so that a newcomer is not passed over for ever; one that fails is not tried again and again.
        let unknown = |it: &Candidate<'_>| it.live.ended == 0 && it.live.in_flight == 0;
        if let Some(newcomer) = ask.candidates.iter().position(unknown) {
            return Choice::picked(ask, newcomer, &scores, "it has never been measured");
        }
        match first_greatest(&scores) {
            Some(pick) => Choice::picked(ask, pick, &scores, "the quickest of late"),
            None => Choice::none(ask, "no candidate could be compared"),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            ttft_percentile: self.0.ttft_percentile,
            tpot_percentile: self.0.tpot_percentile,
            ..Needs::default()
        }
    }
}

/// 1 for the quickest in all that counts, less for others.
fn speeds(ask: &SelectionAsk<'_>, settings: &LatencyAwareSettings) -> Vec<Option<f64>> {
    let of = |counts: Option<u8>, read: fn(&Candidate<'_>) -> Option<f64>| -> Vec<Option<f64>> {
        let known = || ask.candidates.iter().filter_map(|it| read(it).filter(|_| counts.is_some()));
        let best = known().fold(f64::INFINITY, f64::min);
        let speed = |ms: f64| if ms > 0.0 { best / ms } else { 1.0 };
        ask.candidates.iter().map(|it| read(it).filter(|_| counts.is_some()).map(speed)).collect()
    };
    let first = of(settings.ttft_percentile, |it| it.live.ttft_ms);
    let further = of(settings.tpot_percentile, |it| it.live.tpot_ms);
    first.into_iter().zip(further).map(|(first, further)| weighted(&[(1.0, first), (1.0, further)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::LiveFigures;

    fn choose(settings: LatencyAwareSettings, live: &[(Option<f64>, Option<f64>, u64)]) -> Choice {
        let candidates: Vec<Candidate<'_>> = live
            .iter()
            .map(|(ttft_ms, tpot_ms, ended)| {
                let live = LiveFigures { ttft_ms: *ttft_ms, tpot_ms: *tpot_ms, ended: *ended, in_flight: 0 };
                Candidate { live, ..Candidate::default() }
            })
            .collect();
        LatencyAware(settings).choose(&SelectionAsk {
            candidates: &candidates,
            query: None,
            category: None,
            seed: 0,
        })
    }

    #[test]
    fn the_quickest_is_picked_by_what_counts() {
        let live = [(Some(100.0), Some(40.0), 9), (Some(200.0), Some(10.0), 9)];
        assert_eq!(
            choose(LatencyAwareSettings::default(), &live).pick,
            Some(1),
            "0.5 and 1 against 1 and 0.25"
        );
        let first = LatencyAwareSettings { ttft_percentile: Some(50), tpot_percentile: None };
        assert_eq!(choose(first, &live).pick, Some(0));
    }

    #[test]
    fn each_is_measured_once_and_a_failing_one_is_not_tried_for_ever() {
        let newcomer = [(Some(100.0), None, 9), (None, None, 0)];
        assert_eq!(choose(LatencyAwareSettings::default(), &newcomer).pick, Some(1));
        let failed = [(Some(100.0), None, 9), (None, None, 1)];
        assert_eq!(choose(LatencyAwareSettings::default(), &failed).pick, Some(0));
        let nothing = [(None, None, 0), (None, None, 0)];
        assert_eq!(choose(LatencyAwareSettings::default(), &nothing).pick, Some(0));
    }
}
