//! The threshold of a cascade at a point that keeps a floor of quality, and what it was calibrated on.
//!
//! A point of objective `cost` may stay with a cheaper model only as far as a calibration vouches for it. The calibration
//! stands in the interface's provenance, as one line under `calibration.POINT`; without one, or with one for another
//! threshold, the point is served on the safe side. It knows no examples and no arithmetic of them.
//!
//! **Invariant:** no cascade of such a point is served below [`SAFE`] unless a calibration names that very threshold.

use crate::mom::{Decimal, Mom, OperatingPoint};
use serde_json::{Value, json};
use std::fmt;

/// The threshold that needs no calibration: only an answer of near certainty stays with the cheaper model.
pub const SAFE: &str = "0.95";

/// The objective of points that this holds for.
const COST: &str = "cost";

/// What a calibration vouches for: on questions like those of the set, at most `risk` of the answers are wrong where the
/// next model's is right, with the probability `confidence` over sets of that size.
///
/// Source: Angelopoulos et al., "Learn then Test" (arXiv:2110.01052).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calibration {
    /// Digest of the set.
    pub set: String,
    /// Questions in it.
    pub examples: u64,
    /// The most that may be wrong, as a share.
    pub risk: Decimal,
    /// How sure that is.
    pub confidence: Decimal,
    /// The threshold.
    pub threshold: Decimal,
}

/// What the threshold of a point rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Footing {
    /// A calibration.
    Calibrated(Calibration),
    /// Nothing: it is at least [`SAFE`].
    SafeSide,
}

impl Calibration {
    /// Where the calibration of a point stands.
    #[must_use]
    pub fn key(point: &str) -> String {
        format!("calibration.{point}")
    }

    /// The line under [`key`](Self::key).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |name: &str| {
            let found = words.chunks(2).find(|pair| pair.first() == Some(&name)).and_then(|pair| pair.get(1));
            found.copied().ok_or_else(|| format!("it says no `{name}`"))
        };
        let share = |name: &str| {
            let decimal = value(name)
                .and_then(|it| Decimal::read(it).ok_or_else(|| format!("`{name}` is no number")))?;
            let is_share = decimal.as_str().parse().is_ok_and(|it: f64| it <= 1.0);
            if is_share { Ok(decimal) } else { Err(format!("`{name}` is above 1")) }
        };
        let set = value("set")?;
        let is_digest = set.strip_prefix("sha256:").is_some_and(|hex| {
            hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if !is_digest {
            return Err("`set` is no sha256 digest".to_owned());
        }
        Ok(Self {
            set: set.to_owned(),
            examples: value("examples")?.parse().map_err(|_| "`examples` is no whole number".to_owned())?,
            risk: share("risk")?,
            confidence: share("confidence")?,
            threshold: share("threshold")?,
        })
    }

    /// The calibration of a point, if it has a good one.
    #[must_use]
    pub fn of(mom: &Mom, point: &str) -> Option<Self> {
        Self::read(mom.provenance.get(&Self::key(point))?).ok()
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, examples, risk, confidence, threshold } = self;
        let (risk, confidence, threshold) = (risk.as_str(), confidence.as_str(), threshold.as_str());
        write!(out, "set {set} examples {examples} risk {risk} confidence {confidence} threshold {threshold}")
    }
}

/// What each point of that objective that has a cascade rests on.
#[must_use]
pub fn footings(mom: &Mom, graph: &Value) -> Vec<(String, Footing)> {
    let points = mom.operating_points.iter().filter(|it| it.objective == COST);
    let of = |point: &OperatingPoint| {
        let calibration = Calibration::of(mom, &point.name);
        let mut thresholds = Vec::new();
        let recipe = recipe(graph, &point.recipe)?;
        each_cascade(&mut recipe.clone(), &mut |cascade| {
            thresholds.push(cascade.get("threshold").and_then(as_decimal));
        });
        let vouched =
            calibration.filter(|it| thresholds.iter().all(|own| own.as_ref() == Some(&it.threshold)));
        let footing = vouched.map_or(Footing::SafeSide, Footing::Calibrated);
        (!thresholds.is_empty()).then(|| (point.name.clone(), footing))
    };
    points.filter_map(of).collect()
}

