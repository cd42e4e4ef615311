//! A candidate on its way: shown copies, answering a share, promoted, taken back; and what of that outlives the process.
//!
//! What is tried is named by a [`Source`], which only the process can open ([`Candidates`]). The state is one small file; at
//! a start the rollout goes on where it was, if what is served and the candidate are still the same bytes.
//!
//! **Invariant:** promotion and its taking back are one store of a pointer each; whatever goes wrong, what is served goes on.

use super::fault::Refusal;
use super::origin::Offer;
use super::state::{Attempt, Basis, Cause, State};
use super::{Configuration, Ready};
use crate::publish::publish;
use crate::rollout::{Share, Stage, Trial};
use chorus_spec::Digest;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The version of the state file.
const VERSION: u32 = 1;

/// What is to be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A bundle, a source directory, a v0.3 file or a policy.
    pub path: PathBuf,
    /// Its binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<PathBuf>,
    /// Its lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<PathBuf>,
}

/// Opens candidates.
pub trait Candidates: Send + Sync {
    /// What a source offers, trusted and whole.
    ///
    /// # Errors
    /// Why it is refused.
    fn open(&self, source: &Source) -> Result<Offer, Refusal>;
}

/// Where a rollout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The candidate is shown copies.
    Shadow,
    /// It answers a share of conversations.
    Canary,
    /// It is what is served, and what was served before can be taken back.
    Promoted,
}

/// A rollout, as it is told and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    version: u32,
    /// Where it stands.
    pub standing: Standing,
    /// Of how many conversations, in percent.
    pub percent: Share,
    /// What is tried.
    pub source: Source,
    /// Digest of what is tried.
    pub candidate: Digest,
    /// The candidate's bundle, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
    /// Digest of what it is tried beside.
    pub base: Digest,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// What a process needs for rollouts.
pub(super) struct Rollouts {
    candidates: Arc<dyn Candidates>,
    file: PathBuf,
    active: Mutex<Option<Rollout>>,
    /// What was served before the promotion.
    before: Mutex<Option<State>>,
}

impl Configuration {
    /// The same, able to try candidates; the state is kept in that file.
    #[must_use]
    pub fn trying(self, candidates: Arc<dyn Candidates>, file: PathBuf) -> Self {
        let (active, before) = (Mutex::default(), Mutex::default());
        Self { rollouts: Some(Rollouts { candidates, file, active, before }), ..self }
    }

    /// The rollout under way, if there is one.
    #[must_use]
    pub fn rollout(&self) -> Option<Rollout> {
        self.rollouts.as_ref().and_then(|it| lock(&it.active).clone())
    }

    /// Goes on with a rollout that the file tells of. One whose base or candidate is another by now is forgotten.
    ///
    /// # Errors
    /// [`Refusal`]; what is served goes on, and so does the next start.
    pub async fn resume(&self) -> Result<Option<Rollout>, Refusal> {
        let Some(rollouts) = &self.rollouts else { return Ok(None) };
        let text = match fs::read_to_string(&rollouts.file) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let _turn = self.turn.lock().await;
        let kept: Rollout = serde_json::from_str(&text).map_err(|why| {
            Refusal::Unready(format!("the rollout's file {}: {why}", rollouts.file.display()))
        })?;
        if kept.version > VERSION {
            return Err(Refusal::Unready(format!("the rollout's file is of version {}", kept.version)));
        }
        if kept.base != self.state().digest {
            rollouts.forget();
            return Err(Refusal::Unready(
                "what is served is not what the rollout was begun beside; it is over".to_owned(),
            ));
        }
        let stage = if kept.standing == Standing::Shadow { Stage::Shadow } else { Stage::Canary };
        let (found, text) = self.tried(&kept.source, Trial { stage, share: kept.percent }).await?;
        if found.candidate != kept.candidate {
            self.engine.end_trial();
            rollouts.forget();
            return Err(Refusal::Unready("the candidate is another by now; the rollout is over".to_owned()));
        }
        rollouts.set(&found).inspect_err(|_| self.engine.end_trial())?;
        match kept.standing {
            Standing::Promoted => self.put_in_place(found, text).map(Some),
            _ => Ok(Some(found)),
        }
    }

