//! A plan's steps: who does what, and who sees whose results.
//!
//! **Invariant:** a checked plan has steps with unique ids, each with a worker, and a step sees earlier ones only.

use chorus_spec::WorkflowRole;
use serde::{Deserialize, Serialize};

/// Longest id of a step, in bytes.
const MAX_ID_BYTES: usize = 64;

/// What is to be done. Source: contract Appendix B (`workflowPlan`).
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// In order.
    pub steps: Vec<Step>,
    /// Who writes the answer, and how.
    #[serde(rename = "final", default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
}

/// One step: workers side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Unique within the plan.
    pub id: String,
    /// What kind of work; picks the built-in prompt.
    pub role: String,
    /// One model a worker.
    pub models: Vec<String>,
    /// What is to be done; the built-in prompt of the role when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Earlier steps (`step`) or workers (`step:index:model`) whose results it sees; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_list: Option<Vec<String>>,
}

/// The last step.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Who writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What to mind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// What a planner's plan must keep to.
pub(super) struct Bounds<'a> {
    pub(super) max_steps: usize,
    pub(super) max_parallel: usize,
    /// Who may work.
    pub(super) workers: &'a [String],
    /// Who may write besides.
    pub(super) writers: &'a [String],
}

impl Step {
    /// The id of a worker, as access lists name it.
    pub(super) fn agent(&self, worker: usize) -> String {
        let model = self.models.get(worker).map_or("", String::as_str);
        format!("{}:{worker}:{model}", self.id)
    }

    /// Whether the step may see the result of that worker of that earlier step.
    pub(super) fn sees(&self, step: &str, agent: &str) -> bool {
        self.access_list.as_ref().is_none_or(|list| list.iter().any(|entry| entry == step || entry == agent))
    }
}

impl Plan {
    /// The plan of static roles; `everyone` works where a role names nobody.
    pub(super) fn of_roles(roles: &[WorkflowRole], everyone: &[String]) -> Self {
        let step = |role: &WorkflowRole| Step {
            id: kebab(&role.name),
            role: role.name.clone(),
            models: if role.models.is_empty() {
                everyone.to_vec()
            } else {
                role.models.iter().map(ToString::to_string).collect()
            },
            prompt: role.prompt.clone(),
            access_list: role.access_list.clone(),
        };
        Self { steps: roles.iter().map(step).collect(), last: None }
    }

    /// What is wrong with the plan, as a sentence for the planner and for people; the first thing that is.
    pub(super) fn check(&self, bounds: &Bounds<'_>) -> Result<(), String> {
        if self.steps.is_empty() {
            return Err("it has no steps".to_owned());
        }
        if self.steps.len() > bounds.max_steps {
            let (steps, most) = (self.steps.len(), bounds.max_steps);
            return Err(format!("it has {steps} steps; at most {most} are allowed"));
        }
        for (at, step) in self.steps.iter().enumerate() {
            step.check(self.steps.get(..at).unwrap_or_default(), bounds)?;
        }
        let writer = self.last.as_ref().and_then(|last| last.model.as_ref());
        match writer.filter(|model| !bounds.workers.contains(model) && !bounds.writers.contains(model)) {
            Some(model) => Err(format!("`final.model` is `{model}`, which is not one of the models")),
            None => Ok(()),
        }
    }
}

impl Step {
    fn check(&self, earlier: &[Self], bounds: &Bounds<'_>) -> Result<(), String> {
        let id = &self.id;
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.contains(|c: char| c == ':' || c.is_control()) {
            return Err(format!("`{id}` cannot be the id of a step"));
        }
        if earlier.iter().any(|step| step.id == *id) {
            return Err(format!("two steps have the id `{id}`"));
        }
        if self.models.is_empty() {
            return Err(format!("the step `{id}` has no models"));
        }
        if self.models.len() > bounds.max_parallel {
            let (models, most) = (self.models.len(), bounds.max_parallel);
            return Err(format!("the step `{id}` has {models} models; at most {most} are allowed"));
        }
        if let Some(strange) = self.models.iter().find(|model| !bounds.workers.contains(model)) {
            return Err(format!("the step `{id}` names `{strange}`, which is not one of the models"));
        }
        let known = |entry: &String| {
            earlier.iter().any(|step| {
                *entry == step.id || (0..step.models.len()).any(|worker| *entry == step.agent(worker))
            })
        };
        match self.access_list.iter().flatten().find(|entry| !known(entry)) {
            Some(entry) => {
                Err(format!("the step `{id}` wants to see `{entry}`, which is no earlier step or worker"))
            }
            None => Ok(()),
        }
    }
}

/// A name in lower case, with one hyphen for everything but letters and digits. Source: contract §2.6.
fn kebab(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problem(plan: &Value) -> String {
        let plan: Plan = serde_json::from_value(plan.clone()).unwrap();
        let (workers, writers) = (["a".to_owned(), "b".to_owned()], ["w".to_owned()]);
        let bounds = Bounds { max_steps: 2, max_parallel: 2, workers: &workers, writers: &writers };
        plan.check(&bounds).err().unwrap_or_default()
    }

    #[test]
    fn plans_and_what_is_wrong_with_them() {
        let step = |id: &str, models: Value, access: Value| json!({"id": id, "role": "worker", "models": models, "access_list": access});
        let one = || step("x", json!(["a", "b"]), json!(null));
        for (steps, part) in [
            (vec![one(), step("y", json!(["a"]), json!(["x", "x:1:b"]))], ""),
            (vec![], "no steps"),
            (vec![one(), one(), one()], "3 steps; at most 2"),
            (vec![one(), one()], "two steps have the id `x`"),
            (vec![step("x:y", json!(["a"]), json!(null))], "`x:y` cannot be the id"),
            (vec![step("x", json!([]), json!(null))], "no models"),
            (vec![step("x", json!(["a", "b", "a"]), json!(null))], "3 models; at most 2"),
            (vec![step("x", json!(["vllm-sr/flow"]), json!(null))], "names `vllm-sr/flow`"),
            (vec![step("x", json!(["a"]), json!(["x"]))], "wants to see `x`"),
            (vec![one(), step("y", json!(["a"]), json!(["x:0:b"]))], "wants to see `x:0:b`"),
        ] {
            let found = problem(&json!({ "steps": steps }));
            assert!(found.contains(part) && found.is_empty() == part.is_empty(), "{found} / {part}");
        }
        assert_eq!(problem(&json!({"steps": [one()], "final": {"model": "w"}})), "");
        assert!(
            problem(&json!({"steps": [one()], "final": {"model": "z"}})).contains("`final.model` is `z`")
        );
    }

    #[test]
    fn ids_of_roles() {
        for (name, id) in
            [("Deep Thinker", "deep-thinker"), (" A/B  test! ", "a-b-test"), ("Prüfer", "prüfer")]
        {
            assert_eq!(kebab(name), id);
        }
    }
}
