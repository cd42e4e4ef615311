//! Projections: partitions, scores in an order in which each uses only earlier ones, and mappings.
//!
//! It knows the facts by name. **Invariant:** scores that come out of here can be evaluated in one pass.

use super::cursor::Cursor;
use super::names::{Facts, unique};
use super::nearest::suggest;
use super::order::order;
use super::rules;
use crate::diagnostic::code;
use crate::{
    Calibration, Family, InputSource, Mapping, MappingMethod, MappingOutput, NumericPredicate, Partition,
    PartitionSemantics, Projections, Score, ScoreInput, SignalKey, ValueSource,
};
use std::collections::BTreeSet;

/// Default steepness of a mapping's confidence (contract §1.5).
const SLOPE: f64 = 12.0;

/// Reads the `projections` of a `routing` block.
pub(super) fn read(routing: &Cursor<'_>, facts: &Facts<'_>) -> Projections {
    let Some(at) = routing.get("projections") else {
        return Projections::default();
    };
    let score_names: BTreeSet<String> =
        at.items("scores").iter().filter_map(|s| s.get("name")?.node().text().map(str::to_owned)).collect();
    let partitions = partitions(&at, facts);
    let mappings = mappings(&at, &score_names);
    let scores = scores(&at, facts, &score_names);
    Projections { partitions, scores: sorted(&at, scores, &mappings), mappings }
}

fn partitions(at: &Cursor<'_>, facts: &Facts<'_>) -> Vec<Partition> {
    let (mut seen, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let read = |item: &Cursor<'_>| {
        let name = item.required("name")?;
        let semantics = semantics(item);
        let members: Vec<SignalKey> =
            item.items("members").iter().filter_map(|member| self::member(member, facts)).collect();
        if item.items("members").is_empty() {
            item.missing("members");
        }
        check_members(item, &members, &mut taken);
        let default = item.get("default").and_then(|default| {
            let text = default.text()?;
            let found = members.iter().find(|key| key.name() == text).cloned();
            if found.is_none() {
                default.error(code::UNKNOWN_REFERENCE, format!("`{text}` is not a member of this partition"));
            }
            found
        });
        let is_new = unique(&mut seen, item, "partition", &name);
        Some(Partition { name, semantics: semantics?, members, default, place: item.place() })
            .filter(|_| is_new)
    };
    at.items("partitions").iter().filter_map(read).collect()
}

fn semantics(item: &Cursor<'_>) -> Option<PartitionSemantics> {
    item.needed("semantics")?;
    let temperature = item.positive("temperature").unwrap_or(1.0);
    match item.word("semantics", &[("exclusive", false), ("softmax_exclusive", true)])? {
        true => Some(PartitionSemantics::SoftmaxExclusive { temperature }),
        false => Some(PartitionSemantics::Exclusive),
    }
}

/// A member is written as a bare name; it belongs to the one family that has it.
fn member(at: &Cursor<'_>, facts: &Facts<'_>) -> Option<SignalKey> {
    let name = at.text()?;
    match (facts.has(Family::Domain, &name), facts.has(Family::Embedding, &name)) {
        (true, true) => {
            at.error(code::BAD_VALUE, format!("`{name}` is both a domain and an embedding rule; rename one"));
            None
        }
        (true, false) => Some(SignalKey::new(Family::Domain, name)),
        (false, true) => Some(SignalKey::new(Family::Embedding, name)),
        (false, false) => {
            let help = "members of a partition are domain or embedding rules".to_owned();
            at.error_help(
                code::UNKNOWN_REFERENCE,
                format!("no domain or embedding rule is named `{name}`"),
                help,
            );
            None
        }
    }
}

fn check_members(item: &Cursor<'_>, members: &[SignalKey], taken: &mut BTreeSet<String>) {
    let families: BTreeSet<Family> = members.iter().map(|key| key.family).collect();
    if families.len() > 1 {
        item.error(
            code::BAD_VALUE,
            "members of one partition must be of one family: their scores do not compare",
        );
    }
    for key in members {
        if !taken.insert(key.to_string()) {
            item.error(code::DUPLICATE_NAME, format!("`{key}` is already a member of a partition"));
        }
    }
}

