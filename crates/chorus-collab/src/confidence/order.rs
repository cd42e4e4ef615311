//! In which order candidates are tried.
//!
//! **Invariant:** what is not known of a candidate counts as the largest it could be, so that it is tried late; equals
//! keep the order in which they are declared.

use crate::candidate::Candidate;
use chorus_spec::EscalationOrder;

/// Size from which a model without a declared quality counts as the best one. Source: contract §2.2.
const LARGE: f64 = 70e9;

/// The models in the order in which they are tried.
pub(super) fn order(candidates: &[Candidate], order: EscalationOrder, cost_weight: f64) -> Vec<String> {
    let dearest = candidates.iter().filter_map(|c| c.price).fold(0.0, f64::max);
    let key = |candidate: &Candidate| match order {
        EscalationOrder::Declared => 0.0,
        EscalationOrder::Size => known(candidate.parameters),
        EscalationOrder::Cost => known(candidate.price),
        EscalationOrder::Automix => {
            let cost = candidate.price.map_or(1.0, |price| if dearest > 0.0 { price / dearest } else { 0.0 });
            (1.0 - cost_weight) * quality(candidate) + cost_weight * cost
        }
    };
    let mut keyed: Vec<(f64, &Candidate)> = candidates.iter().map(|c| (key(c), c)).collect();
    keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    keyed.into_iter().map(|(_, candidate)| candidate.model.clone()).collect()
}

fn known(value: Option<f64>) -> f64 {
    value.filter(|v| !v.is_nan()).unwrap_or(f64::INFINITY)
}

/// The declared quality, else one from the size. Source: contract §2.2.
fn quality(candidate: &Candidate) -> f64 {
    candidate.quality.unwrap_or_else(|| 0.3 + 0.7 * (known(candidate.parameters) / LARGE).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(model: &str, billions: Option<f64>, price: Option<f64>, quality: Option<f64>) -> Candidate {
        let parameters = billions.map(|b| b * 1e9);
        Candidate { model: model.to_owned(), parameters, price, quality, ..Candidate::default() }
    }

    #[test]
    fn orders() {
        let all = [
            candidate("unknown", None, None, None),
            candidate("large", Some(70.0), Some(0.9), None),
            candidate("small", Some(7.0), Some(1.0), None),
            candidate("good", Some(1.0), Some(0.1), Some(0.99)),
        ];
        for (by, weight, want) in [
            (EscalationOrder::Declared, 0.3, ["unknown", "large", "small", "good"]),
            (EscalationOrder::Size, 0.3, ["good", "small", "large", "unknown"]),
            (EscalationOrder::Cost, 0.3, ["good", "large", "small", "unknown"]),
            (EscalationOrder::Automix, 0.3, ["small", "good", "large", "unknown"]),
            (EscalationOrder::Automix, 1.0, ["good", "large", "unknown", "small"]),
        ] {
            assert_eq!(order(&all, by, weight), want, "{by:?} {weight}");
        }
    }
}