    /// Tries a candidate beside what is served, in the place of one that is tried already.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn roll_out(&self, source: &Source, trial: Trial, basis: &Basis) -> Result<Rollout, Refusal> {
        let _turn = self.turn.lock().await;
        self.is_based(basis)?;
        let rollouts = self.rollouts.as_ref().ok_or(Refusal::NoRollouts)?;
        if lock(&rollouts.active).as_ref().is_some_and(|it| it.standing == Standing::Promoted) {
            return Err(Refusal::RolloutStands);
        }
        let (rollout, _) = self.tried(source, trial).await?;
        rollouts.set(&rollout).inspect_err(|_| self.engine.end_trial())?;
        tracing::info!(stage = %trial.stage, percent = trial.share.as_percent(), candidate = %rollout.candidate, "a candidate is tried");
        Ok(rollout)
    }

    /// Tries the same candidate at another stage, or for another share.
    ///
    /// # Errors
    /// [`Refusal::NoRollout`], and as [`roll_out`](Self::roll_out).
    pub async fn retry(&self, trial: Trial, basis: &Basis) -> Result<Rollout, Refusal> {
        let now = self.rollout().ok_or(Refusal::NoRollout)?;
        if now.standing == Standing::Promoted {
            return Err(Refusal::RolloutStands);
        }
        {
            let _turn = self.turn.lock().await;
            self.is_based(basis)?;
            if self.engine.retry(trial) {
                let rollouts = self.rollouts.as_ref().ok_or(Refusal::NoRollouts)?;
                let rollout = Rollout { percent: trial.share, ..now };
                rollouts.set(&rollout)?;
                return Ok(rollout);
            }
        }
        self.roll_out(&now.source, trial, basis).await
    }

    /// Serves the candidate, from the next request on.
    ///
    /// # Errors
    /// [`Refusal::NoRollout`], and why the candidate cannot be made ready.
    pub async fn promote(&self, basis: &Basis) -> Result<Rollout, Refusal> {
        let _turn = self.turn.lock().await;
        self.is_based(basis)?;
        let now = self.rollout().ok_or(Refusal::NoRollout)?;
        match now.standing {
            Standing::Promoted => Err(Refusal::RolloutStands),
            // What was shown copies touches nothing that is shared; what serves has to.
            Standing::Shadow | Standing::Canary => {
                let (rollout, text) =
                    self.tried(&now.source, Trial { stage: Stage::Canary, share: now.percent }).await?;
                if rollout.candidate == now.candidate {
                    return self.put_in_place(rollout, text);
                }
                self.rollout_is_over();
                Err(Refusal::Unready("the candidate is another by now; the rollout is over".to_owned()))
            }
        }
    }

    /// Tries the candidate no more; where it was promoted, serves again what was served before.
    ///
    /// # Errors
    /// [`Refusal::NoRollout`].
    pub async fn withdraw(&self, basis: &Basis) -> Result<Arc<State>, Refusal> {
        let _turn = self.turn.lock().await;
        self.is_based(basis)?;
        let rollouts = self.rollouts.as_ref().ok_or(Refusal::NoRollouts)?;
        let now = self.rollout().ok_or(Refusal::NoRollout)?;
        self.engine.end_trial();
        let before = lock(&rollouts.before).take();
        rollouts.forget();
        tracing::info!(candidate = %now.candidate, "a candidate is taken back");
        match before.filter(|_| self.engine.demote().is_some()) {
            Some(before) => {
                let last = Attempt::served(Cause::Rollout, before.digest.clone());
                Ok(self.tell(State { since_ms: last.at_ms, last, ..before }))
            }
            None => Ok(self.state()),
        }
    }

    /// A reload, or a change, has put something else in the place of what the candidate is tried beside, or of the
    /// candidate itself.
    pub(super) fn rollout_is_over(&self) {
        if let Some(rollouts) = &self.rollouts
            && self.rollout().is_some()
        {
            self.engine.end_trial();
            lock(&rollouts.before).take();
            rollouts.forget();
            tracing::warn!("the rollout is over: what it was tried beside has changed");
        }
    }

    /// Whether that text is what a promoted candidate took the place of: a watch that finds it finds nothing new.
    pub(super) fn is_promoted_beside(&self, digest: &Digest) -> bool {
        self.rollout().is_some_and(|it| it.standing == Standing::Promoted && it.base == *digest)
    }

    fn is_based(&self, basis: &Basis) -> Result<(), Refusal> {
        let state = self.state();
        match basis {
            Basis::OneOf(digests) if !digests.iter().any(|it| it == state.digest.as_str()) => {
                Err(Refusal::Stale(state.digest.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Opens a source, makes it ready and tries it.
    async fn tried(&self, source: &Source, trial: Trial) -> Result<(Rollout, String), Refusal> {
        let rollouts = self.rollouts.as_ref().ok_or(Refusal::NoRollouts)?;
        let (candidates, wanted) = (Arc::clone(&rollouts.candidates), source.clone());
        let opened = tokio::task::spawn_blocking(move || candidates.open(&wanted)).await;
        let offer = opened.unwrap_or_else(|_| Err(super::failed_badly()))?;
        let text = offer.first.text.clone();
        let rollout = Rollout {
            version: VERSION,
            standing: if trial.stage == Stage::Shadow { Standing::Shadow } else { Standing::Canary },
            percent: trial.share,
            source: source.clone(),
            candidate: Digest::of(text.as_bytes()),
            bundle: offer.first.artifact.bundle.clone(),
            base: self.state().digest.clone(),
            since_ms: super::state::now_ms(),
        };
        let Ready { first, others } = self.ready_for(offer, trial.stage == Stage::Shadow).await?;
        self.engine.try_beside(first, others, trial);
        Ok((rollout, text))
    }

    /// Serves what is tried, by one store of a pointer.
    fn put_in_place(&self, rollout: Rollout, text: String) -> Result<Rollout, Refusal> {
        let rollouts = self.rollouts.as_ref().ok_or(Refusal::NoRollouts)?;
        let rollout = Rollout { standing: Standing::Promoted, percent: Share::ALL, ..rollout };
        // A file that cannot be written must not be found out after the swap.
        rollouts.set(&rollout).inspect_err(|_| self.engine.end_trial())?;
        let generation = self.engine.promote().ok_or(Refusal::NoRollout)?;
        let before = State::clone(&self.state());
        let last = Attempt::served(Cause::Rollout, rollout.candidate.clone());
        let served = State {
            text: text.into(),
            digest: rollout.candidate.clone(),
            generation,
            since_ms: last.at_ms,
            last,
            waiting: Vec::new(),
        };
        lock(&rollouts.before).replace(before);
        self.tell(served);
        tracing::info!(generation, candidate = %rollout.candidate, "a candidate is served");
        Ok(rollout)
    }
}

impl Rollouts {
    /// Writes the state, then takes it for what is.
    fn set(&self, rollout: &Rollout) -> Result<(), Refusal> {
        let text = serde_json::to_string_pretty(rollout).map_err(|why| Refusal::Unready(why.to_string()))?;
        publish(&self.file, text.as_bytes(), None).map_err(Refusal::Unwritable)?;
        lock(&self.active).replace(rollout.clone());
        Ok(())
    }

    fn forget(&self) {
        lock(&self.active).take();
        if let Err(fault) = fs::remove_file(&self.file)
            && fault.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%fault, "the file of a rollout that is over cannot be removed");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