/// Problems of the calibrations that an interface names.
#[must_use]
pub fn problems(mom: &Mom) -> Vec<String> {
    let named =
        mom.provenance.iter().filter_map(|(key, line)| Some((key.strip_prefix("calibration.")?, line)));
    let problem = |(point, line): (&str, &String)| {
        let known = mom.operating_points.iter().any(|it| it.name == point && it.objective == COST);
        if !known {
            return Some(format!(
                "`calibration.{point}`: `{point}` is no operating point of objective `{COST}`"
            ));
        }
        Calibration::read(line).err().map(|why| format!("`calibration.{point}`: {why}"))
    };
    named.filter_map(problem).collect()
}

/// Puts the cascades of points that nothing vouches for on the safe side.
pub(crate) fn hold(mom: &Mom, graph: &mut Value) {
    let uncalibrated: Vec<String> = footings(mom, graph)
        .into_iter()
        .filter(|(_, footing)| *footing == Footing::SafeSide)
        .filter_map(|(name, _)| mom.operating_points.iter().find(|it| it.name == name))
        .map(|point| point.recipe.clone())
        .collect();
    for name in uncalibrated {
        if let Some(recipe) = recipe_mut(graph, &name) {
            each_cascade(recipe, &mut raise);
        }
    }
}

/// To the safe side, where it is not on it.
fn raise(cascade: &mut Value) {
    let threshold = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let own = cascade.get("threshold").and_then(threshold);
    let safe = SAFE.parse().unwrap_or(1.0);
    if let Some(fields) = cascade.as_object_mut().filter(|_| own.is_none_or(|own: f64| own < safe)) {
        fields.insert("threshold".to_owned(), json!(SAFE));
    }
}

fn as_decimal(value: &Value) -> Option<Decimal> {
    Decimal::read(value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string()).as_str())
}

fn recipe<'g>(graph: &'g Value, name: &str) -> Option<&'g Value> {
    let named = |it: &&Value| it.get("name").and_then(Value::as_str) == Some(name);
    let listed = graph.get("recipes").and_then(Value::as_array).and_then(|all| all.iter().find(named));
    listed.or_else(|| graph.get("routing").filter(|_| name == "default"))
}

fn recipe_mut<'g>(graph: &'g mut Value, name: &str) -> Option<&'g mut Value> {
    let named = |it: &Value| it.get("name").and_then(Value::as_str) == Some(name);
    let at = graph.get("recipes").and_then(Value::as_array).and_then(|all| all.iter().position(named));
    match at {
        Some(at) => graph.get_mut("recipes")?.get_mut(at),
        None => graph.get_mut("routing").filter(|_| name == "default"),
    }
}

/// The settings of every cascade below a recipe; one that has none gets an empty mapping.
fn each_cascade(value: &mut Value, see: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_cascade(item, see)),
        Value::Object(fields) => {
            if fields.get("type").and_then(Value::as_str) == Some("confidence")
                && !fields.contains_key("name")
            {
                see(fields.entry("confidence").or_insert_with(|| json!({})));
            }
            fields.iter_mut().for_each(|(_, value)| each_cascade(value, see));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn line(threshold: &str) -> String {
        format!("set {SET} examples 800 risk 0.05 confidence 0.9 threshold {threshold}")
    }

    #[test]
    fn a_line_is_read_as_it_is_written_and_half_a_line_is_none() {
        let read = Calibration::read(&line("0.83")).unwrap();
        assert_eq!((read.examples, read.threshold.as_str(), read.to_string()), (800, "0.83", line("0.83")));
        for (wrong, why) in [
            (line("1.2"), "`threshold` is above 1"),
            (line("x"), "`threshold` is no number"),
            (line("0.8").replace(SET, "md5:1"), "`set` is no sha256 digest"),
            (line("0.8").replace("examples 800", "examples many"), "`examples` is no whole number"),
            (line("0.8").replace("risk 0.05", ""), "it says no `risk`"),
        ] {
            assert_eq!(Calibration::read(&wrong).unwrap_err(), why);
        }
    }
}
