//! The verdicts that count for later choices: those of this process, of earlier ones, and of other replicas.
//!
//! What counts is what is read back, from a mark on: a replica's own verdicts and those that another was told are counted
//! by the same reading. It does not know whether a verdict makes sense. **Invariant:** a verdict is counted once, whoever
//! was told; and no task of it outlives its engine.

use crate::selection::Experience;
use chorus_store::{Outcome, OutcomeFault, OutcomeMark, OutcomeStore, Told};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Verdicts of the past that are counted when a process starts, the latest (`max_recalled_verdicts`).
const RECALLED: usize = 100_000;
/// Verdicts that are read at once afterwards (`max_heard_verdicts`).
const HEARD: usize = 1_000;
/// How often a process reads what other replicas were told.
pub const HEAR_EVERY: Duration = Duration::from_secs(10);

/// Where verdicts are kept, and how far they are counted.
pub(crate) struct Verdicts {
    store: Arc<dyn OutcomeStore>,
    experience: Arc<Experience>,
    /// `None` until those of the past are counted.
    upto: Mutex<Option<OutcomeMark>>,
}

impl Verdicts {
    /// Counts those that are kept already, and from then on what other replicas are told, where there may be some.
    pub(crate) async fn of(store: Arc<dyn OutcomeStore>, experience: Arc<Experience>) -> Arc<Self> {
        let is_shared = store.is_shared();
        let verdicts = Arc::new(Self { store, experience, upto: Mutex::new(None) });
        let heard = verdicts.hear().await;
        if let Err(fault) = &heard {
            tracing::warn!(%fault, "outcomes of earlier runs are not at hand");
        }
        if is_shared {
            tokio::spawn(listen(Arc::downgrade(&verdicts), heard.is_err()));
        }
        verdicts
    }

    /// Keeps a verdict under its sender's key, and counts it where it is new.
    pub(crate) async fn keep(&self, key: String, outcome: Outcome) -> Result<Told, OutcomeFault> {
        let told = self.store.tell(key, outcome).await?;
        if told == Told::New
            && let Err(fault) = self.hear().await
        {
            tracing::warn!(%fault, "a verdict is kept, and counted with the next reading only");
        }
        Ok(told)
    }

    /// Counts what was told since the last time, here or elsewhere.
    async fn hear(&self) -> Result<(), OutcomeFault> {
        let mut upto = self.upto.lock().await;
        loop {
            let (heard, mark) = match *upto {
                Some(mark) => self.store.after(mark, HEARD).await?,
                None => self.store.latest(RECALLED).await?,
            };
            heard.iter().for_each(|outcome| self.experience.count(outcome));
            *upto = Some(mark);
            if heard.len() < HEARD {
                return Ok(());
            }
        }
    }
}

/// Hears now and then, as long as somebody else holds them.
async fn listen(verdicts: Weak<Verdicts>, mut is_away: bool) {
    let mut ticks = interval_at(Instant::now() + HEAR_EVERY, HEAR_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(verdicts) = verdicts.upgrade() else { return };
        match verdicts.hear().await {
            Ok(()) if is_away => tracing::info!("verdicts that other replicas were told are at hand again"),
            Err(fault) if !is_away => {
                tracing::warn!(%fault, "verdicts that other replicas were told are not at hand");
            }
            _ => continue,
        }
        is_away = !is_away;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_store::{OutcomeTarget, OutcomeVerdict, RunId, SqliteOutcomes};
    use futures_util::future::BoxFuture;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A store that replicas share, and that can be away.
    struct Shared {
        kept: SqliteOutcomes,
        is_away: Arc<AtomicBool>,
    }

    impl Shared {
        fn there(&self) -> Result<(), OutcomeFault> {
            let away = self.is_away.load(Ordering::Relaxed);
            if away { Err(OutcomeFault::Io("away".to_owned())) } else { Ok(()) }
        }
    }

    impl OutcomeStore for Shared {
        fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
            self.kept.tell(key, outcome)
        }

        fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
            self.kept.of(run)
        }

        fn latest(&self, most: usize) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
            Box::pin(async move {
                self.there()?;
                self.kept.latest(most).await
            })
        }

        fn after(
            &self,
            mark: OutcomeMark,
            most: usize,
        ) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
            Box::pin(async move {
                self.there()?;
                self.kept.after(mark, most).await
            })
        }

        fn is_shared(&self) -> bool {
            true
        }
    }

    fn good(model: &str) -> Outcome {
        Outcome {
            run: RunId::new(),
            told_at_ms: 5,
            target: OutcomeTarget::Model,
            target_ref: Some(model.to_owned()),
            decision: Some("greet".to_owned()),
            verdict: OutcomeVerdict::GoodFit,
            reason: None,
            score: None,
            metadata: Default::default(),
        }
    }

    /// How often the model was a good fit, as this process counts.
    fn counted(verdicts: &Verdicts) -> u64 {
        verdicts.experience.of(&["greet"], std::iter::once("m"))[0].good_fit
    }

    /// Until the store's own threads and the listener have done what a period brings.
    async fn until(verdicts: &Verdicts, count: u64) {
        for _ in 0..20 {
            tokio::time::sleep(HEAR_EVERY).await;
            drop(verdicts.upto.lock().await);
            if counted(verdicts) == count {
                return;
            }
        }
        assert_eq!(counted(verdicts), count);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_counts_what_another_was_told_once() {
        let (kept, is_away) = (SqliteOutcomes::in_memory().unwrap(), Arc::new(AtomicBool::new(true)));
        let shared = || Arc::new(Shared { kept: kept.clone(), is_away: Arc::clone(&is_away) });
        let tell = |n: usize| kept.tell(n.to_string(), good("m"));
        tell(0).await.unwrap();
        let late = Verdicts::of(shared(), Arc::default()).await;
        assert_eq!(counted(&late), 0, "the store is away");
        is_away.store(false, Ordering::Relaxed);
        let early = Verdicts::of(shared(), Arc::default()).await;
        assert_eq!(counted(&early), 1, "what was told before is counted at the start");
        until(&late, 1).await;
        // One replica is told more than a reading holds, and counts its own at once.
        for n in 1..=HEARD + 1 {
            tell(n).await.unwrap();
        }
        early.hear().await.unwrap();
        let all = HEARD as u64 + 2;
        assert_eq!(counted(&early), all);
        until(&late, all).await;
        until(&early, all).await;
        let (weak, alone) = (Arc::downgrade(&late), Arc::strong_count(&late));
        drop(late);
        assert_eq!((alone, weak.upgrade().is_none()), (1, true), "the listener holds nothing");
    }
}
