//! Mappings against the scores that they read: which scores can be reached, which bands share some, which scores no
//! band holds.
//!
//! It knows numbers only. **Invariant:** every score that a request can bring about is within the reach computed here;
//! the reach may be too wide, never too narrow.

use super::{Notes, named};
use crate::{
    InputSource, Mapping, MappingMethod, NumericPredicate, Recipe, Score, ScoreInput, ValueSource, code,
};
use std::collections::BTreeMap;

/// Every score lies in `low..=high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach {
    low: f64,
    high: f64,
}

/// A stretch of numbers with open or closed ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    low: Edge,
    high: Edge,
}

/// A bound, and whether it is itself outside.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    at: f64,
    open: bool,
}

/// The reach of every score; scores stand in an order in which each uses only earlier ones.
pub(super) fn reaches(recipe: &Recipe) -> BTreeMap<String, Reach> {
    let mut reaches = BTreeMap::new();
    for score in &recipe.projections.scores {
        let reach = reach(score, &reaches);
        reaches.insert(score.name.clone(), reach);
    }
    reaches
}

fn reach(score: &Score, earlier: &BTreeMap<String, Reach>) -> Reach {
    let mut sum = Reach { low: 0.0, high: 0.0 };
    for input in &score.inputs {
        let value = value(input, earlier);
        let ends = [input.weight * value.low, input.weight * value.high];
        // Zero times infinity is no number; a weight of zero adds nothing.
        let ends = if input.weight == 0.0 { [0.0, 0.0] } else { ends };
        sum.low += ends[0].min(ends[1]);
        sum.high += ends[0].max(ends[1]);
    }
    sum
}

fn value(input: &ScoreInput, earlier: &BTreeMap<String, Reach>) -> Reach {
    let anything = Reach { low: f64::NEG_INFINITY, high: f64::INFINITY };
    match (&input.source, input.value) {
        (InputSource::Score(name), _) => earlier.get(name).copied().unwrap_or(anything),
        (_, ValueSource::Binary { matched, miss }) => {
            Reach { low: matched.min(miss), high: matched.max(miss) }
        }
        (_, ValueSource::Confidence) => Reach { low: 0.0, high: 1.0 },
        (_, ValueSource::Raw | ValueSource::Score) => anything,
    }
}

/// Warns of bands that share scores, of scores between bands, and of bands that no score reaches.
pub(super) fn check(recipe: &Recipe, reaches: &BTreeMap<String, Reach>, notes: &mut Notes) {
    for mapping in &recipe.projections.mappings {
        let Some(reach) = reaches.get(&mapping.source) else { continue };
        let path = named("projections.mappings", &mapping.name);
        if mapping.method == MappingMethod::ThresholdBands {
            overlaps(mapping, &path, notes);
        }
        for gap in reach.gaps(mapping).iter().filter(|_| mapping.outputs.len() > 1) {
            let message =
                format!("`{}` names no band for scores of `{}` {gap}", mapping.name, mapping.source);
            notes.warn(code::BAND_GAP, mapping.place, &path, message, "let the bands meet");
        }
        for output in mapping.outputs.iter().filter(|output| !reach.meets(&output.band)) {
            let message = format!(
                "`{}` never matches: `{}` is always in {}..={}",
                output.name, mapping.source, reach.low, reach.high
            );
            notes.warn(code::NEVER_MATCHES, mapping.place, &path, message, "move the band or the weights");
        }
    }
}

fn overlaps(mapping: &Mapping, path: &str, notes: &mut Notes) {
    for (at, first) in mapping.outputs.iter().enumerate() {
        for second in mapping.outputs.iter().skip(at + 1) {
            let (one, other) = (Stretch::of(&first.band), Stretch::of(&second.band));
            let Some(shared) = one.within(&other).filter(|shared| *shared != other) else {
                continue;
            };
            let message = format!(
                "`{}` and `{}` both hold scores {shared}; `{}` wins because it is written first",
                first.name, second.name, first.name
            );
            let help = "let one band end where the next begins, or write `method: multi_emit`";
            notes.warn(code::OVERLAPPING_BANDS, mapping.place, path, message, help);
        }
    }
}

impl Reach {
    /// The reachable stretches that no band of the mapping holds, from below.
    pub(super) fn gaps(&self, mapping: &Mapping) -> Vec<impl std::fmt::Display + use<>> {
        let mut open = vec![self.stretch()];
        for output in &mapping.outputs {
            let band = Stretch::of(&output.band);
            open = open.iter().flat_map(|stretch| stretch.without(&band)).collect();
        }
        open
    }

