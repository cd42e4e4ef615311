//! Whom an operator believes: the keys, and the statements that a bundle must have before it is taken.
//!
//! It knows no clock: now is an argument. **Invariant:** what is missing, expired, of another bundle or signed by a key
//! that the policy does not name counts as not there; a policy that asks for nothing does not load.

use crate::attest::Attached;
use crate::dsse::{self, Kind, PublicKey};
use crate::source::{At, Page};
use chorus_spec::{Diagnostic, code};
use serde::Serialize;
use std::collections::BTreeMap;

/// The format that is read.
pub const FORMAT: u64 = 1;

/// What an operator demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustPolicy {
    /// Keys by name.
    pub keys: BTreeMap<String, PublicKey>,
    /// All of it must be met.
    pub require: Vec<Demand>,
}

/// One statement that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Its kind.
    pub kind: Kind,
    /// Names of keys that may have signed it.
    pub keys: Vec<String>,
    /// How many of them must have.
    pub threshold: usize,
    /// How old it may be, in seconds; absent: any age.
    pub max_age_s: Option<u64>,
}

/// Why a bundle is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Distrust {
    /// A word of [`TRUST_CODES`].
    pub code: &'static str,
    /// For people.
    pub message: String,
}

/// Every code, with what it means.
pub const TRUST_CODES: [(&str, &str); 3] = [
    ("trust-unsigned", "nothing of that kind is attached that a key of the policy has signed"),
    ("trust-expired", "it is there, and not valid any more or not yet"),
    ("trust-threshold", "fewer keys have signed it than must"),
];

/// Reads a policy.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(text: &str) -> Result<TrustPolicy, Vec<Diagnostic>> {
    let page = Page::open(text)?;
    let policy = policy(&page.root());
    let found = page.into_found();
    policy.filter(|_| found.is_empty()).ok_or(found)
}

fn policy(root: &At<'_>) -> Option<TrustPolicy> {
    root.only(&["format", "keys", "require"]);
    root.needed("format");
    if root.whole("format", 1).is_some_and(|format| format > FORMAT)
        && let Some(at) = root.get("format")
    {
        at.error(code::BAD_VALUE, "this format is newer than this version reads", None);
    }
    let mut keys = BTreeMap::new();
    for (name, at) in root.entries("keys") {
        match at.as_text().map(|text| PublicKey::read(&text)) {
            Some(Ok(key)) => drop(keys.insert(name.to_owned(), key)),
            Some(Err(fault)) => at.error(code::BAD_VALUE, fault.to_string(), Some("a public key in PEM")),
            None => {}
        }
    }
    let require: Vec<Demand> = root.items("require").iter().filter_map(|at| demand(at, &keys)).collect();
    if require.is_empty() {
        root.error(code::MISSING_KEY, "a policy that requires nothing trusts everybody", None);
    }
    Some(TrustPolicy { keys, require })
}

fn demand(at: &At<'_>, keys: &BTreeMap<String, PublicKey>) -> Option<Demand> {
    const DAY_S: u64 = 24 * 60 * 60;
    at.only(&["statement", "keys", "threshold", "max_age_days"]);
    at.needed("statement");
    let words = Kind::ALL.map(Kind::as_str);
    let kind = at.word("statement", &words);
    let named = at.texts("keys");
    for name in named.iter().filter(|name| !keys.contains_key(*name)) {
        at.error(code::UNKNOWN_REFERENCE, format!("no key is named `{name}`"), None);
    }
    let threshold = at.whole("threshold", 1).and_then(|it| usize::try_from(it).ok()).unwrap_or(1);
    if named.len() < threshold {
        at.error(code::BAD_RANGE, format!("{threshold} of {} keys can never sign", named.len()), None);
    }
    let max_age_s = at.whole("max_age_days", 1).map(|days| days.saturating_mul(DAY_S));
    Some(Demand { kind: kind.as_deref().and_then(Kind::of)?, keys: named, threshold, max_age_s })
}

impl TrustPolicy {
    /// What of it is not met; nothing: the bundle is trusted.
    #[must_use]
    pub fn judge(&self, bundle: &str, attached: &[Attached], now_s: u64) -> Vec<Distrust> {
        self.require.iter().filter_map(|demand| self.unmet(demand, bundle, attached, now_s)).collect()
    }

    fn unmet(&self, demand: &Demand, bundle: &str, attached: &[Attached], now_s: u64) -> Option<Distrust> {
        let named: Vec<(&String, PublicKey)> =
            demand.keys.iter().filter_map(|name| Some((name, self.keys.get(name)?.clone()))).collect();
        let keys: Vec<PublicKey> = named.iter().map(|(_, key)| key.clone()).collect();
        let mut signers: Vec<String> = Vec::new();
        let mut is_expired = false;
        for it in attached {
            let Ok((claim, by)) = dsse::open(&it.envelope, &keys) else { continue };
            if claim.bundle != bundle || claim.kind != demand.kind {
                continue;
            }
            let is_old = demand.max_age_s.is_some_and(|most| now_s.saturating_sub(claim.issued_s) > most);
            if is_old || claim.issued_s > now_s || claim.expires_s.is_some_and(|end| now_s >= end) {
                is_expired = true;
                continue;
            }
            signers.extend(by.iter().map(|key| key.id()));
        }
        signers.sort();
        signers.dedup();
        if signers.len() >= demand.threshold {
            return None;
        }
        let kind = demand.kind.as_str();
        let keys = demand.keys.join(", ");
        Some(match (signers.len(), is_expired) {
            (0, true) => distrust("trust-expired", format!("the {kind} is not valid at this time")),
            (0, false) => distrust("trust-unsigned", format!("no {kind} by {keys} is attached")),
            (have, _) => distrust(
                "trust-threshold",
                format!("{have} of {} keys have signed a {kind}", demand.threshold),
            ),
        })
    }
}

fn distrust(code: &'static str, message: String) -> Distrust {
    Distrust { code, message }
}
