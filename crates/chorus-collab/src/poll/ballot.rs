//! Ballots: who voted for which answer, in what manner, and what the votes come to.
//!
//! **Invariant:** a reply without a readable short answer is no vote, whatever its voter's weight.

use crate::answers::Survivor;
use crate::calls::{CallFault, Reply};
use crate::extract::final_answer;
use crate::fault::MemberFailure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Shorter texts show no working. In characters.
const BARE_BELOW: usize = 60;
/// Longer texts are detours. In characters.
const LONG_FROM: usize = 600;

/// How much working an answer shows. A model is right less often where it gives only the answer, and where it needs many
/// words; how much, is learned a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Fewer than 60 characters.
    Bare,
    /// Between.
    Worked,
    /// 600 characters or more.
    Long,
}

impl Manner {
    /// The manner of a text of that many characters.
    #[must_use]
    pub fn of_chars(chars: usize) -> Self {
        match chars {
            ..BARE_BELOW => Self::Bare,
            LONG_FROM.. => Self::Long,
            _ => Self::Worked,
        }
    }
}

/// One usable reply.
#[derive(Debug)]
struct Ballot {
    voter: String,
    answer: Option<String>,
    manner: Manner,
    reply: Reply,
}

/// All replies so far, in the order of steps and seats.
#[derive(Debug, Default)]
pub(super) struct Ballots {
    cast: Vec<Ballot>,
    failures: Vec<MemberFailure>,
}

/// What a model's vote weighs, by how much working it shows; a model that is not named weighs nothing.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VoteWeights(pub(super) BTreeMap<String, [f64; 3]>);

impl VoteWeights {
    /// The same weight in every manner.
    #[must_use]
    pub fn even<'a>(weights: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        Self(weights.into_iter().map(|(model, weight)| (model.to_owned(), [weight; 3])).collect())
    }

    /// Sets a model's weights: bare, worked, long. In logits.
    pub fn set(&mut self, model: &str, weights: [f64; 3]) {
        self.0.insert(model.to_owned(), weights);
    }

    /// What that model's vote weighs. In logits.
    #[must_use]
    pub fn of(&self, model: &str, manner: Manner) -> f64 {
        let [bare, worked, long] = self.0.get(model).copied().unwrap_or_default();
        match manner {
            Manner::Bare => bare,
            Manner::Worked => worked,
            Manner::Long => long,
        }
    }
}

/// What the votes come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Count {
    /// The leading answer; of equally heavy ones the first.
    pub(super) leader: String,
    /// How likely it is to be right, in 0..=1.
    pub(super) share: f64,
    /// Its voter with the most weight; of equal ones the first.
    heaviest: usize,
}

impl Ballots {
    /// Takes one outcome.
    ///
    /// # Errors
    /// When it is none to count; it is kept as a failure.
    pub(super) fn cast(
        &mut self,
        seat: usize,
        voter: String,
        outcome: Result<Reply, CallFault>,
    ) -> Result<(), CallFault> {
        match outcome.and_then(|reply| Survivor::new(seat, reply)) {
            Ok(survivor) => {
                let manner = Manner::of_chars(survivor.text.chars().count());
                let answer = final_answer(&survivor.text);
                self.cast.push(Ballot { voter, answer, manner, reply: survivor.reply });
                Ok(())
            }
            Err(fault) => {
                self.failures.push((voter, fault.kind, fault.public.clone()));
                Err(fault)
            }
        }
    }

    /// What the usable replies say.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> + '_ {
        self.cast.iter().map(|ballot| ballot.reply.reply.content.clone())
    }

    /// Usable replies.
    pub(super) fn usable(&self) -> usize {
        self.cast.len()
    }

    /// The count by those weights, of a question with that many possible answers; `None` without a vote.
    ///
    /// The share is the posterior of independent voters whose weights are log-odds over a uniform prior: `exp` of an
    /// answer's sum against the sum over all possible answers, those without a vote included.
    pub(super) fn count(&self, weights: &VoteWeights, alternatives: usize) -> Option<Count> {
        let mut tally: Vec<(&str, f64, usize, f64)> = Vec::new();
        for (at, ballot) in self.cast.iter().enumerate() {
            let Some(answer) = ballot.answer.as_deref() else { continue };
            let weight = weights.of(&ballot.voter, ballot.manner);
            match tally.iter_mut().find(|(known, ..)| *known == answer) {
                Some((_, sum, heaviest, most)) => {
                    *sum += weight;
                    if weight > *most {
                        (*heaviest, *most) = (at, weight);
                    }
                }
                None => tally.push((answer, weight, at, weight)),
            }
        }
        let top = tally.iter().map(|(_, sum, ..)| *sum).reduce(f64::max)?;
        let (leader, _, heaviest, _) = tally.iter().find(|(_, sum, ..)| *sum >= top)?;
        let voted: f64 = tally.iter().map(|(_, sum, ..)| (sum - top).exp()).sum();
        let unvoted = alternatives.saturating_sub(tally.len()) as f64 * (-top).exp();
        Some(Count { leader: (*leader).to_owned(), share: 1.0 / (voted + unvoted), heaviest: *heaviest })
    }

    /// The reply of the count's heaviest voter for the leader, else the first reply.
    ///
    /// # Errors
    /// Who failed, where there is no reply.
    pub(super) fn reply_of(mut self, count: Option<Count>) -> Result<Reply, Vec<MemberFailure>> {
        let at = count.map_or(0, |count| count.heaviest);
        if at < self.cast.len() {
            return Ok(self.cast.swap_remove(at).reply);
        }
        Err(self.failures)
    }
}