    fn meets(&self, band: &NumericPredicate) -> bool {
        self.stretch().within(&Stretch::of(band)).is_some()
    }

    fn stretch(&self) -> Stretch {
        let edge = |at: f64| Edge { at, open: at.is_infinite() };
        Stretch { low: edge(self.low), high: edge(self.high) }
    }
}

impl Stretch {
    fn of(band: &NumericPredicate) -> Self {
        let tighter = |closed: Option<f64>, open: Option<f64>, none: f64, wins: fn(f64, f64) -> bool| match (
            closed, open,
        ) {
            (Some(closed), Some(open)) if wins(closed, open) => Edge { at: closed, open: false },
            (_, Some(at)) => Edge { at, open: true },
            (Some(at), None) => Edge { at, open: false },
            (None, None) => Edge { at: none, open: true },
        };
        Self {
            low: tighter(band.gte, band.gt, f64::NEG_INFINITY, |closed, open| closed > open),
            high: tighter(band.lte, band.lt, f64::INFINITY, |closed, open| closed < open),
        }
    }

    /// What both have; `None` if that is nothing.
    fn within(&self, other: &Self) -> Option<Self> {
        let low = if other.low.is_above(&self.low) { other.low } else { self.low };
        let high = if other.high.is_below(&self.high) { other.high } else { self.high };
        let shared = Self { low, high };
        (!shared.is_empty()).then_some(shared)
    }

    /// What is left of it, below and above.
    fn without(&self, other: &Self) -> Vec<Self> {
        let below = Self { low: self.low, high: other.low.flipped() };
        let above = Self { low: other.high.flipped(), high: self.high };
        [below, above].iter().filter_map(|rest| rest.within(self)).collect()
    }

    fn is_empty(&self) -> bool {
        self.low.at > self.high.at || self.low.at == self.high.at && (self.low.open || self.high.open)
    }
}

impl Edge {
    /// As lower ends.
    fn is_above(&self, other: &Self) -> bool {
        self.at > other.at || self.at == other.at && self.open && !other.open
    }

    /// As upper ends.
    fn is_below(&self, other: &Self) -> bool {
        self.at < other.at || self.at == other.at && self.open && !other.open
    }

    /// The same point seen from the other side.
    fn flipped(&self) -> Self {
        Self { at: self.at, open: !self.open }
    }
}

impl std::fmt::Display for Stretch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.low.at == self.high.at {
            return write!(f, "of {}", self.low.at);
        }
        let low = (self.low.at > f64::NEG_INFINITY)
            .then(|| format!("{} {}", if self.low.open { "above" } else { "from" }, self.low.at));
        let high = (self.high.at < f64::INFINITY)
            .then(|| format!("{} {}", if self.high.open { "below" } else { "up to" }, self.high.at));
        let ends: Vec<String> = low.into_iter().chain(high).collect();
        if ends.is_empty() { f.write_str("of any size") } else { f.write_str(&ends.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(text: &str) -> NumericPredicate {
        let mut band = NumericPredicate::default();
        for bound in text.split_whitespace() {
            let (word, number) =
                bound.split_at(bound.find(|c: char| c == '-' || c.is_ascii_digit()).unwrap());
            let number = Some(number.parse().unwrap());
            match word {
                "gt" => band.gt = number,
                "gte" => band.gte = number,
                "lt" => band.lt = number,
                _ => band.lte = number,
            }
        }
        band
    }

    #[test]
    fn stretches_meet_and_leave_rests() {
        let shared = |a: &str, b: &str| {
            Stretch::of(&band(a)).within(&Stretch::of(&band(b))).map(|both| both.to_string())
        };
        assert_eq!(shared("lt0.5", "gte0.5"), None);
        assert_eq!(shared("lte0.5", "gte0.5").as_deref(), Some("of 0.5"));
        assert_eq!(shared("lte0.5", "gt0.5"), None);
        assert_eq!(shared("lt2", "gt1 lte3").as_deref(), Some("above 1 below 2"));
        let rests = |of: &str, without: &str| -> Vec<String> {
            let rest = Stretch::of(&band(of)).without(&Stretch::of(&band(without)));
            rest.iter().map(ToString::to_string).collect()
        };
        assert_eq!(rests("gte0 lte1", "lt0.5"), ["from 0.5 up to 1"]);
        assert_eq!(rests("gte0 lte1", "gte0.4 lt0.6"), ["from 0 below 0.4", "from 0.6 up to 1"]);
        assert_eq!(rests("", "gt0"), ["up to 0"]);
        assert!(rests("gte0 lte1", "lte1").is_empty());
    }
}
