//! Signal rules that guard: `role_bindings`, `jailbreak`, `pii`.
//!
//! It knows neither callers nor texts. **Invariant:** a guard that is read has somebody or something to look for.

use super::cursor::Cursor;
use super::nearest::nearest;
use crate::diagnostic::code;
use crate::{AuthzSignal, JailbreakMethod, JailbreakSignal, PII_TYPES, PiiSignal, RoleSubject};

/// Reads one rule of `role_bindings`.
pub(super) fn authz(rule: &Cursor<'_>) -> Option<AuthzSignal> {
    let role = rule.required("role");
    let written = rule.items("subjects");
    let subjects: Vec<RoleSubject> = written.iter().filter_map(subject).collect();
    if written.is_empty() {
        let help = "name a `User` or a `Group` under `subjects`".to_owned();
        rule.error_help(code::MISSING_KEY, "nobody holds this role: `subjects` is empty or missing", help);
    }
    (!subjects.is_empty()).then_some(AuthzSignal { role: role?, subjects })
}

fn subject(at: &Cursor<'_>) -> Option<RoleSubject> {
    let name = at.required("name");
    let is_group = at.needed("kind").and_then(|_| at.word("kind", &[("User", false), ("Group", true)]))?;
    let name = name?;
    Some(if is_group { RoleSubject::Group(name) } else { RoleSubject::User(name) })
}

/// Reads one rule of `jailbreak`.
pub(super) fn jailbreak(rule: &Cursor<'_>) -> JailbreakSignal {
    const METHODS: [(&str, JailbreakMethod); 3] = [
        ("classifier", JailbreakMethod::Classifier),
        ("contrastive", JailbreakMethod::Contrastive),
        ("hybrid", JailbreakMethod::Hybrid),
    ];
    let method = rule.word("method", &METHODS).unwrap_or_default();
    for key in ["jailbreak_patterns", "benign_patterns"] {
        if let Some(at) = rule.get(key).filter(|_| method == JailbreakMethod::Classifier) {
            let help = "write `method: contrastive` or `hybrid`".to_owned();
            at.warn_help(code::UNUSED, format!("`{key}` has no effect beside `method: classifier`"), help);
        }
    }
    JailbreakSignal {
        method,
        threshold: threshold(rule),
        include_history: rule.boolean("include_history").unwrap_or(false),
        jailbreak_patterns: rule.strings("jailbreak_patterns"),
        benign_patterns: rule.strings("benign_patterns"),
    }
}

/// Reads one rule of `pii`.
pub(super) fn pii(rule: &Cursor<'_>) -> PiiSignal {
    for at in rule.items("pii_types_allowed") {
        let name = at.node().text().unwrap_or_default().trim().to_owned();
        if !PII_TYPES.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            let near = nearest(&name, PII_TYPES).map(|near| format!("did you mean `{near}`? "));
            let help = format!("{}the types are {}", near.unwrap_or_default(), PII_TYPES.join(", "));
            at.warn_help(
                code::UNKNOWN_LABEL,
                format!("nothing is found as `{name}`, so this allows nothing"),
                help,
            );
        }
    }
    PiiSignal {
        threshold: threshold(rule),
        allowed: rule.strings("pii_types_allowed"),
        include_history: rule.boolean("include_history").unwrap_or(false),
    }
}

/// The contract writes an unset number as 0, and a guard that fires on everything is no guard.
fn threshold(rule: &Cursor<'_>) -> Option<f64> {
    rule.float_in("threshold", 0.0, 1.0).filter(|least| *least > 0.0)
}
