//! Scores and mappings: weighted sums of evidence, and the named bands that they fall into.
//!
//! Knows nothing of decisions. A term is 1 or 0 (or the numbers written for a hit and a miss), the confidence of what
//! matched, or the raw value, which is 0 where a signal measures nothing. The confidence of an emitted band is
//! `1 / (1 + e^(−slope·distance))` of the distance to its nearest bound, 1 without calibration; a band without bounds
//! has distance 1. Source: contract v0.3 §1.5.
//!
//! **Invariant:** a score is known only when every term is; one absent term makes every band of it unknown.

use crate::facts::{Facts, State, hindrance};
use crate::program::{Input, InputFrom, MappingStep, Program, ScoreStep};
use crate::trace::{InputPart, MappingDecision, OutputStep, ScoreBreakdown};
use chorus_spec::{MappingMethod, NumericPredicate, ValueSource};

/// A score's total, or what stands in its way.
pub(crate) type Total = Result<f64, State>;

/// Sums one score and settles its mappings; `totals` are those of the scores before it.
pub(crate) fn resolve(step: &ScoreStep, totals: &[Total], facts: &mut Facts) -> Total {
    let states = step.inputs.iter().map(|input| state(input, totals, facts));
    let total = match hindrance(states) {
        Some(state) => Err(state),
        None => Ok(step.inputs.iter().map(|input| input.weight * value(input, totals, facts)).sum()),
    };
    for mapping in &step.mappings {
        settle(mapping, total, facts);
    }
    total
}

/// What stands in a term's way, if it is not matched or unmatched.
fn state(input: &Input, totals: &[Total], facts: &Facts) -> State {
    match input.from {
        InputFrom::Slot(slot) => facts.state(slot),
        // A score that does not stand before this one cannot be read; the reader of the file has refused it.
        InputFrom::Score(score) => match totals.get(score) {
            Some(Ok(_)) => State::Unmatched,
            Some(Err(state)) => *state,
            None => State::Failed,
        },
    }
}

fn value(input: &Input, totals: &[Total], facts: &Facts) -> f64 {
    let slot = match input.from {
        InputFrom::Slot(slot) => slot,
        InputFrom::Score(score) => return totals.get(score).and_then(|t| t.ok()).unwrap_or_default(),
    };
    match (input.value, facts.state(slot)) {
        (ValueSource::Binary { matched, .. }, State::Matched(_)) => matched,
        (ValueSource::Binary { miss, .. }, _) => miss,
        (ValueSource::Confidence, State::Matched(confidence)) => confidence,
        (ValueSource::Confidence, _) => 0.0,
        (ValueSource::Raw | ValueSource::Score, _) => facts.raw(slot).unwrap_or_default(),
    }
}

fn settle(mapping: &MappingStep, total: Total, facts: &mut Facts) {
    let mut taken = false;
    for output in &mapping.outputs {
        let state = match total {
            Err(state) => state,
            Ok(total)
                if output.band.holds(total)
                    && !(taken && mapping.method == MappingMethod::ThresholdBands) =>
            {
                taken = true;
                State::matched(confidence(mapping, &output.band, total))
            }
            Ok(_) => State::Unmatched,
        };
        facts.settle_output(output.slot, state, total.ok());
    }
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
        InputFrom::Slot(slot) => program.slots.get(slot).map(|s| s.key.name.clone()),
        InputFrom::Score(score) => program.scores.get(score).map(|s| s.name.clone()),
    };
    let part = |input: &Input| {
        let value = value(input, totals, facts);
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
