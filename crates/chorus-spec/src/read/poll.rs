//! Settings of the looper Poll.
//!
//! **Invariant:** whoever is asked is one of the decision's candidates, and is asked once.

use super::budgets;
use super::cursor::Cursor;
use super::measures::{ON_ERROR, seconds};
use super::nearest::suggest;
use super::yaml::Kind;
use crate::diagnostic::code;
use crate::{ModelId, ModelRef, OnError, PollSettings, PollStepSettings};
use std::collections::BTreeSet;

/// Most possible answers that a poll may count with.
const ALTERNATIVES_MOST: i64 = 1000;
/// Greatest weight of a vote, in logits, either way.
const WEIGHT_MOST: f64 = 100.0;

/// `algorithm.poll`.
pub(super) fn read(algorithm: &Cursor<'_>, refs: &[ModelRef], on_error: Option<OnError>) -> PollSettings {
    let defaults = PollSettings { on_error: on_error.unwrap_or_default(), ..PollSettings::default() };
    let Some(at) = algorithm.get("poll") else {
        return defaults;
    };
    let alternatives = at.integer_in("alternatives", 2, ALTERNATIVES_MOST);
    let mut asked = BTreeSet::new();
    PollSettings {
        steps: at.items("steps").iter().filter_map(|it| step(it, refs, &mut asked)).collect(),
        alternatives: alternatives.and_then(|n| usize::try_from(n).ok()).unwrap_or(defaults.alternatives),
        step_timeout: seconds(&at, "step_timeout_seconds"),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        budget: budgets::read(&at),
    }
}

fn step(at: &Cursor<'_>, refs: &[ModelRef], asked: &mut BTreeSet<ModelId>) -> Option<PollStepSettings> {
    let named = at.needed("models")?;
    let mut models = Vec::new();
    for name in named.elements() {
        let Some(model) = candidate(&name, refs) else { continue };
        if asked.insert(model.clone()) {
            models.push(model);
        } else {
            name.error(code::BAD_VALUE, format!("`{model}` is asked twice in one poll"));
        }
    }
    let weights = at.get("weights").map(|written| weights(&written, asked)).unwrap_or_default();
    let (accept, hopeless) = (at.float_in("accept", 0.0, 1.0), at.float_in("hopeless", 0.0, 1.0));
    if let (Some(accept), Some(hopeless)) = (accept, hopeless)
        && hopeless >= accept
    {
        let place = at.get("hopeless").unwrap_or_else(|| at.clone());
        let message = format!("`hopeless` is {hopeless}; it must be below `accept`, which is {accept}");
        place.error(code::BAD_RANGE, message);
    }
    if named.is_empty_list() {
        named.error(code::BAD_VALUE, "a step of a poll asks nobody");
    }
    (!models.is_empty()).then_some(PollStepSettings { models, weights, accept, hopeless })
}

fn candidate(at: &Cursor<'_>, refs: &[ModelRef]) -> Option<ModelId> {
    let name = at.text()?;
    let model = refs.iter().map(|it| &it.model).find(|model| model.as_str() == name);
    if model.is_none() {
        let known: Vec<&str> = refs.iter().map(|it| it.model.as_str()).collect();
        let help = suggest(&name, &known, "list it under `modelRefs`");
        at.error_help(code::BAD_VALUE, format!("`{name}` is not one of the decision's candidates"), help);
    }
    model.cloned()
}

/// One number a model, or three: bare, worked, long.
fn weights(at: &Cursor<'_>, asked: &BTreeSet<ModelId>) -> Vec<(ModelId, [f64; 3])> {
    let mut all = Vec::new();
    for (name, _, value) in at.entries() {
        let model = ModelId::new(name);
        if !asked.contains(&model) {
            value.warn(
                code::UNUSED,
                format!("`{name}` has not been asked by then, so its weight counts nothing"),
            );
        }
        let numbers: Vec<Option<f64>> = match value.node().kind {
            Kind::Seq(_) => value.elements().iter().map(weight).collect(),
            _ => vec![weight(&value)],
        };
        let numbers: Option<Vec<f64>> = numbers.into_iter().collect();
        match numbers.as_deref() {
            Some([one]) => all.push((model, [*one; 3])),
            Some([bare, worked, long]) => all.push((model, [*bare, *worked, *long])),
            Some(_) => value.error(code::BAD_VALUE, "a weight is one number, or three: bare, worked, long"),
            None => {}
        }
    }
    all
}

fn weight(at: &Cursor<'_>) -> Option<f64> {
    at.number_in(-WEIGHT_MOST, WEIGHT_MOST)
}
