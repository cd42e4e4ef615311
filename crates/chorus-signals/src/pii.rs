//! `pii`: personal data and secrets that a route does not allow.
//!
//! *Measures:* the score of the strongest finding of a kind that is not allowed.
//! *Inputs:* the last user message, its text parts joined; with `include_history`, all messages of all roles.
//! *Cost:* 2, one pass over the text, 40 recognisers and a tagger of names
//! *Fails when:* a name stands in a script other than Latin; a number of no check digit has no word beside it.
//! *Source:* contract §1.4 (`pii`); Presidio's recognisers; check digits as each function says; cases E02, E04, E05.
//!
//! A finding scores at least 0.9 when a check digit, a form of its own or a word beside it proves it; bare names, places and
//! dates stay below 0.85 ([`find`]). Confidence and raw: the best score, raw also where nothing matches. **Invariant:** the
//! whole text is read, in time linear in its length.

mod checksum;
mod contact;
mod context;
mod entity;
mod finance;
mod find;
mod identity;
mod life;
mod mask;
pub mod names;
mod phone;
mod redact;
mod secret;
mod span;

pub use entity::Entity;
pub use find::find;
pub use redact::{Redacted, redact, sample};
pub use span::Finding;

use crate::doc::SignalDoc;
use crate::subject::Subject;
use chorus_policy::Observation;
use chorus_spec::{Family, PiiSignal};
use std::collections::BTreeSet;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Pii,
    measures: "the score of the strongest finding of a kind that is not allowed.",
    inputs: "the last user message, its text parts joined; with `include_history`, all messages of all roles.",
    cost: 2,
    fails_when: "a name stands in a script other than Latin; a number of no check digit has no word beside it.",
    source: "contract §1.4 (`pii`); Presidio's recognisers; check digits as each function says; cases E02, E04, E05.",
};

/// A pii rule, ready.
#[derive(Debug)]
pub struct Pii {
    threshold: f64,
    allowed: Vec<Entity>,
    include_history: bool,
}

impl Pii {
    /// Takes a rule; `default_threshold` serves one that sets none. Names of kinds that nobody knows allow nothing.
    #[must_use]
    pub fn prepare(signal: &PiiSignal, default_threshold: f64) -> Self {
        let is_allowed = |entity: &Entity| signal.allowed.iter().any(|name| entity.is_called(name));
        Self {
            threshold: signal.threshold.unwrap_or(default_threshold),
            allowed: Entity::ALL.into_iter().filter(is_allowed).collect(),
            include_history: signal.include_history,
        }
    }

    /// What the rule says of a request.
    #[must_use]
    pub fn observe(&self, subject: &Subject<'_>) -> Observation {
        let best = if self.include_history {
            let texts: BTreeSet<&str> =
                subject.messages().iter().map(|message| message.text.as_str()).collect();
            texts.into_iter().map(|text| self.best(text)).fold(0.0, f64::max)
        } else {
            self.best(subject.text())
        };
        if best > 0.0 && best >= self.threshold {
            Observation::Matched { confidence: best, raw: Some(best) }
        } else {
            Observation::Unmatched { raw: Some(best) }
        }
    }

    /// The best score of what is not allowed; 0 when there is nothing.
    fn best(&self, text: &str) -> f64 {
        let denied = find(text).into_iter().filter(|finding| !self.allowed.contains(&finding.entity));
        denied.map(|finding| finding.score).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{ChatRequest, Message, Role};

    fn rule(threshold: Option<f64>, allowed: &[&str], include_history: bool) -> PiiSignal {
        PiiSignal {
            threshold,
            allowed: allowed.iter().map(|name| (*name).to_owned()).collect(),
            include_history,
        }
    }

    fn matches(signal: &PiiSignal, messages: Vec<Message>) -> bool {
        let request = ChatRequest::new("m", messages);
        matches!(Pii::prepare(signal, 0.9).observe(&Subject::of(&request)), Observation::Matched { .. })
    }

    fn user(text: &str) -> Vec<Message> {
        vec![Message::new(Role::User, text)]
    }

    #[test]
    fn only_denied_kinds_match() {
        let text = "Write to ada@example.com";
        assert!(matches(&rule(None, &[], false), user(text)));
        assert!(!matches(&rule(None, &["EMAIL_ADDRESS"], false), user(text)));
        assert!(matches(&rule(None, &["PHONE_NUMBER"], false), user(text)));
        assert!(!matches(&rule(Some(0.99), &[], false), user(text)));
        let both = "Write to ada@example.com or call +1-415-555-0134";
        assert!(matches(&rule(None, &["email_address"], false), user(both)));
        assert!(!matches(&rule(None, &["EMAIL_ADDRESS", "PHONE_NUMBER"], false), user(both)));
    }

    #[test]
    fn e02_history_is_all_roles_and_every_turn() {
        let secret = "my IBAN is DE02 1203 0000 0000 2020 51";
        for role in [Role::User, Role::System, Role::Assistant, Role::Tool] {
            let turns = || {
                vec![
                    Message::new(role.clone(), secret),
                    Message::new(Role::Assistant, "Noted."),
                    Message::new(Role::User, "translate all above"),
                ]
            };
            assert!(matches(&rule(None, &[], true), turns()), "{role:?}");
            assert!(!matches(&rule(None, &[], false), turns()), "{role:?}");
        }
    }

    #[test]
    fn e04_ids_hashes_and_versions_are_no_personal_data() {
        for text in [
            "{\"sku\":4829173650,\"t\":1764412800}",
            "git revert 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "v9.8.7.6 at 127.0.0.1",
            "UUID 0b0e2c1a-1111-4222-8333-123456789012",
        ] {
            assert!(!matches(&rule(Some(0.5), &[], false), user(text)), "{text}: {:?}", find(text));
        }
        assert!(matches(&rule(None, &[], false), user("card 4111 1111 1111 1111")));
    }

    #[test]
    fn the_raw_value_is_the_best_score() {
        let request = ChatRequest::new("m", user("born on 3 March 1985"));
        let observed = Pii::prepare(&rule(Some(0.99), &[], false), 0.9).observe(&Subject::of(&request));
        assert_eq!(observed, Observation::Unmatched { raw: Some(0.95) });
        let nothing = ChatRequest::new("m", user("hello there"));
        let observed = Pii::prepare(&rule(None, &[], false), 0.9).observe(&Subject::of(&nothing));
        assert_eq!(observed, Observation::Unmatched { raw: Some(0.0) });
    }
}
