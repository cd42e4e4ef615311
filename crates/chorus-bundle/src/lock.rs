//! A lock: what a binding resolved to, beside what was asked for.
//!
//! It is text for people to review: sorted, one field a line, `version` for what older readers cannot read and `revision`
//! for what they may ignore. It knows no network and no clock: what a place is like comes from a [`Prober`], the time is
//! an argument. **Invariant:** a lock names the bundle and the binding that it is for, and is used for no other; no
//! address and no credential stands in it.

use crate::binding::{Binding, Deployment};
use crate::bundle::Bundle;
use crate::mom::{Component, Weights};
use crate::place::{Pins, Places, Seat, place};
use chorus_spec::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that is written and read.
pub const VERSION: u64 = 1;
/// Counts additions that older readers may ignore.
pub const REVISION: u64 = 0;

/// What a binding resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// [`VERSION`].
    pub version: u64,
    /// [`REVISION`] of whoever wrote it.
    pub revision: u64,
    /// Identity of the bundle.
    pub bundle: String,
    /// Digest of the binding.
    pub binding: String,
    /// What runs it.
    pub engine: Runtime,
    /// Components by name.
    pub components: BTreeMap<String, Locked>,
    /// Where components run at operating points, where it differs from `components`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub points: BTreeMap<String, Places>,
    /// Components that others stand in for: never silent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub substitutions: BTreeMap<String, String>,
}

/// The engine, and the machine that it was resolved on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// The engine's version.
    pub version: String,
    /// Operating system and architecture, such as `linux-x86_64`.
    pub platform: String,
    /// Extensions of the instruction set that models use, such as `avx2`.
    pub instruction_set: Vec<String>,
}

/// One component: asked for, and resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// As the bundle asks.
    pub requested: Requested,
    /// Deployments that run it.
    pub deployments: Vec<String>,
    /// What they were found to be, by name.
    pub resolved: BTreeMap<String, Resolved>,
}

/// What a bundle asks of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// Kind of component.
    pub kind: String,
    /// Where it may run.
    pub locality: String,
    /// Context window that policies count on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Open weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

/// What a deployment was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Who reads the texts.
    pub trust: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// What it computes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// Dollars for a million tokens, as the binding says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub price: BTreeMap<String, String>,
    /// What was seen there.
    pub observed: Observed,
}

/// What was seen at a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Observed {
    /// A model of this process's store.
    Local {
        /// Its name there.
        model: String,
        /// Files with their digests.
        weights: BTreeMap<String, String>,
        /// Digest of the tokenizer: of the file that holds it.
        tokenizer: String,
    },
    /// A provider's model.
    Provider {
        /// The name that it answers to.
        model: String,
        /// A digest of what the provider says of the model, where it says more than a name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fingerprint: Option<String>,
        /// Its context window, where the provider says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
    /// Nothing could be seen.
    Unseen {
        /// Why.
        why: String,
    },
}

/// Looks at deployments.
pub trait Prober {
    /// What is there.
    fn probe(&self, component: &Component, deployment: &Deployment) -> Observed;
}

/// Why a lock is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockFault {
    /// No lock.
    #[error("the lock cannot be read: {0}")]
    Syntax(String),
    /// Of a newer version.
    #[error("the lock is of version {0}; this version reads {VERSION}")]
    Newer(u64),
    /// For another bundle.
    #[error("the lock is for the bundle {wanted}, and this one is {found}")]
    Bundle {
        /// As the lock says.
        wanted: String,
        /// As it is.
        found: String,
    },
    /// For another binding.
    #[error("the lock is for the binding {wanted}, and this one is {found}; `chorus lock` resolves anew")]
    Binding {
        /// As the lock says.
        wanted: String,
        /// As it is.
        found: String,
    },
    /// A component that is not in the bundle or not in the lock.
    #[error("there is no component `{0}`")]
    Component(String),
    /// A component that may run nowhere.
    #[error("the component `{component}` may run nowhere: {why}")]
    Homeless {
        /// The component.
        component: String,
        /// Why.
        why: String,
    },
}

impl LockFault {
    /// Its stable word.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "lock-syntax",
            Self::Newer(_) => "lock-newer",
            Self::Bundle { .. } => "lock-bundle",
            Self::Binding { .. } => "lock-binding",
            Self::Component(_) => "lock-component",
            Self::Homeless { .. } => "lock-homeless",
        }
    }
}