fn scores(at: &Cursor<'_>, facts: &Facts<'_>, names: &BTreeSet<String>) -> Vec<Score> {
    let mut seen = BTreeSet::new();
    let read = |item: &Cursor<'_>| {
        let name = item.required("name")?;
        item.word("method", &[("weighted_sum", ())]);
        let inputs: Vec<ScoreInput> =
            item.items("inputs").iter().filter_map(|input| score_input(input, facts, names)).collect();
        if item.items("inputs").is_empty() {
            item.missing("inputs");
        }
        let is_new = unique(&mut seen, item, "score", &name);
        Some(Score { name, inputs, place: item.place() }).filter(|_| is_new)
    };
    at.items("scores").iter().filter_map(read).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Binary,
    Confidence,
    Raw,
    Score,
}

fn score_input(at: &Cursor<'_>, facts: &Facts<'_>, scores: &BTreeSet<String>) -> Option<ScoreInput> {
    const VALUES: [(&str, Wanted); 4] = [
        ("binary", Wanted::Binary),
        ("confidence", Wanted::Confidence),
        ("raw", Wanted::Raw),
        ("score", Wanted::Score),
    ];
    let weight = at.needed("weight").and_then(|_| at.float("weight"));
    let wanted = at.word("value_source", &VALUES);
    let source = input_source(at, facts, scores, wanted)?;
    let binary = ValueSource::Binary {
        matched: at.float("match").unwrap_or(1.0),
        miss: at.float("miss").unwrap_or(0.0),
    };
    let value = match (&source, wanted) {
        (InputSource::Signal(_), Some(Wanted::Score)) => {
            at.error(code::BAD_VALUE, "`value_source: score` needs a score or a knowledge base's metric");
            return None;
        }
        (InputSource::Signal(_), Some(Wanted::Confidence)) => ValueSource::Confidence,
        (InputSource::Signal(_), Some(Wanted::Raw)) => ValueSource::Raw,
        (InputSource::Signal(_), _) => binary,
        (_, None | Some(Wanted::Score | Wanted::Raw)) => ValueSource::Score,
        (_, Some(Wanted::Binary | Wanted::Confidence)) => {
            at.error(code::BAD_VALUE, "a score is read with `value_source: score`");
            return None;
        }
    };
    Some(ScoreInput { source, weight: weight?, value })
}

fn input_source(
    at: &Cursor<'_>,
    facts: &Facts<'_>,
    scores: &BTreeSet<String>,
    wanted: Option<Wanted>,
) -> Option<InputSource> {
    let kind = at.needed("type")?;
    if kind.node().text() == Some("kb_metric") {
        return kb_metric(at, facts);
    }
    let family = rules::family(&kind)?;
    let name = at.required("name")?;
    let is_output = facts.has(Family::Projection, &name) && wanted != Some(Wanted::Score);
    if family == Family::Projection && !is_output && scores.contains(&name) {
        return Some(InputSource::Score(name));
    }
    let at_name = at.get("name")?;
    facts.demand(&at_name, family, &name).then(|| InputSource::Signal(SignalKey::new(family, name)))
}

fn kb_metric(at: &Cursor<'_>, facts: &Facts<'_>) -> Option<InputSource> {
    let (kb, metric) = (at.required("kb"), at.required("metric"));
    let base = facts.knowledge_base(&at.get("kb")?)?;
    let metric = metric?;
    if base.metrics.iter().all(|known| known.name != metric) {
        let known: Vec<&str> = base.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let named = at.get("metric").unwrap_or_else(|| at.clone());
        let message = format!("`{}` has no metric `{metric}`", base.name);
        named.error_help(code::UNKNOWN_REFERENCE, message, suggest(&metric, &known, "it has no metrics"));
        return None;
    }
    Some(InputSource::KbMetric { kb: kb?, metric })
}

fn mappings(at: &Cursor<'_>, scores: &BTreeSet<String>) -> Vec<Mapping> {
    const METHODS: [(&str, MappingMethod); 2] =
        [("threshold_bands", MappingMethod::ThresholdBands), ("multi_emit", MappingMethod::MultiEmit)];
    let (mut seen, mut outputs_seen) = (BTreeSet::new(), BTreeSet::new());
    let read = |item: &Cursor<'_>| {
        let name = item.required("name")?;
        let source = item.required("source");
        if let Some((at, source)) =
            item.get("source").zip(source.as_ref()).filter(|(_, s)| !scores.contains(*s))
        {
            let known: Vec<&str> = scores.iter().map(String::as_str).collect();
            let help = suggest(source, &known, "declare it under `projections.scores`");
            at.error_help(code::UNKNOWN_REFERENCE, format!("no score is named `{source}`"), help);
        }
        let method = item.word("method", &METHODS).unwrap_or(MappingMethod::ThresholdBands);
        let outputs = outputs(item, method, &mut outputs_seen);
        let is_new = unique(&mut seen, item, "mapping", &name);
        let calibration = calibration(item);
        Some(Mapping { name, source: source?, method, calibration, outputs, place: item.place() })
            .filter(|_| is_new)
    };
    at.items("mappings").iter().filter_map(read).collect()
}

