//! What the members of a team said, as each looper's trace tells it.

use super::asking::Run;
use crate::markdown::{items, text};
use serde_json::Value;

/// One answer within a run.
pub(super) struct Said<'r> {
    /// Who, in which place.
    pub(super) who: String,
    /// The text; a cascade's trace holds none.
    pub(super) text: &'r str,
    /// What the trace says about it.
    pub(super) remark: String,
}

/// Every answer of a run, in the order of its trace.
pub(super) fn said(run: &Run) -> Vec<Said<'_>> {
    let trace = |field: &str| run.reply.get(field);
    let mut all = Vec::new();
    for attempt in trace("confidence").into_iter().flat_map(|it| items(it, "attempts")) {
        all.push(Said { who: model(attempt), text: "", remark: measured(attempt) });
    }
    for rated in trace("ratings").into_iter().flat_map(|it| items(it, "responses")) {
        let rating = rated.get("rating").and_then(Value::as_f64);
        let remark = rating.map(|rating| format!("rated {rating:.2}")).unwrap_or_default();
        all.push(Said { remark, ..of(rated, "") });
    }
    for round in trace("reasoning_mom_responses").and_then(Value::as_array).into_iter().flatten() {
        let place = format!("round {}, ", round.get("round").and_then(Value::as_u64).unwrap_or_default());
        all.extend(items(round, "responses").map(|response| of(response, &place)));
    }
    all.extend(trace("fusion").into_iter().flat_map(|it| items(it, "responses")).map(|it| of(it, "")));
    for step in trace("flow").into_iter().flat_map(|it| items(it, "steps")) {
        let place = format!("step {}, ", text(step, "id"));
        all.extend(items(step, "responses").map(|response| of(response, &place)));
    }
    for step in trace("poll").into_iter().flat_map(|it| items(it, "steps")) {
        all.push(Said { who: voters(step), text: "", remark: counted(step) });
    }
    all
}

fn of<'r>(response: &'r Value, place: &str) -> Said<'r> {
    Said {
        who: format!("{place}{}", model(response)),
        text: text(response, "content"),
        remark: String::new(),
    }
}

fn model(value: &Value) -> String {
    format!("`{}`", text(value, "model"))
}

fn measured(attempt: &Value) -> String {
    let accepted = attempt.get("accepted").and_then(Value::as_bool) == Some(true);
    let verdict = if accepted { "taken" } else { "passed over" };
    let why = attempt.get("confidence").and_then(Value::as_f64).map_or_else(
        || [text(attempt, "no_evidence"), text(attempt, "error")].concat(),
        |confidence| format!("confidence {confidence:.2}"),
    );
    format!("{verdict}; {why}")
}

fn voters(step: &Value) -> String {
    let models: Vec<String> =
        items(step, "models").filter_map(Value::as_str).map(|model| format!("`{model}`")).collect();
    models.join(" and ")
}

fn counted(step: &Value) -> String {
    let share = step.get("share").and_then(Value::as_f64).unwrap_or_default();
    match text(step, "leader") {
        "" => "no vote could be read".to_owned(),
        leader => format!("lead to {}, likelihood {share:.2}", leader.to_uppercase()),
    }
}
