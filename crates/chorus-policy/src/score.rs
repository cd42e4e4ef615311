//! Scores and mappings: weighted sums of evidence, and the named bands that they fall into.
//!
//! Knows nothing of decisions. A term is 1 or 0 (or the numbers written for a hit and a miss), the confidence of what
//! matched, or the raw value, which is 0 where a signal measures nothing. The confidence of an emitted band is
//! `1 / (1 + e^(−slope·distance))` of the distance to its nearest bound, 1 without calibration; a band without bounds
//! has distance 1. Source: contract v0.3 §1.5.
//!
//! A term that is not known lies between bounds, so the sum does, and a band that holds or misses all of the sum's bounds
//! is settled without the term: nothing is asked for what could not change it, and an absent term leaves unknown only the
//! bands that it could change. Sums and products of `f64` are monotonic, so bounds hold to the last bit.
//!
//! **Invariant:** a score is known only when every term is; whatever a missing term would have been, a band that is settled
//! comes out as it is.

use crate::facts::{Facts, State};
use crate::program::{Input, InputFrom, MappingStep, Program, ScoreStep};
use crate::trace::{InputPart, MappingDecision, OutputStep, ScoreBreakdown};
use chorus_spec::{MappingMethod, NumericPredicate, ValueSource};

/// What a score comes to: between bounds that are one number once nothing stands in the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Total {
    low: f64,
    high: f64,
    open: Option<State>,
}

impl Total {
    /// The sum, once every term is known.
    pub(crate) fn known(self) -> Option<f64> {
        self.open.is_none().then_some(self.low)
    }

    /// Whether it is in the band, whatever is still said.
    fn is_within(self, band: &NumericPredicate) -> bool {
        band.holds(self.low) && band.holds(self.high)
    }

    /// Whether it is outside the band, whatever is still said.
    fn is_outside(self, band: &NumericPredicate) -> bool {
        band.gt.is_some_and(|bound| self.high <= bound)
            || band.gte.is_some_and(|bound| self.high < bound)
            || band.lt.is_some_and(|bound| self.low >= bound)
            || band.lte.is_some_and(|bound| self.low > bound)
    }
}

/// Sums one score and settles its mappings; `totals` are those of the scores before it.
pub(crate) fn resolve(step: &ScoreStep, totals: &[Total], facts: &mut Facts) -> Total {
    let open = open(step, totals, facts);
    let (mut low, mut high) = (0.0, 0.0);
    for input in &step.inputs {
        let (least, most) = bounds(input, totals, facts);
        let (one, other) = (weighted(input.weight, least), weighted(input.weight, most));
        low += one.min(other);
        high += one.max(other);
    }
    let total = Total { low, high, open };
    for mapping in &step.mappings {
        settle(mapping, total, facts);
    }
    total
}

/// No weight makes something of an unbounded value.
fn weighted(weight: f64, value: f64) -> f64 {
    if weight == 0.0 { 0.0 } else { weight * value }
}

/// What stands in the way of the exact total.
///
/// A term that this version does not run is in the way for good only where it leaves the sum without bounds. Otherwise
/// terms that are pending come first, because they may settle a band without it.
fn open(step: &ScoreStep, totals: &[Total], facts: &Facts) -> Option<State> {
    let states =
        || step.inputs.iter().map(|input| (state(input, totals, facts), bounds(input, totals, facts)));
    let is = |wanted: State| states().any(|(state, _)| state == wanted);
    let boundless = |(_, most): (f64, f64)| most.is_infinite();
    if states().any(|(state, bounds)| state == State::Unsupported && boundless(bounds)) {
        return Some(State::Unsupported);
    }
    [State::Pending, State::Unsupported, State::Failed].into_iter().find(|state| is(*state))
}

/// What stands in the way of a term's exact value; a term that can only be one number has it.
fn state(input: &Input, totals: &[Total], facts: &Facts) -> State {
    let (least, most) = bounds(input, totals, facts);
    if least == most {
        return State::Unmatched;
    }
    match input.from {
        InputFrom::Slot(slot) => facts.exact(slot),
        // A score that does not stand before this one cannot be read; the reader of the file has refused it.
        InputFrom::Score(score) => totals.get(score).and_then(|total| total.open).unwrap_or(State::Failed),
    }
}