fn calibration(item: &Cursor<'_>) -> Option<Calibration> {
    let at = item.get("calibration")?;
    at.word("method", &[("sigmoid_distance", ())]);
    Some(Calibration { slope: at.positive("slope").unwrap_or(SLOPE) })
}

fn outputs(item: &Cursor<'_>, method: MappingMethod, seen: &mut BTreeSet<String>) -> Vec<MappingOutput> {
    let mut outputs: Vec<MappingOutput> = Vec::new();
    for at in item.items("outputs") {
        let Some(name) = at.required("name") else { continue };
        let band = at.bounds();
        let shadow = outputs.iter().find(|earlier| covers(&earlier.band, &band));
        if let Some(earlier) = shadow.filter(|_| method == MappingMethod::ThresholdBands) {
            let message =
                format!("`{}` takes every score of `{name}`, so `{name}` never matches", earlier.name);
            at.warn_help(code::NEVER_MATCHES, message, "the first band that holds the score wins".to_owned());
        }
        if unique(seen, &at, "mapping output", &name) {
            outputs.push(MappingOutput { name, band });
        }
    }
    if item.items("outputs").is_empty() {
        item.missing("outputs");
    }
    outputs
}

/// Whether every number of `inner` is in `outer`.
fn covers(outer: &NumericPredicate, inner: &NumericPredicate) -> bool {
    // An edge as (bound, whether the bound itself is outside); greater is tighter on the low side.
    let low = |p: &NumericPredicate| match (p.gt, p.gte) {
        (Some(gt), Some(gte)) if gte > gt => (gte, false),
        (Some(gt), _) => (gt, true),
        (None, Some(gte)) => (gte, false),
        (None, None) => (f64::NEG_INFINITY, false),
    };
    let high = |p: &NumericPredicate| match (p.lt, p.lte) {
        (Some(lt), Some(lte)) if lte < lt => (lte, false),
        (Some(lt), _) => (lt, true),
        (None, Some(lte)) => (lte, false),
        (None, None) => (f64::INFINITY, false),
    };
    let ((outer_low, outer_low_open), (inner_low, inner_low_open)) = (low(outer), low(inner));
    let ((outer_high, outer_high_open), (inner_high, inner_high_open)) = (high(outer), high(inner));
    let holds_low = outer_low < inner_low || (outer_low == inner_low && (!outer_low_open || inner_low_open));
    let holds_high =
        outer_high > inner_high || (outer_high == inner_high && (!outer_high_open || inner_high_open));
    holds_low && holds_high
}

/// Puts the scores into an order in which each uses only earlier ones, or reports the circle.
fn sorted(at: &Cursor<'_>, scores: Vec<Score>, mappings: &[Mapping]) -> Vec<Score> {
    let position = |name: &str| scores.iter().position(|score| score.name == name);
    let behind = |source: &InputSource| match source {
        InputSource::Score(name) => position(name),
        InputSource::Signal(key) if key.family == Family::Projection => mappings
            .iter()
            .find(|m| m.outputs.iter().any(|o| o.name == key.name()))
            .and_then(|m| position(&m.source)),
        _ => None,
    };
    let needs: Vec<Vec<usize>> = scores
        .iter()
        .map(|score| score.inputs.iter().filter_map(|input| behind(&input.source)).collect())
        .collect();
    match order(&needs) {
        Ok(order) => {
            let mut slots: Vec<Option<Score>> = scores.into_iter().map(Some).collect();
            order.into_iter().filter_map(|index| slots.get_mut(index)?.take()).collect()
        }
        Err(circle) => {
            let names: Vec<&str> =
                circle.iter().filter_map(|i| scores.get(*i)).map(|s| s.name.as_str()).collect();
            let first = at
                .items("scores")
                .into_iter()
                .find(|s| s.string("name").as_deref() == names.first().copied());
            let message = format!("scores use each other: {}", names.join(" → "));
            first.unwrap_or_else(|| at.clone()).error(code::CYCLE, message);
            scores
        }
    }
}
