//! `static`: the candidate that the request's domain scores best, else the first.

use crate::ask::SelectionAsk;
use crate::choice::{Choice, first_greatest};
use crate::doc::SelectorDoc;
use crate::selector::Selector;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "static",
    what: "Picks the candidate with the greatest `model_scores` entry of the request's most confident domain signal; \
           without one, the first candidate as written.",
    when: "The order of candidates says it all, or there is only one. The default.",
    parameters: &[],
    cost: "Nothing beside the domain signal, where a rule asks for it.",
    fails_when: "It never fails; it knows nothing of price, latency or load.",
    source: "contract §1.7. The contract reports a confidence of 1 for it; so does Chorus.",
    example: "algorithm:\n  type: static\n",
};

/// The selector.
#[derive(Debug, Clone, Copy, Default)]
pub struct StaticOrder;

impl Selector for StaticOrder {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let scores: Vec<Option<f64>> = ask.candidates.iter().map(|it| it.domain_score).collect();
        match first_greatest(&scores) {
            Some(pick) => Choice::picked(ask, pick, &scores, "the domain's best known candidate"),
            None => Choice::picked(ask, 0, &scores, "the first candidate"),
        }
        .with_confidence(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Candidate;

    fn pick(scores: [Option<f64>; 3]) -> Option<usize> {
        let candidates = scores.map(|domain_score| Candidate { domain_score, ..Candidate::default() });
        let ask = SelectionAsk { candidates: &candidates, query: None, category: None, seed: 0 };
        StaticOrder.choose(&ask).pick
    }

    #[test]
    fn the_domains_best_goes_first_else_the_first_as_written() {
        assert_eq!(pick([None, None, None]), Some(0));
        assert_eq!(pick([Some(0.2), None, Some(0.9)]), Some(2));
        assert_eq!(pick([Some(0.5), Some(0.5), None]), Some(0));
        let nobody = SelectionAsk { candidates: &[], query: None, category: None, seed: 0 };
        assert_eq!(StaticOrder.choose(&nobody).pick, None);
    }
}
