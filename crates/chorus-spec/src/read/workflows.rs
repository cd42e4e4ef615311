//! Settings of the looper Workflows: static roles, or a planner.
//!
//! It knows the models by name, not what a plan does. **Invariant:** a role sees earlier steps only, so a static plan
//! has no cycle.

use super::budgets;
use super::cursor::Cursor;
use super::measures::{ON_ERROR, TEMPERATURE_MOST, seconds, size};
use super::names::{Answerers, Asker};
use super::nearest::suggest;
use crate::diagnostic::code;
use crate::{ModelId, OnError, WorkflowMode, WorkflowRole, WorkflowSettings};

/// Most steps of a workflow.
const STEPS_MOST: i64 = 32;
/// Most workers of a step.
const PARALLEL_MOST: i64 = 32;

pub(super) const MODES: [(&str, WorkflowMode); 2] =
    [("static", WorkflowMode::Static), ("dynamic", WorkflowMode::Dynamic)];

/// `algorithm.workflows`.
pub(super) fn read(
    algorithm: &Cursor<'_>,
    on_error: Option<OnError>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> WorkflowSettings {
    let defaults = WorkflowSettings::default();
    let defaults = WorkflowSettings { on_error: on_error.unwrap_or(defaults.on_error), ..defaults };
    let Some(at) = algorithm.get("workflows") else {
        algorithm.missing("workflows");
        return defaults;
    };
    let mode = at.word("mode", &MODES).unwrap_or_default();
    check_mode(&at, mode);
    let (last, planner) = (at.get("final"), at.get("planner"));
    let model = |block: &Option<Cursor<'_>>, role| {
        let name = block.as_ref()?.get("model")?;
        answerers.model(&name, Asker { role, ..asker })
    };
    let bounded = |key: &str, most: i64, default: usize| {
        let size = at.integer_in(key, 0, most).filter(|n| *n > 0);
        size.and_then(|n| usize::try_from(n).ok()).unwrap_or(default)
    };
    WorkflowSettings {
        mode,
        template: at.string("template").filter(|name| !name.trim().is_empty()).unwrap_or(defaults.template),
        roles: roles(&at, answerers, asker),
        final_model: model(&last, "writer"),
        final_prompt: last.as_ref().and_then(|it| prompt(it)),
        planner: model(&planner, "planner"),
        planner_max_completion_tokens: planner
            .as_ref()
            .and_then(|it| it.count("max_completion_tokens"))
            .unwrap_or(defaults.planner_max_completion_tokens),
        max_steps: bounded("max_steps", STEPS_MOST, defaults.max_steps),
        max_parallel: bounded("max_parallel", PARALLEL_MOST, defaults.max_parallel),
        max_completion_tokens: at.count("max_completion_tokens"),
        round_timeout: seconds(&at, "round_timeout_seconds"),
        min_successful_responses: size(&at, "min_successful_responses"),
        temperature: at.float_in("temperature", 0.0, TEMPERATURE_MOST),
        include_intermediate_responses: at
            .boolean("include_intermediate_responses")
            .unwrap_or(defaults.include_intermediate_responses),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        budget: budgets::read(&at),
    }
}

/// Roles belong to a static plan, a planner to a dynamic one.
fn check_mode(at: &Cursor<'_>, mode: WorkflowMode) {
    let has_roles = at.get("roles").is_some_and(|it| !it.is_empty_list());
    match mode {
        WorkflowMode::Static if !has_roles => {
            let help = "list `roles`, or write `mode: dynamic`".to_owned();
            at.error_help(code::MISSING_KEY, "a static workflow has no `roles`", help);
        }
        WorkflowMode::Static => unused(at, "planner", "static"),
        WorkflowMode::Dynamic => unused(at, "roles", "dynamic"),
    }
}

fn unused(at: &Cursor<'_>, key: &str, mode: &str) {
    if let Some(written) = at.get(key) {
        written.warn(code::UNUSED, format!("`{key}` has no effect in the mode `{mode}`"));
    }
}

fn prompt(at: &Cursor<'_>) -> Option<String> {
    at.string("prompt").filter(|text| !text.trim().is_empty())
}

fn roles(at: &Cursor<'_>, answerers: &Answerers<'_>, asker: Asker<'_>) -> Vec<WorkflowRole> {
    let items = at.items("roles");
    if i64::try_from(items.len()).is_ok_and(|count| count > STEPS_MOST) {
        let message = format!("{} roles; {STEPS_MOST} are the most", items.len());
        at.error(code::BAD_RANGE, message);
    }
    let mut earlier: Vec<Earlier> = Vec::new();
    let mut roles = Vec::new();
    for item in &items {
        let Some(name) = item.required("name") else { continue };
        let id = step_id(&name);
        if earlier.iter().any(|step| step.id == id) {
            let named = item.get("name").unwrap_or_else(|| item.clone());
            named.error(code::DUPLICATE_NAME, format!("a second role has the id `{id}`"));
            continue;
        }
        let worker = Asker { role: "worker", ..asker };
        let models: Vec<ModelId> =
            item.items("models").iter().filter_map(|it| answerers.model(it, worker)).collect();
        let access_list = access(item, &earlier);
        earlier.push(Earlier { id, workers: models.clone() });
        roles.push(WorkflowRole { name, models, prompt: prompt(item), access_list });
    }
    roles
}

/// A step that a later one may refer to.
struct Earlier {
    id: String,
    /// Its workers; empty is every candidate.
    workers: Vec<ModelId>,
}

impl Earlier {
    /// Whether an entry of an access list means this step, or one worker of it (`step:index:model`).
    fn is_meant(&self, entry: &str) -> bool {
        let Some(rest) = entry.strip_prefix(self.id.as_str()) else { return false };
        if rest.is_empty() {
            return true;
        }
        let Some((index, model)) = rest.strip_prefix(':').and_then(|rest| rest.split_once(':')) else {
            return false;
        };
        let Ok(index) = index.parse::<usize>() else { return false };
        self.workers.is_empty() || self.workers.get(index).is_some_and(|worker| worker.as_str() == model)
    }
}

/// What a role sees; `None`, all earlier steps, where nothing is written.
fn access(role: &Cursor<'_>, earlier: &[Earlier]) -> Option<Vec<String>> {
    let written = role.get("access_list")?;
    let entry = |at: &Cursor<'_>| {
        let text = at.text()?;
        if earlier.iter().any(|step| step.is_meant(&text)) {
            return Some(text);
        }
        let known: Vec<&str> = earlier.iter().map(|step| step.id.as_str()).collect();
        let help = suggest(&text, &known, "the first role sees no other");
        at.error_help(code::UNKNOWN_REFERENCE, format!("no earlier step is called `{text}`"), help);
        None
    };
    Some(written.elements().iter().filter_map(entry).collect())
}

/// The id of a step: its name in lower case, anything but letters and digits one hyphen. Source: contract §2.6.
fn step_id(name: &str) -> String {
    let mut id = String::new();
    for character in name.trim().chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            id.push(character);
        } else if !id.ends_with('-') {
            id.push('-');
        }
    }
    id.trim_matches('-').to_owned()
}
