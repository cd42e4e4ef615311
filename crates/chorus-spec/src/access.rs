//! Who may do how much: limits on callers, and who may use the management plane.

use crate::Secret;
use std::collections::BTreeMap;
use std::time::Duration;

/// One rule of `global.services.ratelimit`. Source: contract §1.9; `micro_usd_per_unit` and `*` are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateRule {
    /// Its name, in errors and metrics.
    pub name: String,
    /// Whose requests it counts; `None` is anybody's.
    pub user: Option<RateMatch>,
    /// The group that they are in.
    pub group: Option<RateMatch>,
    /// The model that they ask for.
    pub model: Option<RateMatch>,
    /// Most requests in one unit.
    pub requests: Option<u64>,
    /// Most tokens, read and written, in one unit.
    pub tokens: Option<u64>,
    /// Most money in one unit, in micro-dollars.
    pub micro_usd: Option<u64>,
    /// The unit.
    pub unit: Duration,
}

/// What a rule looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateMatch {
    /// This name; all that match share one count.
    Name(String),
    /// `*`: every name, each with a count of its own.
    Each,
}

/// `global.services.management_api.auth` with `mode: bearer`. Source: contract §4.2.
#[derive(Debug, Clone)]
pub struct ManagementAuth {
    /// Tokens (from the environment), each with its role.
    pub tokens: Vec<(Secret, String)>,
    /// What each role may do: permissions such as `config.read`, or `*`.
    pub roles: BTreeMap<String, Vec<String>>,
}
