//! Signal rules over what comes beside the words: `events` and `metadata`.
//!
//! It knows no request. **Invariant:** a metadata rule has exactly one predicate.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{EventSignal, MetadataPredicate, MetadataSignal};

/// Reads one rule of `events`.
pub(super) fn event(rule: &Cursor<'_>) -> EventSignal {
    const SEVERITIES: [(&str, &str); 4] =
        [("critical", "critical"), ("high", "high"), ("medium", "medium"), ("low", "low")];
    let severities = rule.items("severities");
    EventSignal {
        event_types: rule.strings("event_types"),
        severities: severities.iter().filter_map(|at| at.one_of(&SEVERITIES)).map(str::to_owned).collect(),
        action_codes: rule.strings("action_codes"),
        temporal: rule.boolean("temporal").unwrap_or(false),
    }
}

/// Reads one rule of `metadata`.
pub(super) fn metadata(rule: &Cursor<'_>) -> Option<MetadataSignal> {
    let key = rule.required("key");
    let at = rule.needed("predicate")?;
    let written: Vec<&str> =
        ["equals", "in", "exists"].into_iter().filter(|key| at.get(key).is_some()).collect();
    let predicate = match written.as_slice() {
        ["equals"] => MetadataPredicate::Equals(at.string("equals")?),
        ["in"] => MetadataPredicate::In(at.some_strings("in")),
        ["exists"] => MetadataPredicate::Exists(at.boolean("exists")?),
        [] => {
            let help = "write `equals`, `in` or `exists`".to_owned();
            at.error_help(code::MISSING_KEY, "this predicate asks for nothing", help);
            return None;
        }
        more => {
            let message = format!("a predicate asks for one thing, not for {}", more.join(" and "));
            at.error(code::BAD_VALUE, message);
            return None;
        }
    };
    Some(MetadataSignal { key: key?, predicate })
}
