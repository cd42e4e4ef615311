//! The line before an engine: bounded, first come first served for one caller, in turns between callers.
//!
//! It knows nothing of what waits in it except whether somebody still waits for it. Invariant: a caller with many
//! jobs delays another caller's next job by one job at most.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Something that can be waited for, or no longer.
pub(super) trait Waiting {
    /// Whether nobody waits for it any more.
    fn abandoned(&self) -> bool;
}

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// As many jobs wait as may.
    Full,
    /// The engine takes no more.
    Closed,
}

/// The line.
#[derive(Debug)]
pub(super) struct FairQueue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
    bound: usize,
}

#[derive(Debug)]
struct State<J> {
    /// Callers with waiting jobs, the next one to serve first.
    callers: VecDeque<(u64, VecDeque<J>)>,
    waiting: usize,
    closed: bool,
}

impl<J: Waiting> State<J> {
    fn drop_abandoned(&mut self) {
        for (_, jobs) in &mut self.callers {
            jobs.retain(|job| !job.abandoned());
        }
        self.callers.retain(|(_, jobs)| !jobs.is_empty());
        self.waiting = self.callers.iter().map(|(_, jobs)| jobs.len()).sum();
    }

    fn next(&mut self) -> Option<J> {
        let (caller, mut jobs) = self.callers.pop_front()?;
        let job = jobs.pop_front();
        if !jobs.is_empty() {
            self.callers.push_back((caller, jobs));
        }
        self.waiting -= usize::from(job.is_some());
        job
    }
}

impl<J: Waiting> FairQueue<J> {
    pub(super) fn new(bound: usize) -> Self {
        let state = State { callers: VecDeque::new(), waiting: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), bound }
    }

    /// Every change leaves the state sound, so that a panic elsewhere while it was held does no harm.
    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job in line.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn push(&self, caller: u64, job: J) -> Result<(), Refused> {
        let mut state = self.state();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.waiting >= self.bound {
            state.drop_abandoned();
        }
        if state.waiting >= self.bound {
            return Err(Refused::Full);
        }
        state.waiting += 1;
        match state.callers.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, jobs)) => jobs.push_back(job),
            None => state.callers.push_back((caller, VecDeque::from([job]))),
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next job that somebody waits for; `None` once the line is closed.
    pub(super) fn pop(&self) -> Option<J> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            match state.next() {
                Some(job) if job.abandoned() => {}
                Some(job) => return Some(job),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Takes no more jobs and forgets those in line.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.callers.clear();
        state.waiting = 0;
        self.changed.notify_all();
    }

    /// Whether the line was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Job(&'static str, bool);

    impl Waiting for Job {
        fn abandoned(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn callers_take_turns() {
        let queue = FairQueue::new(8);
        for (caller, name) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            queue.push(caller, Job(name, false)).unwrap();
        }
        let order: Vec<_> = (0..6).map(|_| queue.pop().unwrap().0).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn a_full_line_refuses_until_somebody_leaves() {
        let queue = FairQueue::new(2);
        queue.push(1, Job("gone", true)).unwrap();
        queue.push(1, Job("stays", false)).unwrap();
        queue.push(2, Job("fits", false)).unwrap();
        assert_eq!(queue.push(3, Job("late", false)), Err(Refused::Full));
        assert_eq!(queue.pop(), Some(Job("stays", false)));
        assert_eq!(queue.push(3, Job("late", false)), Ok(()));
    }

    #[test]
    fn a_closed_line_gives_nothing_more() {
        let queue = FairQueue::new(2);
        queue.push(1, Job("waits", false)).unwrap();
        queue.close();
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.push(1, Job("late", false)), Err(Refused::Closed));
    }
}
