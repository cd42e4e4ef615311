//! Placement: which deployments may run a component, and which of them does, with the reasons.
//!
//! Hard constraints first: where the component may run, what may become of its texts, and what the operating point
//! demands. Among what is left the point's objective chooses, then its preferences, then the binding's preference. It
//! knows no network: measures are those of the binding. **Invariant:** a deployment that a constraint bars is never in a
//! pool, also not for want of another one.

use crate::binding::{Binding, Deployment};
use crate::mom::{Component, Mom, OperatingPoint};
use std::collections::BTreeMap;

/// The deployments that run each component: `COMPONENT/DEPLOYMENT`, those of one pool.
pub type Places = BTreeMap<String, Vec<String>>;

/// Where a lock says that components run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pins {
    /// For names that are no operating point's.
    pub base: Places,
    /// For each operating point.
    pub points: BTreeMap<String, Places>,
}

impl Pins {
    /// Those of a point, or of the names that are none.
    #[must_use]
    pub fn of(&self, point: Option<&str>) -> Option<&Places> {
        point.map_or(Some(&self.base), |point| self.points.get(point))
    }
}

/// What was found for one component.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat<'b> {
    /// The component.
    pub component: String,
    /// The component whose deployments run it, where it has none of its own.
    pub stand_in: Option<String>,
    /// Everything that was looked at, in order.
    pub looked: Vec<Looked>,
    /// Who runs it: the best one, and those that are as good and called alike. Empty: nobody may.
    pub pool: Vec<&'b Deployment>,
}

impl Seat<'_> {
    /// The deployments that run it: `COMPONENT/DEPLOYMENT`.
    #[must_use]
    pub fn chosen(&self) -> Vec<String> {
        let owner = self.stand_in.as_ref().unwrap_or(&self.component);
        self.pool.iter().map(|it| format!("{owner}/{}", it.name)).collect()
    }

    /// Why nobody may run it.
    #[must_use]
    pub fn why_not(&self) -> String {
        let reason = |it: &Looked| format!("{}: {}", it.deployment, it.barred.join(", "));
        let all: Vec<String> = self.looked.iter().map(reason).collect();
        if all.is_empty() { "nothing is bound to it".to_owned() } else { all.join("; ") }
    }
}

/// One deployment that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Its name: `COMPONENT/DEPLOYMENT`.
    pub deployment: String,
    /// Constraints that bar it; none for one that is admissible.
    pub barred: Vec<String>,
    /// What it was compared by, such as `latency 800 ms`.
    pub measures: Vec<String>,
}

/// Finds a place for every component, in order of their names. Without a point, for the names that are none.
#[must_use]
pub fn place<'b>(
    mom: &Mom,
    binding: &'b Binding,
    point: Option<&OperatingPoint>,
    pins: Option<&Places>,
) -> Vec<Seat<'b>> {
    mom.components.iter().map(|it| seat(it, mom, binding, point, pins)).collect()
}

fn seat<'b>(
    component: &Component,
    mom: &Mom,
    binding: &'b Binding,
    point: Option<&OperatingPoint>,
    pins: Option<&Places>,
) -> Seat<'b> {
    let mut seat =
        Seat { component: component.name.clone(), stand_in: None, looked: Vec::new(), pool: Vec::new() };
    let pinned = pins.map(|pins| pins.get(&component.name).map(Vec::as_slice).unwrap_or_default());
    for link in chain(component, mom, point) {
        let mut admissible = Vec::new();
        let bound = binding.components.iter().find(|(name, _)| *name == link.name);
        for deployment in bound.into_iter().flat_map(|(_, all)| all) {
            let name = format!("{}/{}", link.name, deployment.name);
            let mut barred = bars(deployment, component, point);
            if link.name != component.name {
                barred.extend(bars(deployment, link, None));
                barred.dedup();
            }
            if pinned.is_some_and(|pinned| !pinned.contains(&name)) {
                barred.push("the lock names another one".to_owned());
            }
            if barred.is_empty() {
                admissible.push(deployment);
            }
            seat.looked.push(Looked { deployment: name, barred, measures: measures(deployment, point) });
        }
        if !admissible.is_empty() {
            seat.pool = pool(admissible, point);
            seat.stand_in = (link.name != component.name).then(|| link.name.clone());
            break;
        }
    }
    seat
}

