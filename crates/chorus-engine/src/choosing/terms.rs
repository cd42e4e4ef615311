//! What a decision says of learning and of conversations, and what its rules make of it.
//!
//! It knows no request.

use chorus_spec::{AdaptationMode, Decision, Family};

/// What becomes of what was learnt.
pub(super) fn adaptation_mode(decision: &Decision) -> AdaptationMode {
    decision.adaptations.as_ref().map(|it| it.adaptation.unwrap_or(it.mode)).unwrap_or_default()
}

/// What becomes of the protection of running conversations.
pub(super) fn protection_mode(decision: &Decision) -> AdaptationMode {
    decision.adaptations.as_ref().map(|it| it.protection.unwrap_or(it.mode)).unwrap_or_default()
}

/// Whether its rules guard something, or speak of the conversation itself.
pub(super) fn speaks_up(decision: &Decision) -> bool {
    guards(decision) || asks_of(decision, &[Family::Conversation, Family::Event, Family::Metadata])
}

/// Whether its rules guard something.
pub(super) fn guards(decision: &Decision) -> bool {
    asks_of(decision, &[Family::Jailbreak, Family::Pii, Family::Authz])
}

fn asks_of(decision: &Decision, families: &[Family]) -> bool {
    let keys = decision.rules.as_ref().map(chorus_spec::Condition::keys).unwrap_or_default();
    keys.iter().any(|key| families.contains(&key.family))
}
