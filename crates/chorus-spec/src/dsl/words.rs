//! The words of the policy language, and where the contract keeps what they declare.
//!
//! It knows no text. **Invariant:** every signal family and projection kind has exactly one list of the contract.

use crate::Family;

/// Words that open a block.
pub(super) const STATEMENTS: [&str; 10] = [
    "ROUTING",
    "MODEL",
    "SIGNAL",
    "PROJECTION",
    "PLUGIN",
    "ROUTE",
    "DECISION_TREE",
    "ENTRYPOINT",
    "RECIPE",
    "TEST",
];

/// Words that open a line of a route or a branch of a tree.
pub(super) const CLAUSES: [&str; 12] = [
    "PRIORITY",
    "TIER",
    "WHEN",
    "MODEL",
    "ALGORITHM",
    "PLUGIN",
    "DESCRIPTION",
    "NAME",
    "FOR",
    "EMIT",
    "IF",
    "ELSE",
];

/// Clauses of a route.
pub(super) const ROUTE_CLAUSES: [&str; 9] =
    ["PRIORITY", "TIER", "WHEN", "MODEL", "ALGORITHM", "PLUGIN", "DESCRIPTION", "FOR", "EMIT"];

/// Clauses of a branch.
pub(super) const BRANCH_CLAUSES: [&str; 8] =
    ["NAME", "DESCRIPTION", "TIER", "MODEL", "ALGORITHM", "PLUGIN", "FOR", "EMIT"];

/// Projection kinds and their lists, in the contract's order.
pub(super) const PROJECTIONS: [(&str, &str); 3] =
    [("partition", "partitions"), ("score", "scores"), ("mapping", "mappings")];

/// Options of a route's model, and the contract's keys for them.
pub(super) const MODEL_OPTIONS: [(&str, &str); 5] = [
    ("reasoning", "use_reasoning"),
    ("effort", "reasoning_effort"),
    ("lora", "lora_name"),
    ("weight", "weight"),
    ("reasoning_description", "reasoning_description"),
];

/// Signal families and their lists, in the contract's order.
pub(super) fn families() -> impl Iterator<Item = (&'static str, &'static str)> {
    Family::ALL.into_iter().filter_map(|family| list_of(family).map(|list| (family.as_str(), list)))
}

/// The list under `routing.signals` that holds a family. Source: contract §1.4.
fn list_of(family: Family) -> Option<&'static str> {
    Some(match family {
        Family::Keyword => "keywords",
        Family::Embedding => "embeddings",
        Family::Domain => "domains",
        Family::UserFeedback => "user_feedbacks",
        Family::Reask => "reasks",
        Family::Preference => "preferences",
        Family::Authz => "role_bindings",
        Family::Event => "events",
        Family::Classifier => "classifiers",
        Family::Projection => return None,
        other => other.as_str(),
    })
}
