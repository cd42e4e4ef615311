//! A measured value against its bounds. It knows no signal.
//!
//! **Invariant:** confidence is in 0.5..=1 and grows with the distance to the nearest bound.

use chorus_policy::Observation;
use chorus_spec::NumericPredicate;

/// How fast distance becomes confidence. Source: contract §1.4 (`structure`).
const SLOPE: f64 = 4.0;

/// Whether the value holds; without bounds written, anything above zero does.
pub(crate) fn holds(value: f64, predicate: Option<&NumericPredicate>) -> bool {
    predicate.map_or(value > 0.0, |bounds| bounds.holds(value))
}

/// The logistic of four times a distance, never below 0.5. Source: contract §1.4 (`structure`).
pub(crate) fn confidence(distance: f64) -> f64 {
    (1.0 / (1.0 + (-SLOPE * distance).exp())).max(0.5)
}

/// What a measured value means: matched with a confidence by its distance to the nearest bound, or unmatched.
pub(crate) fn judge(value: f64, predicate: Option<&NumericPredicate>) -> Observation {
    if !holds(value, predicate) {
        return Observation::Unmatched { raw: Some(value) };
    }
    Observation::Matched { confidence: confidence(distance(value, predicate)), raw: Some(value) }
}

fn distance(value: f64, predicate: Option<&NumericPredicate>) -> f64 {
    let Some(bounds) = predicate else { return value };
    [bounds.gt, bounds.gte, bounds.lt, bounds.lte]
        .into_iter()
        .flatten()
        .map(|bound| (value - bound).abs())
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(gt: Option<f64>, lte: Option<f64>) -> NumericPredicate {
        NumericPredicate { gt, gte: None, lt: None, lte }
    }

    #[test]
    fn confidence_grows_from_one_half() {
        let at = |value, predicate: Option<&NumericPredicate>| match judge(value, predicate) {
            Observation::Matched { confidence, .. } => Some((confidence * 1000.0).round() / 1000.0),
            _ => None,
        };
        assert_eq!(at(0.0, None), None);
        assert_eq!(at(1.0, None), Some(0.982));
        assert_eq!(at(3.0, Some(&bounds(None, Some(3.0)))), Some(0.5));
        assert_eq!(at(0.1, Some(&bounds(Some(0.0), Some(5.0)))), Some(0.599));
        assert_eq!(at(9.0, Some(&bounds(None, None))), Some(1.0));
    }
}
