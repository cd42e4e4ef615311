//! The clients of the endurance run: as fast as they can, to find the peak, and then at a share of it.

use super::ask::{Ask, Trouble};
use crate::line::{End, Line, Usage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What the clients saw, all together.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) whole: u64,
    pub(super) refused: u64,
    pub(super) left: u64,
    /// What whole answers said they took.
    pub(super) told: Usage,
    /// Ids of all runs; of those that the client left, apart.
    pub(super) runs: BTreeSet<u128>,
    pub(super) runs_left: BTreeSet<u128>,
    /// What no client should see; the first few of them.
    pub(super) wrong: Vec<String>,
}

impl Seen {
    pub(super) fn asked(&self) -> u64 {
        self.whole + self.refused + self.left
    }

    pub(super) fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.refused += other.refused;
        self.left += other.left;
        self.told.prompt_tokens += other.told.prompt_tokens;
        self.told.completion_tokens += other.told.completion_tokens;
        self.runs.extend(other.runs);
        self.runs_left.extend(other.runs_left);
        self.wrong.extend(other.wrong);
        self.wrong.truncate(MOST_WRONG);
    }
}

/// Wrong answers that are shown.
const MOST_WRONG: usize = 5;

/// How many ask at once, how fast all together, until when, and from which number on.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) clients: usize,
    /// Requests a second; `None` is as fast as they can.
    pub(super) rate: Option<f64>,
    pub(super) lasts: Duration,
    pub(super) first: u64,
}

/// Asks for as long as the pace says; every request has come to its end then.
pub(super) async fn ask(port: u16, pace: Pace) -> Seen {
    let numbers = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..pace.clients {
        let (numbers, Pace { rate, lasts, first, .. }) = (Arc::clone(&numbers), pace);
        clients.spawn(async move {
            let (mut line, mut seen) = (Line::to(port), Seen::default());
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                #[expect(clippy::cast_precision_loss, reason = "a few million requests")]
                let due = rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(number as f64 / rate));
                tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
                if began.elapsed() >= lasts {
                    return seen;
                }
                one(&mut line, Ask(first + number), &mut seen).await;
            }
        });
    }
    let mut all = Seen::default();
    while let Some(seen) = clients.join_next().await {
        match seen {
            Ok(seen) => all.add(seen),
            Err(fault) => all.wrong.push(format!("a client ended badly: {fault}")),
        }
    }
    all
}

async fn one(line: &mut Line, ask: Ask, seen: &mut Seen) {
    let leaves = ask.trouble() == Some(Trouble::ClientLeaves);
    let told = match line.ask(ask.body(), leaves).await {
        Ok(told) => told,
        Err(fault) => return seen.wrong.push(format!("request {}: {fault:#}", ask.0)),
    };
    let Some(run) = id(&told.run) else {
        return seen.wrong.push(format!("request {}: `{}` is no run", ask.0, told.run));
    };
    seen.runs.insert(run);
    match told.end {
        End::Left => {
            seen.left += 1;
            seen.runs_left.insert(run);
        }
        End::Refused if ask.trouble().is_some() => seen.refused += 1,
        End::Refused => {
            seen.refused += 1;
            let body = String::from_utf8_lossy(&told.body);
            let tail: String = body.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect();
            seen.wrong.push(format!("request {}, which nothing was wrong with: {tail}", ask.0));
        }
        End::Whole => {
            seen.whole += 1;
            let usage = told.usage().unwrap_or_default();
            if usage != ask.usage() {
                seen.wrong.push(format!("request {} took {:?} and was told {usage:?}", ask.0, ask.usage()));
            }
            seen.told.prompt_tokens += usage.prompt_tokens;
            seen.told.completion_tokens += usage.completion_tokens;
        }
    }
}

/// The number of a run's id.
pub(super) fn id(run: &str) -> Option<u128> {
    u128::from_str_radix(run.strip_prefix("run_")?, 16).ok()
}