/// Every code, with what it means.
pub const LOCK_CODES: [(&str, &str); 6] = [
    ("lock-syntax", "a file that is no lock"),
    ("lock-newer", "a lock of a newer version"),
    ("lock-bundle", "a lock for another bundle"),
    ("lock-binding", "a lock for another binding"),
    ("lock-component", "a component that the bundle or the lock does not have"),
    ("lock-homeless", "a component that no deployment may run"),
];

/// One difference between a lock and what is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Which component, or `engine`.
    pub component: String,
    /// What of it.
    pub what: String,
    /// As locked.
    pub locked: String,
    /// As found.
    pub found: String,
}

impl Lock {
    /// Resolves a binding.
    ///
    /// # Errors
    /// [`LockFault::Homeless`].
    pub fn resolve(
        bundle: &Bundle,
        binding: (&Binding, &Digest),
        engine: Runtime,
        prober: &dyn Prober,
    ) -> Result<Self, LockFault> {
        let (binding, binding_digest) = binding;
        let seats = place(&bundle.mom, binding, None, None);
        let mut components = BTreeMap::new();
        for (component, seat) in bundle.mom.components.iter().zip(&seats) {
            components.insert(component.name.clone(), locked(component, seat, prober)?);
        }
        let base: Places = seats.iter().map(|it| (it.component.clone(), it.chosen())).collect();
        let mut points = BTreeMap::new();
        for point in &bundle.mom.operating_points {
            let seats = place(&bundle.mom, binding, Some(point), None);
            let places: Places = seats.iter().map(|it| (it.component.clone(), it.chosen())).collect();
            if places != base {
                points.insert(point.name.clone(), places);
            }
        }
        let substituted = |it: &Seat<'_>| Some((it.component.clone(), it.stand_in.clone()?));
        Ok(Self {
            version: VERSION,
            revision: REVISION,
            bundle: bundle.digest.clone(),
            binding: binding_digest.to_string(),
            engine,
            components,
            points,
            substitutions: seats.iter().filter_map(substituted).collect(),
        })
    }

    /// Reads a lock.
    ///
    /// # Errors
    /// [`LockFault::Syntax`], [`LockFault::Newer`].
    pub fn read(text: &str) -> Result<Self, LockFault> {
        let syntax = |fault: serde_json::Error| LockFault::Syntax(fault.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default();
        if version > VERSION {
            return Err(LockFault::Newer(version));
        }
        serde_json::from_value(value).map_err(syntax)
    }

    /// Its text.
    ///
    /// # Errors
    /// [`LockFault::Syntax`]; no lock of this module has one.
    pub fn write(&self) -> Result<String, LockFault> {
        let text =
            serde_json::to_string_pretty(self).map_err(|fault| LockFault::Syntax(fault.to_string()))?;
        Ok(text + "\n")
    }

    /// Its digest: of what it says in canonical form.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn digest(&self) -> Result<Digest, LockFault> {
        let bytes =
            crate::bundle::text("the lock", self).map_err(|fault| LockFault::Syntax(fault.to_string()))?;
        Ok(Digest::of(&bytes))
    }

    /// Whether it is for this bundle and this binding.
    ///
    /// # Errors
    /// [`LockFault::Bundle`], [`LockFault::Binding`].
    pub fn is_for(&self, bundle: &str, binding: &Digest) -> Result<(), LockFault> {
        if self.bundle != bundle {
            return Err(LockFault::Bundle { wanted: self.bundle.clone(), found: bundle.to_owned() });
        }
        if self.binding != binding.as_str() {
            return Err(LockFault::Binding { wanted: self.binding.clone(), found: binding.to_string() });
        }
        Ok(())
    }

