//! `response_jailbreak`: what a model wrote is looked at as text that somebody else wrote.
//!
//! The answer's texts, reasoning and tool arguments go through the same classifier as requests do, whole and in windows
//! (case E03), under the strict measure for text that no user wrote. It knows no way out but the three actions.
//!
//! **Invariant:** with `action: block` nothing of an answer leaves that was not looked at: a stream is held, and an answer
//! that cannot be looked at is withheld. Source: contract §1.10.

use super::answer_text::{whole, written};
use super::at_work::{Answered, AtWork};
use super::notes::Notes;
use crate::classify::Classifiers;
use crate::fault::{Code, Fault};
use chorus_collab::Answer;
use chorus_policy::Observation;
use chorus_spec::{JailbreakAction, ResponseJailbreakSettings};
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use futures_util::future::{BoxFuture, FutureExt};
use serde::Serialize;

const KIND: &str = "response_jailbreak";
/// The words of the header. Source: contract §1.10 for the first.
const FOUND: &str = "response_jailbreak";
const UNCHECKED: &str = "response_jailbreak_unchecked";

/// The plugin at work on one request.
pub(super) struct ResponseJailbreak {
    settings: ResponseJailbreakSettings,
    /// The answer leaves as it is produced, and is looked at then.
    later: bool,
}

/// What the classifier says of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Clean(Option<f64>),
    Attempt(Option<f64>),
    Unknown,
}

/// For the record; it holds no word of the answer.
#[derive(Debug, Serialize)]
struct Trace {
    /// `clean`, `found` or `unchecked`.
    verdict: &'static str,
    /// The classifier's score in 0..=1, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Whether the answer was held until it had been looked at.
    held: bool,
}

impl ResponseJailbreak {
    pub(super) fn new(settings: ResponseJailbreakSettings) -> Self {
        Self { settings, later: false }
    }

    async fn look(&self, reply: &ChatReply, classifiers: &Classifiers) -> Verdict {
        let messages: Vec<Message> =
            written(reply).iter().map(|text| Message::new(Role::Tool, text)).collect();
        if messages.is_empty() {
            return Verdict::Clean(None);
        }
        let seen = classifiers.outbound(ChatRequest::new("answer", messages)).await;
        seen.map_or(Verdict::Unknown, |seen| judged(&seen, self.settings.threshold))
    }

    fn note(&self, verdict: Verdict, notes: &mut Notes) {
        let (word, score) = match verdict {
            Verdict::Clean(score) => ("clean", score),
            Verdict::Attempt(score) => ("found", score),
            Verdict::Unknown => ("unchecked", None),
        };
        notes.did(KIND, &Trace { verdict: word, score, held: !self.later });
        let marked = self.settings.action == JailbreakAction::Header;
        match verdict {
            Verdict::Attempt(_) if marked => notes.warn(FOUND),
            Verdict::Unknown if marked => notes.warn(UNCHECKED),
            _ => {}
        }
    }
}

/// The classifier's own verdict, or its score against a threshold of the route's.
fn judged(seen: &Observation, threshold: Option<f64>) -> Verdict {
    let (raw, attempt) = match seen {
        Observation::Matched { raw, .. } => (*raw, true),
        Observation::Unmatched { raw } => (*raw, false),
        Observation::Absent(_) => return Verdict::Unknown,
    };
    let attempt = match (raw, threshold) {
        (Some(raw), Some(threshold)) => raw >= threshold,
        _ => attempt,
    };
    if attempt { Verdict::Attempt(raw) } else { Verdict::Clean(raw) }
}

fn withheld(why: &str) -> Fault {
    Fault::new(Code::Blocked, format!("the answer is withheld: {why}"))
}

impl AtWork for ResponseJailbreak {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn after<'a>(
        &'a mut self,
        answer: Answer,
        seen: &'a mut Answered<'_>,
    ) -> BoxFuture<'a, Result<Answer, Fault>> {
        async move {
            let blocks = self.settings.action == JailbreakAction::Block;
            if seen.given_by == Some("image_gen") {
                return Ok(answer);
            }
            if matches!(answer, Answer::Live(_)) && !blocks {
                self.later = true;
                return Ok(answer);
            }
            let reply = whole(answer).await?;
            let verdict = self.look(&reply.reply, &seen.scene.mom.classifiers).await;
            self.note(verdict, seen.notes);
            match verdict {
                Verdict::Attempt(_) if blocks => {
                    Err(withheld("it looks like an attempt to take over whoever reads it"))
                }
                Verdict::Unknown if blocks => Err(withheld("it could not be looked at")),
                _ => Ok(Answer::Finished(Box::new(reply))),
            }
        }
        .boxed()
    }

    fn keeps(&self) -> bool {
        self.later
    }

    fn kept<'a>(&'a mut self, reply: &'a ChatReply, seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        async move {
            let verdict = self.look(reply, &seen.scene.mom.classifiers).await;
            self.note(verdict, seen.notes);
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_policy::AbsentReason;

    #[test]
    fn a_routes_threshold_outweighs_the_classifiers_own_and_absence_is_never_clean() {
        let matched = |raw| Observation::Matched { confidence: 0.9, raw };
        let absent = Observation::Absent(AbsentReason::Failed("no encoder".to_owned()));
        for (seen, threshold, want) in [
            (matched(Some(0.8)), None, Verdict::Attempt(Some(0.8))),
            (matched(Some(0.8)), Some(0.9), Verdict::Clean(Some(0.8))),
            (matched(None), Some(0.9), Verdict::Attempt(None)),
            (Observation::Unmatched { raw: Some(0.6) }, None, Verdict::Clean(Some(0.6))),
            (Observation::Unmatched { raw: Some(0.6) }, Some(0.5), Verdict::Attempt(Some(0.6))),
            (absent, Some(0.5), Verdict::Unknown),
        ] {
            assert_eq!(judged(&seen, threshold), want, "{seen:?} {threshold:?}");
        }
    }
}
