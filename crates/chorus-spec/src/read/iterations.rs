//! `candidateIterations` of a decision: loops that put out candidates.
//!
//! It knows the models by name. A loop over `models` whose outputs name its variable makes these models candidates, after
//! those of `modelRefs`; a loop over `decision.candidates` names the candidates again, which changes nothing.
//!
//! **Invariant:** a decision has every candidate once (a model with one adapter), however often loops put it out.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{CandidateIteration, IterationSource, ModelRef};

/// Reads `candidateIterations`; `model_ref` reads one model.
pub(super) fn read(
    decision: &Cursor<'_>,
    model_ref: &dyn Fn(&Cursor<'_>) -> Option<ModelRef>,
) -> Vec<CandidateIteration> {
    decision.items("candidateIterations").iter().filter_map(|at| iteration(at, decision, model_ref)).collect()
}

fn iteration(
    at: &Cursor<'_>,
    decision: &Cursor<'_>,
    model_ref: &dyn Fn(&Cursor<'_>) -> Option<ModelRef>,
) -> Option<CandidateIteration> {
    let variable = at.required("variable");
    at.needed("source")?;
    let source = if at.word("source", &[("decision.candidates", true), ("models", false)])? {
        if decision.items("modelRefs").is_empty() {
            at.error(code::MISSING_KEY, "a loop over `decision.candidates` needs `modelRefs`");
        }
        IterationSource::Candidates
    } else {
        at.needed("models")?;
        let models = at.items("models");
        if models.is_empty() {
            at.error(code::MISSING_KEY, "a loop over `models` needs at least one model");
        }
        IterationSource::Models(models.iter().filter_map(model_ref).collect())
    };
    let variable = variable?;
    let outputs = at.items("outputs").iter().filter_map(|it| output(it, &variable)).collect();
    let iteration = CandidateIteration { variable, source, outputs };
    if !iteration.puts_out_models() {
        let message =
            format!("this loop puts out nothing; `outputs` lacks a `model` of `{}`", iteration.variable);
        at.warn(code::UNUSED, message);
    }
    Some(iteration)
}

/// One output; the contract has outputs of the type `model` only, whose value is the loop's variable.
fn output(at: &Cursor<'_>, variable: &str) -> Option<(String, Option<String>)> {
    at.required("type")?;
    let kind = at.word("type", &[("model", "model")])?;
    let value = at.string("value");
    if value.as_deref() != Some(variable) {
        let help = format!("write `value: {variable}`");
        at.error_help(code::BAD_VALUE, format!("a `model` is put out by the variable `{variable}`"), help);
    }
    Some((kind.to_owned(), value))
}

/// The decision's candidates: those of `modelRefs`, then those that loops put out and that are not among them yet.
pub(super) fn unrolled(model_refs: Vec<ModelRef>, iterations: &[CandidateIteration]) -> Vec<ModelRef> {
    let mut all = model_refs;
    for iteration in iterations.iter().filter(|it| it.puts_out_models()) {
        let IterationSource::Models(models) = &iteration.source else { continue };
        for it in models {
            if !all.iter().any(|known| known.model == it.model && known.lora_name == it.lora_name) {
                all.push(it.clone());
            }
        }
    }
    all
}
