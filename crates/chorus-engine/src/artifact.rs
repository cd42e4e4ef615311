//! What is served, by digest; and the contracts of its operating points.
//!
//! It knows no file: whoever mounts a bundle says what it is. **Invariant:** a run record names the artifact that its
//! request was served by.

use crate::fault::{Code, Fault};
use chorus_bundle::{Bundle, Mom as Interface, OperatingPoint, binding, import, mount};
use chorus_spec::{BudgetSettings, Digest};
use std::collections::BTreeMap;
use std::time::Duration;

/// The bundle, binding and lock behind a configuration. A configuration that is no bundle's has none of them where it
/// cannot travel, and else those that it splits into.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Artifact {
    /// Identity of the bundle.
    pub bundle: Option<Digest>,
    /// Digest of the binding.
    pub binding: Option<Digest>,
    /// Digest of the lock.
    pub lock: Option<Digest>,
    /// Operating points that are served.
    pub points: Vec<Point>,
    /// Names of operating points that abstain, each with its reason.
    pub abstaining: BTreeMap<String, String>,
}

/// The contract of an operating point, as far as the engine holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Its name within the bundle.
    pub name: String,
    /// Its public names.
    pub names: Vec<String>,
    /// What one request may spend.
    pub budget: BudgetSettings,
    /// Of `fail_closed`, `grounded`, `local_only`, `private_only`, `no_retention`, `no_training`.
    pub constraints: Vec<String>,
    /// What it is best at.
    pub objective: String,
}

impl Point {
    /// The contract of a bundle's point.
    #[must_use]
    pub fn of(mom: &Interface, point: &OperatingPoint) -> Self {
        let bounds = &point.bounds;
        let budget = BudgetSettings {
            max_calls: bounds.max_calls.map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
            max_tokens: bounds.max_tokens,
            max_micro_usd: bounds.max_micro_usd,
            max_time: bounds.max_time_ms.map(Duration::from_millis),
            max_joules: bounds.max_joules.as_ref().and_then(|it| it.as_str().parse().ok()),
            when_spent: None,
        };
        Self {
            name: point.name.clone(),
            names: mount::names(mom, &point.name).into(),
            budget,
            constraints: point.constraints.clone(),
            objective: point.objective.clone(),
        }
    }

    /// Whether its contract has that word.
    #[must_use]
    pub fn demands(&self, constraint: &str) -> bool {
        self.constraints.iter().any(|it| it == constraint)
    }
}

impl Artifact {
    /// The artifact that a v0.3 text is, where it can travel: the bundle and the binding that it splits into.
    #[must_use]
    pub fn implied_by(text: &str) -> Self {
        let Ok(imported) = import::split(text, IMPLICIT) else { return Self::default() };
        let binding = imported.files.get("binding.yaml").map(|bytes| String::from_utf8_lossy(bytes));
        let binding = binding.and_then(|text| binding::digest(&text).ok());
        let bundle = Bundle::build(imported.source).ok().and_then(|it| Digest::parse(&it.digest));
        Self { bundle, binding, ..Self::default() }
    }

    /// The point that has this public name.
    #[must_use]
    pub fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|it| it.names.iter().any(|own| own == name))
    }

    /// What a request of this name may spend.
    #[must_use]
    pub fn budget(&self, name: &str) -> BudgetSettings {
        self.point(name).map(|it| it.budget).unwrap_or_default()
    }

    /// Refuses a request of a point that abstains.
    ///
    /// # Errors
    /// [`Code::NoCandidate`], with the reason that was known when it was loaded.
    pub fn admit(&self, name: &str) -> Result<(), Fault> {
        let refused =
            |why: &String| Fault::new(Code::NoCandidate, format!("`{name}` abstains: {why}")).at("model");
        self.abstaining.get(name).map_or(Ok(()), |why| Err(refused(why)))
    }
}

/// The family of a configuration that is no bundle's.
const IMPLICIT: &str = "configuration";

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
version: v0.3
providers: {models: [{name: m, backend_refs: [{endpoint: \"127.0.0.1:1\"}]}]}
routing: {decisions: [{name: all, priority: 1, modelRefs: [{model: m}]}]}
";

    fn point(budget: BudgetSettings) -> Point {
        let names = vec!["acme/x-light".to_owned(), "acme/x-light@1.0.0".to_owned()];
        let (name, objective) = ("light".to_owned(), "cost".to_owned());
        Point { name, names, budget, constraints: vec!["grounded".to_owned()], objective }
    }

    #[test]
    fn a_point_lowers_what_a_request_may_spend() {
        let budget = BudgetSettings { max_calls: Some(2), ..BudgetSettings::default() };
        let artifact = Artifact { points: vec![point(budget)], ..Artifact::default() };
        let limits = crate::Limits::default();
        assert_eq!(limits.lowered_by(&artifact.budget("acme/x-light@1.0.0")).max_calls, 2);
        assert_eq!(limits.lowered_by(&artifact.budget("acme/x")).max_calls, limits.max_calls);
    }

    #[test]
    fn a_point_that_abstains_says_why() {
        let abstaining = BTreeMap::from([("acme/x-secu".to_owned(), "`m` may run nowhere".to_owned())]);
        let artifact = Artifact { abstaining, ..Artifact::default() };
        let fault = artifact.admit("acme/x-secu").unwrap_err();
        assert_eq!(fault.code, Code::NoCandidate);
        assert!(fault.public.contains("`m` may run nowhere"), "{}", fault.public);
        assert!(artifact.admit("acme/x-light").is_ok());
    }

    #[test]
    fn a_configuration_implies_the_bundle_and_the_binding_that_it_splits_into() {
        let (one, again) = (Artifact::implied_by(CONFIG), Artifact::implied_by(&format!("# note\n{CONFIG}")));
        assert!(one.bundle.is_some() && one.binding.is_some() && one.lock.is_none());
        assert_eq!(one, again);
        let moved = Artifact::implied_by(&CONFIG.replace("127.0.0.1:1", "127.0.0.1:2"));
        assert_eq!(moved.bundle, one.bundle, "another place is another binding and the same bundle");
        assert_ne!(moved.binding, one.binding);
        assert_eq!(Artifact::implied_by("no: yaml: at: all"), Artifact::default());
    }
}
