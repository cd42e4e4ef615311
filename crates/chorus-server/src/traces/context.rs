//! Whose trace a run is a part of, kept until its record comes.

use chorus_engine::TraceParent;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Most parents that wait for their runs' records; the oldest goes first.
const MOST: usize = 8192;

/// Parents by run, between a response's head and the run's record.
#[derive(Default)]
pub(super) struct Parents(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    by_run: BTreeMap<String, TraceParent>,
    order: VecDeque<String>,
}

impl Parents {
    pub(super) fn join(&self, run: &str, parent: TraceParent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.by_run.insert(run.to_owned(), parent);
        waiting.order.push_back(run.to_owned());
        if waiting.order.len() > MOST
            && let Some(oldest) = waiting.order.pop_front()
        {
            waiting.by_run.remove(&oldest);
        }
    }

    pub(super) fn take(&self, run: &str) -> Option<TraceParent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_run.remove(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_of_runs_that_left_no_record_do_not_gather() {
        let parents = Parents::default();
        let parent = TraceParent { trace: "t".to_owned(), span: "s".to_owned(), sampled: true };
        for run in 0..=MOST {
            parents.join(&run.to_string(), parent.clone());
        }
        assert_eq!(parents.take("0"), None);
        assert_eq!(parents.take("1"), Some(parent));
    }
}
