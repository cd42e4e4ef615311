//! Decisions: a rule, its candidates, an algorithm, plugins.
//!
//! It knows the facts and the models by name. **Invariant:** every decision that is read can be carried out or says
//! at run time which part of it this version does not run.

use super::cursor::Cursor;
use super::names::{Answerers, Asker, Facts, unique};
use super::{algorithms, iterations, outputs, plugins, rules};
use crate::diagnostic::code;
use crate::{Algorithm, Decision, ModelRef, Plugin};
use std::collections::BTreeSet;

/// Reads the `decisions` of a `routing` block.
pub(super) fn read(
    routing: &Cursor<'_>,
    recipe: &str,
    facts: &Facts<'_>,
    answerers: &Answerers<'_>,
) -> Vec<Decision> {
    let mut seen = BTreeSet::new();
    let read = |at: &Cursor<'_>| {
        let name = at.required("name")?;
        let is_new = unique(&mut seen, at, "decision", &name);
        Some(decision(at, name, recipe, facts, answerers)).filter(|_| is_new)
    };
    routing.items("decisions").iter().filter_map(read).collect()
}

fn decision(
    at: &Cursor<'_>,
    name: String,
    recipe: &str,
    facts: &Facts<'_>,
    answerers: &Answerers<'_>,
) -> Decision {
    let asker = Asker { recipe, decision: &name, role: "candidate" };
    let read_model = |item: &Cursor<'_>| model_ref(item, answerers, asker);
    let written = at.items("modelRefs").iter().filter_map(read_model).collect();
    let candidate_iterations = iterations::read(at, &read_model);
    let model_refs = iterations::unrolled(written, &candidate_iterations);
    let algorithm = algorithms::read(at, &model_refs, answerers, asker);
    let plugins = plugins::read(at, &name, answerers.house);
    check_candidates(at, &algorithm, &plugins, answerers);
    Decision {
        description: at.string("description").unwrap_or_default(),
        priority: at.integer_in("priority", i64::MIN, i64::MAX).unwrap_or(0),
        tier: at.integer_in("tier", 0, i64::MAX).unwrap_or(0),
        rules: rules::optional(at, "rules", facts),
        model_refs,
        algorithm,
        plugins,
        output_contract: at.string("output_contract").filter(|text| !text.trim().is_empty()),
        output_contract_spec: outputs::contract(at),
        emits: outputs::emits(at),
        candidate_iterations,
        adaptations: outputs::adaptations(at),
        annotations: outputs::annotations(at),
        place: at.place(),
        name,
    }
}

fn model_ref(at: &Cursor<'_>, answerers: &Answerers<'_>, asker: Asker<'_>) -> Option<ModelRef> {
    at.required("model")?;
    let it = ModelRef {
        model: answerers.model(&at.get("model")?, asker)?,
        lora_name: at.string("lora_name"),
        weight: at.float_in("weight", 0.0, f64::MAX),
        use_reasoning: at.boolean("use_reasoning"),
        reasoning_effort: at.string("reasoning_effort"),
    };
    Some(it)
}

/// A decision must come to an answer: by candidates, a panel, a fixed text, or the default model.
fn check_candidates(at: &Cursor<'_>, algorithm: &Algorithm, plugins: &[Plugin], answerers: &Answerers<'_>) {
    let has_panel = matches!(algorithm, Algorithm::Fusion(settings) if !settings.panel.is_empty());
    let has_answer = plugins.iter().any(|plugin| matches!(plugin, Plugin::FastResponse { .. }));
    // Names that were refused have been reported; a follower would only repeat them.
    check_company(at, algorithm);
    let is_written = |keys: &[&str]| at.dig(keys).is_some_and(|it| !it.is_empty_list());
    let panel_is_written = is_written(&["algorithm", "fusion", "analysis_models"]);
    if is_written(&["modelRefs"]) || loops_put_out(at) || has_panel || has_answer || panel_is_written {
        return;
    }
    if matches!(algorithm, Algorithm::Fusion(_)) {
        at.error(code::MISSING_KEY, "a Fusion decision needs `analysis_models` or `modelRefs`");
    } else if algorithm.looper().is_some() {
        let message = format!("a decision with the algorithm `{}` needs `modelRefs`", algorithm.kind());
        at.error(code::MISSING_KEY, message);
    } else if !answerers.has_default {
        at.error(
            code::MISSING_KEY,
            "this decision has no `modelRefs`, and there is no `providers.defaults.default_model`",
        );
    }
}

/// Whether a loop names models; those that were refused have been reported.
fn loops_put_out(at: &Cursor<'_>) -> bool {
    at.items("candidateIterations").iter().any(|it| !it.items("models").is_empty())
}

/// A cascade and a rated ensemble need two candidates. Source: contract §2.1.
fn check_company(at: &Cursor<'_>, algorithm: &Algorithm) {
    let written = at.items("modelRefs").len();
    if written == 1
        && !loops_put_out(at)
        && matches!(algorithm, Algorithm::Confidence(_) | Algorithm::Ratings(_))
    {
        let message = format!("the algorithm `{}` needs at least two `modelRefs`", algorithm.kind());
        at.get("modelRefs").unwrap_or_else(|| at.clone()).error(code::MISSING_KEY, message);
    }
}