/// What a term can be, whatever is still said.
fn bounds(input: &Input, totals: &[Total], facts: &Facts) -> (f64, f64) {
    const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
    let slot = match input.from {
        InputFrom::Slot(slot) => slot,
        InputFrom::Score(score) => return totals.get(score).map_or(ANY, |total| (total.low, total.high)),
    };
    let point = |value: f64| (value, value);
    match (input.value, facts.state(slot)) {
        (ValueSource::Binary { matched, .. }, State::Matched(_) | State::Holds { .. }) => point(matched),
        (ValueSource::Binary { miss, .. }, State::Unmatched) => point(miss),
        (ValueSource::Binary { matched, miss }, _) => (matched.min(miss), matched.max(miss)),
        (ValueSource::Confidence, State::Matched(confidence)) => point(confidence),
        (ValueSource::Confidence, State::Holds { low, high }) => (low, high),
        (ValueSource::Confidence, State::Unmatched) => point(0.0),
        (ValueSource::Confidence, _) => (0.0, 1.0),
        (ValueSource::Raw | ValueSource::Score, _) => match facts.exact(slot) {
            State::Matched(_) | State::Unmatched => point(facts.raw(slot).unwrap_or_default()),
            _ => ANY,
        },
    }
}

/// A band that may hold the sum, or that an earlier band may take it from, waits for what the sum waits for.
fn settle(mapping: &MappingStep, total: Total, facts: &mut Facts) {
    let is_exclusive = mapping.method == MappingMethod::ThresholdBands;
    let (mut taken, mut may_be_taken) = (false, false);
    for output in &mapping.outputs {
        let (holds, misses) = (total.is_within(&output.band), total.is_outside(&output.band));
        let state = if misses || is_exclusive && taken {
            State::Unmatched
        } else if holds && !(is_exclusive && may_be_taken) {
            held(mapping, &output.band, total)
        } else {
            total.open.unwrap_or(State::Failed)
        };
        taken |= holds;
        may_be_taken |= !misses;
        facts.settle_output(output.slot, state, total.known(), total.open);
    }
}

/// Within 0..=1; what is no number counts as 0.
fn bounded(confidence: f64) -> f64 {
    if confidence > 0.0 { confidence.min(1.0) } else { 0.0 }
}

/// The band holds the sum: with its confidence, or within the bounds that the sum's bounds leave.
fn held(mapping: &MappingStep, band: &NumericPredicate, total: Total) -> State {
    if let Some(total) = total.known() {
        return State::matched(confidence(mapping, band, total));
    }
    // Between the bounds of a band the distance to the nearer one is least at an end.
    let ends = [total.low, total.high].map(|end| bounded(confidence(mapping, band, end)));
    let [low, high] = ends;
    State::Holds { low: low.min(high), high: 1.0 }
}

fn confidence(mapping: &MappingStep, band: &NumericPredicate, total: f64) -> f64 {
    mapping.calibration.map_or(1.0, |c| 1.0 / (1.0 + (-c.slope * distance(band, total)).exp()))
}

/// To the nearest bound; 1 without any.
fn distance(band: &NumericPredicate, total: f64) -> f64 {
    let bounds = [band.gt, band.gte, band.lt, band.lte];
    bounds.into_iter().flatten().map(|bound| (total - bound).abs()).reduce(f64::min).unwrap_or(1.0)
}

/// A known score for people.
pub(crate) fn trace(
    step: &ScoreStep,
    total: f64,
    totals: &[Total],
    facts: &Facts,
    program: &Program,
) -> ScoreBreakdown {
    let name = |input: &Input| match input.from {
        InputFrom::Slot(slot) => program.slots.get(slot).map(|s| s.key.name().to_owned()),
        InputFrom::Score(score) => program.scores.get(score).map(|s| s.name.clone()),
    };
    let part = |input: &Input| {
        let (value, _) = bounds(input, totals, facts);
        InputPart {
            kind: input.kind,
            name: name(input).unwrap_or_default(),
            weight: input.weight,
            value,
            contribution: input.weight * value,
        }
    };
    ScoreBreakdown { name: step.name.clone(), total, inputs: step.inputs.iter().map(part).collect() }
}

/// A mapping of a known score for people.
pub(crate) fn trace_mapping(
    step: &ScoreStep,
    mapping: &MappingStep,
    total: f64,
    facts: &Facts,
) -> MappingDecision {
    let outputs: Vec<_> = mapping
        .outputs
        .iter()
        .map(|output| OutputStep {
            name: output.name.clone(),
            matched: matches!(facts.state(output.slot), State::Matched(_)),
            boundary_distance: distance(&output.band, total),
        })
        .collect();
    let selected = mapping.outputs.iter().find_map(|output| match facts.state(output.slot) {
        State::Matched(confidence) => Some((output, confidence)),
        _ => None,
    });
    MappingDecision {
        mapping_name: mapping.name.clone(),
        source_score: step.name.clone(),
        score_value: total,
        selected_output: selected.map(|(output, _)| output.name.clone()),
        confidence: selected.map(|(_, confidence)| confidence),
        boundary_distance: selected.map(|(output, _)| distance(&output.band, total)),
        outputs,
    }
}
