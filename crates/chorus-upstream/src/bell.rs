//! What wakes whoever waits for a connection.
//!
//! To take what a connection has read tells it that it may read on, and so wakes whoever drives it. That is the task
//! which takes, and which drives it again before it waits: it needs no waking, and would be run once more for nothing.
//!
//! **Invariant:** a ring is never lost: it wakes the task that waits, or is told to the task that keeps the bell still.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Wake, Waker};

/// Rings are heard.
const OPEN: u8 = 0;
/// Rings are noted.
const STILL: u8 = 1;
/// One was.
const RUNG: u8 = 2;

/// A bell.
#[derive(Default)]
pub(crate) struct Bell {
    waiting: AtomicWaker,
    state: AtomicU8,
}

impl Bell {
    /// From now on it wakes that task, and no other.
    pub(crate) fn wakes(&self, task: &Waker) {
        self.waiting.register(task);
    }

    /// From now on it wakes nobody.
    pub(crate) fn forget(&self) {
        drop(self.waiting.take());
    }

    /// Does something that the bell is not to be heard of; also whether it rang.
    pub(crate) fn still<T>(&self, act: impl FnOnce() -> T) -> (T, bool) {
        self.state.store(STILL, Ordering::SeqCst);
        let done = act();
        (done, self.state.swap(OPEN, Ordering::SeqCst) == RUNG)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self.state.compare_exchange(STILL, RUNG, Ordering::SeqCst, Ordering::SeqCst);
        if noted.is_err_and(|state| state == OPEN) {
            self.waiting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_ring_wakes_who_waits_or_is_told_to_who_keeps_it_still() {
        let (bell, count) = (Arc::new(Bell::default()), Arc::new(Count::default()));
        let (rings, task) = (Waker::from(Arc::clone(&bell)), Waker::from(Arc::clone(&count)));
        let woken = || count.0.load(Ordering::SeqCst);
        rings.wake_by_ref();
        assert_eq!(woken(), 0, "nobody waits");
        bell.wakes(&task);
        assert_eq!(bell.still(|| 7), (7, false));
        assert_eq!(bell.still(|| (rings.wake_by_ref(), rings.wake_by_ref())), (((), ()), true));
        assert_eq!(woken(), 0);
        rings.wake_by_ref();
        assert_eq!(woken(), 1);
        bell.wakes(&task);
        bell.forget();
        rings.wake_by_ref();
        assert_eq!(woken(), 1);
    }
}
