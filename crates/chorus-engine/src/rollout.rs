//! A candidate beside what is served: which requests it answers, or is shown.
//!
//! Whole conversations go one way: the share is taken of their keys and not of requests. It knows no file and no clock.
//! **Invariant:** the same key goes the same way for as long as the candidate and its share stay, and a greater share
//! moves no conversation back.

use crate::run::Inbound;
use chorus_spec::Digest;
use chorus_wire::Role;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Parts of the whole that a share is counted in.
const PARTS: u32 = 10_000;

/// A share of all conversations, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All of them.
    pub const ALL: Self = Self(PARTS);

    /// A share in percent, 0 to 100, to the hundredth; `None` beyond.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        let is_one = (0.0..=100.0).contains(&percent);
        // Not negative and at most 10,000 here.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        is_one.then(|| Self((percent * 100.0).round() as u32))
    }

    /// In percent.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// Whether the conversation of that key is in the share; `salt` makes each candidate's another one.
    fn holds(self, key: &str, salt: &str) -> bool {
        let digest = Digest::of(format!("{salt}\n{key}").as_bytes()).to_string();
        let hex = digest.trim_start_matches("sha256:").get(..8).unwrap_or_default();
        u32::from_str_radix(hex, 16).is_ok_and(|place| place % PARTS < self.0)
    }
}

impl Serialize for Share {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.as_percent())
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let percent = f64::deserialize(from)?;
        Self::percent(percent).ok_or_else(|| serde::de::Error::custom("a share is 0 to 100 percent"))
    }
}

/// How a candidate is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is shown a copy of requests; its answers reach nobody.
    Shadow,
    /// It answers.
    Canary,
}

impl Stage {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Canary => "canary",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Of how many conversations, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// How.
    pub stage: Stage,
    /// Of how many conversations.
    pub share: Share,
}

impl Trial {
    /// Whether the candidate of that digest has to do with the conversation of that key.
    pub(crate) fn takes(self, key: &str, candidate: &str) -> bool {
        self.share.holds(key, candidate)
    }
}

/// What a conversation is known by: what the client calls it, else who asks, else how it began.
pub(crate) fn key(inbound: &Inbound) -> String {
    let session = inbound.session.session.as_ref().or(inbound.session.conversation.as_ref());
    if let Some(name) = session {
        return format!("session {name}");
    }
    if let Some(caller) = &inbound.caller {
        return format!("user {}", caller.user());
    }
    let first = inbound.request.messages().iter().find(|it| it.role == Role::User);
    format!("begins {}", first.map(|it| it.text.as_str()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::SessionWords;
    use chorus_wire::{ChatRequest, Message};

    fn share(percent: f64) -> usize {
        let share = Share::percent(percent).unwrap();
        (0..2000).filter(|at| share.holds(&format!("session {at}"), "sha256:x")).count()
    }

    #[test]
    fn a_share_is_a_share_of_keys_and_a_greater_one_holds_the_smaller() {
        assert_eq!((share(0.0), share(100.0)), (0, 2000));
        let tenth = share(10.0);
        assert!((150..250).contains(&tenth), "{tenth}");
        let (small, large) = (Share::percent(5.0).unwrap(), Share::percent(20.0).unwrap());
        let all = (0..500).map(|at| at.to_string());
        assert!(all.clone().all(|key| !small.holds(&key, "x") || large.holds(&key, "x")));
        assert!(
            all.clone().any(|key| large.holds(&key, "x") != large.holds(&key, "y")),
            "each candidate its own"
        );
        assert_eq!(Share::percent(100.5), None);
        assert_eq!(serde_json::to_string(&Share::percent(0.25).unwrap()).unwrap(), "0.25");
    }

    #[test]
    fn a_conversation_keeps_its_key_as_it_grows() {
        let asked = |texts: &[&str]| {
            let messages = texts.iter().map(|text| Message::new(Role::User, text)).collect();
            Inbound::of(ChatRequest::new("m", messages))
        };
        assert_eq!(key(&asked(&["hello"])), key(&asked(&["hello", "and then?"])));
        assert_ne!(key(&asked(&["hello"])), key(&asked(&["goodbye"])));
        let named = |name: &str| Inbound {
            session: SessionWords { session: Some(name.to_owned()), conversation: None },
            ..asked(&["hello"])
        };
        assert_ne!(key(&named("a")), key(&named("b")));
    }
}
