//! `router_dc`: the candidate whose card is nearest to the request.

use crate::ask::{Needs, SelectionAsk};
use crate::choice::{Choice, first_greatest};
use crate::doc::SelectorDoc;
use crate::scale::softmax;
use crate::selector::Selector;
use chorus_spec::RouterDcSettings;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "router_dc",
    what: "Compares the request's vector with the vector of each card's `description` (and `capabilities`), drops what \
           is farther than `min_similarity`, and picks the nearest. Scores are a softmax over similarities.",
    when: "Cards describe different specialists in full sentences. Not for models that differ in strength only: their \
           descriptions say nothing that a request could be near to.",
    parameters: &[
        (
            "temperature",
            "sharpness of the softmax, above 0; it changes the reported scores, not the pick",
            "0.07",
        ),
        (
            "min_similarity",
            "least similarity, in 0..=1, on the scale of thresholds of `embedding` signals",
            "0.3",
        ),
        (
            "require_descriptions",
            "a candidate without a description is left out; else it stands at 0",
            "false",
        ),
        ("use_capabilities", "`capabilities` are read with the description", "false"),
    ],
    cost: "One encoder pass a request, shared with the signals that need it; cards are encoded once.",
    fails_when: "No encoder is loaded, or no candidate reaches `min_similarity`: `on_error` decides.",
    source: "contract §1.7; RouterDC (Chen et al. 2024) without its contrastive training. The contract filters on a \
             sigmoid of cosine over temperature, which is nearly 1 for any positive cosine; Chorus filters on the \
             similarity itself.",
    example: "algorithm:\n  type: router_dc\n  router_dc: { min_similarity: 0.2, use_capabilities: true }\n",
};

/// The selector.
#[derive(Debug, Clone, Copy)]
pub struct RouterDc(pub RouterDcSettings);

impl RouterDc {
    /// Similarities that count; `None` for candidates that are left out.
    pub(crate) fn similarities(&self, ask: &SelectionAsk<'_>) -> Vec<Option<f64>> {
        let lacking = (!self.0.require_descriptions).then_some(0.0);
        ask.candidates.iter().map(|it| it.similarity.or(lacking)).collect()
    }
}

impl Selector for RouterDc {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        if ask.candidates.iter().all(|it| it.similarity.is_none()) {
            return Choice::none(
                ask,
                "no card could be compared with the request: no encoder, or no descriptions",
            );
        }
        let similarities = self.similarities(ask);
        let near: Vec<Option<f64>> =
            similarities.iter().map(|it| it.filter(|it| *it >= self.0.min_similarity)).collect();
        let probabilities = softmax(&near, self.0.temperature);
        let mut choice = match first_greatest(&near) {
            Some(pick) => Choice::picked(ask, pick, &probabilities, "its card is nearest to the request")
                .with_confidence(probabilities.get(pick).copied().flatten().unwrap_or(0.0)),
            None => Choice::none(ask, format!("no card is as near as {}", self.0.min_similarity)),
        };
        for (at, similarity) in similarities.iter().enumerate() {
            choice.note(
                at,
                similarity.map_or_else(|| "no description".to_owned(), |it| format!("similarity {it:.3}")),
            );
        }
        choice
    }

    fn needs(&self) -> Needs {
        Needs { similarity: true, capabilities: self.0.use_capabilities, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Candidate;

    fn choose(settings: RouterDcSettings, similarities: &[Option<f64>]) -> Choice {
        let candidates: Vec<Candidate<'_>> =
            similarities.iter().map(|it| Candidate { similarity: *it, ..Candidate::default() }).collect();
        RouterDc(settings).choose(&SelectionAsk {
            candidates: &candidates,
            query: None,
            category: None,
            seed: 0,
        })
    }

    #[test]
    fn the_nearest_card_above_the_floor_is_picked() {
        let defaults = RouterDcSettings::default();
        let choice = choose(defaults, &[Some(0.4), Some(0.6), Some(0.1), None]);
        assert_eq!(choice.pick, Some(1));
        assert!(choice.confidence.unwrap() > 0.9);
        assert_eq!(choice.scores[2].score, None, "below the floor");
        // A sigmoid of cosine over 0.07 would let 0.29 through as 0.98.
        assert_eq!(choose(defaults, &[Some(0.29), None]).pick, None);
        assert_eq!(choose(defaults, &[None, None]).pick, None);
    }

    #[test]
    fn a_card_without_description_stands_at_zero_or_is_left_out() {
        let open = RouterDcSettings { min_similarity: 0.0, ..RouterDcSettings::default() };
        assert!(choose(open, &[None, Some(0.2)]).scores[0].score.is_some());
        let strict = RouterDcSettings { require_descriptions: true, ..open };
        assert!(choose(strict, &[None, Some(0.2)]).scores[0].score.is_none());
    }
}