    /// The places that it allows.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let base = self.components.iter().map(|(name, it)| (name.clone(), it.deployments.clone())).collect();
        Pins { base, points: self.points.clone() }
    }

    /// What differs from another resolution of the same bundle; when it was looked at does not count.
    #[must_use]
    pub fn drift(&self, found: &Self) -> Vec<Drift> {
        let mut all = Vec::new();
        let mut differ = |component: &str, what: &str, locked: String, found: String| {
            if locked != found {
                let (component, what) = (component.to_owned(), what.to_owned());
                all.push(Drift { component, what, locked, found });
            }
        };
        let names = |it: &[String]| it.join(", ");
        differ("binding", "digest", self.binding.clone(), found.binding.clone());
        differ("engine", "version", self.engine.version.clone(), found.engine.version.clone());
        differ("engine", "platform", self.engine.platform.clone(), found.engine.platform.clone());
        let set = |it: &Self| names(&it.engine.instruction_set);
        differ("engine", "instruction set", set(self), set(found));
        for (name, locked) in &self.components {
            let Some(other) = found.components.get(name) else {
                differ(name, "component", "there".to_owned(), "gone".to_owned());
                continue;
            };
            differ(name, "deployments", names(&locked.deployments), names(&other.deployments));
            for (place, before) in &locked.resolved {
                let Some(after) = other.resolved.get(place) else { continue };
                for ((what, before), (_, after)) in before.told().into_iter().zip(after.told()) {
                    differ(name, &format!("{place} {what}"), before, after);
                }
            }
        }
        for (point, places) in &self.points {
            let other = found.points.get(point);
            for (name, deployments) in places {
                let other = other
                    .and_then(|it| it.get(name))
                    .or_else(|| found.components.get(name).map(|it| &it.deployments));
                let other = other.map(|it| names(it)).unwrap_or_default();
                differ(name, &format!("deployments at {point}"), names(deployments), other);
            }
        }
        all
    }

    /// Moves one component to another resolution, and nothing else.
    ///
    /// # Errors
    /// [`LockFault::Component`].
    pub fn update(&mut self, name: &str, found: &Self) -> Result<(), LockFault> {
        let moved = found.components.get(name).ok_or_else(|| LockFault::Component(name.to_owned()))?;
        let mine = self.components.get_mut(name).ok_or_else(|| LockFault::Component(name.to_owned()))?;
        moved.clone_into(mine);
        for (point, places) in &mut self.points {
            let other = found.points.get(point).and_then(|it| it.get(name)).unwrap_or(&moved.deployments);
            places.insert(name.to_owned(), other.clone());
        }
        match found.substitutions.get(name) {
            Some(stand_in) => drop(self.substitutions.insert(name.to_owned(), stand_in.clone())),
            None => drop(self.substitutions.remove(name)),
        }
        Ok(())
    }
}

impl Resolved {
    /// What it is, field by field; when it was looked at does not count.
    fn told(&self) -> [(&'static str, String); 6] {
        let (model, digest, window) = match &self.observed {
            Observed::Local { model, weights, tokenizer } => {
                let all: Vec<String> =
                    weights.iter().map(|(file, digest)| format!("{file} {digest}")).collect();
                (model.clone(), format!("{}; tokenizer {tokenizer}", all.join(", ")), String::new())
            }
            Observed::Provider { model, fingerprint, context_tokens, .. } => (
                model.clone(),
                fingerprint.clone().unwrap_or_default(),
                context_tokens.map(|it| it.to_string()).unwrap_or_default(),
            ),
            Observed::Unseen { .. } => ("unseen".to_owned(), String::new(), String::new()),
        };
        let price: Vec<String> = self.price.iter().map(|(key, it)| format!("{key} {it}")).collect();
        [
            ("trust", self.trust.clone()),
            ("region", self.region.clone().unwrap_or_default()),
            ("price", price.join(", ")),
            ("model", model),
            ("digest", digest),
            ("context window", window),
        ]
    }
}

fn locked(component: &Component, seat: &Seat<'_>, prober: &dyn Prober) -> Result<Locked, LockFault> {
    if seat.pool.is_empty() {
        let component = component.name.clone();
        return Err(LockFault::Homeless { component, why: seat.why_not() });
    }
    let deployments = seat.chosen();
    let resolved = deployments.iter().cloned().zip(&seat.pool).map(|(name, it)| {
        let resolved = Resolved {
            trust: it.trust.clone(),
            region: it.region.clone(),
            accelerator: it.accelerator.clone(),
            price: it.price.iter().map(|(key, it)| ((*key).to_owned(), it.as_str().to_owned())).collect(),
            observed: prober.probe(component, it),
        };
        (name, resolved)
    });
    let requested = Requested {
        kind: component.kind.clone(),
        locality: component.locality.clone(),
        context_tokens: component.context_tokens,
        weights: component.weights.clone(),
    };
    Ok(Locked { requested, resolved: resolved.collect(), deployments })
}