/// The component, those that stand in for it, and the one that the point falls back to; each once.
fn chain<'m>(component: &'m Component, mom: &'m Mom, point: Option<&OperatingPoint>) -> Vec<&'m Component> {
    let named = |name: &str| mom.components.iter().find(|it| it.name == name);
    let mut links: Vec<&Component> = Vec::new();
    let mut next = Some(component);
    while let Some(link) = next.filter(|link| !links.iter().any(|it| it.name == link.name)) {
        links.push(link);
        next = link.fallback.as_deref().and_then(named);
    }
    let last = point.and_then(|point| named(&point.fallback));
    links.extend(last.filter(|last| !links.iter().any(|it| it.name == last.name)));
    links
}

/// The constraints that a deployment does not meet. What a public one does not state counts against it.
fn bars(it: &Deployment, component: &Component, point: Option<&OperatingPoint>) -> Vec<String> {
    let demands = |word: &str| point.is_some_and(|point| point.constraints.iter().any(|it| it == word));
    let is_own = it.trust != "public";
    let retention = if demands("no_retention") { Some(0) } else { component.data_policy.retention_days };
    let no_training = demands("no_training") || component.data_policy.training == Some(false);
    let keeps = |most: u64| !is_own && it.retention_days.is_none_or(|days| days > most);
    let (local, private) = (demands("local_only"), demands("private_only"));
    let checks = [
        (component.locality == "process" && it.trust != "process", "locality: process".to_owned()),
        (component.locality == "private" && !is_own, "locality: private".to_owned()),
        (local && it.trust != "process", "local_only".to_owned()),
        (private && !is_own, "private_only".to_owned()),
        (
            retention.is_some_and(keeps),
            format!("keeps texts longer than {} days, or does not say", retention.unwrap_or(0)),
        ),
        (no_training && !is_own && it.training != Some(false), "trains on texts, or does not say".to_owned()),
    ];
    checks.into_iter().filter(|(is_barred, _)| *is_barred).map(|(_, why)| why).collect()
}

/// Everything that a point compares by, its objective first.
fn words(point: Option<&OperatingPoint>) -> Vec<&str> {
    let all = point.into_iter().flat_map(|it| std::iter::once(&it.objective).chain(&it.preferences));
    all.map(String::as_str).filter(|word| ["latency", "cost", "energy"].contains(word)).collect()
}

/// A measure of a deployment; less is better, and what is not known is worst. What runs in this process is free.
fn measure(it: &Deployment, word: &str) -> u64 {
    let sum = |all: &[(&str, crate::Decimal)]| {
        all.iter()
            .filter(|(key, _)| !key.starts_with("cached"))
            .try_fold(0_u64, |sum, (_, number)| sum.checked_add(number.millionths()?))
            .unwrap_or(u64::MAX)
    };
    let known = match word {
        "latency" => it.latency_ms,
        "energy" if !it.energy.is_empty() => Some(sum(&it.energy)),
        "cost" if !it.price.is_empty() => Some(sum(&it.price)),
        "cost" if it.trust == "process" => Some(0),
        _ => None,
    };
    known.unwrap_or(u64::MAX)
}

fn key(it: &Deployment, point: Option<&OperatingPoint>) -> (Vec<u64>, u64) {
    (words(point).into_iter().map(|word| measure(it, word)).collect(), it.preference)
}

fn measures(it: &Deployment, point: Option<&OperatingPoint>) -> Vec<String> {
    let told = |word: &str| match (word, measure(it, word)) {
        (_, u64::MAX) => format!("{word} unknown"),
        ("latency", ms) => format!("latency {ms} ms"),
        ("cost", micro) => format!("cost {micro} µ$ a million tokens each way"),
        (_, micro) => format!("{word} {micro} µJ a thousand tokens each way"),
    };
    let mut all: Vec<String> = words(point).into_iter().map(told).collect();
    all.push(format!("preference {}", it.preference));
    all
}

/// The best, and what is as good and called alike: the contract has one name, dialect and price a model.
fn pool<'b>(mut admissible: Vec<&'b Deployment>, point: Option<&OperatingPoint>) -> Vec<&'b Deployment> {
    admissible.sort_by(|a, b| (key(a, point), &a.name).cmp(&(key(b, point), &b.name)));
    let Some(best) = admissible.first().copied() else { return admissible };
    let is_alike = |it: &Deployment| {
        it.provider_model_id == best.provider_model_id
            && it.api_format == best.api_format
            && it.price == best.price
            && it.energy == best.energy
            && it.trust == best.trust
    };
    admissible.retain(|it| key(it, point) == key(best, point) && is_alike(it));
    admissible
}
