//! The way of a run's parts to its door: a short queue between two halves of one task.
//!
//! Whoever takes parts is whoever polls the work that makes them (a run, or [`unheard`]): each poll of the one
//! is followed by a look for the other, and each part taken by another poll. So nobody has to be woken, and work that has
//! sent a part does nothing more until it is on its way. It knows no runtime. **Invariant:** parts leave in the order in
//! which they came, at most [`ROOM`] and one more wait, and once the taker is gone the work is polled again, by whoever
//! has it then.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

/// Most parts of one run that may wait for a slow door; one that is sent comes on top, for its sender does nothing more.
const ROOM: usize = 64;

/// A queue for one run.
pub(crate) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(Queue { waiting: Mutex::default(), closed: AtomicBool::new(false) });
    (Sender(Arc::clone(&queue)), Receiver(queue))
}

#[derive(Debug)]
struct Queue<T> {
    waiting: Mutex<VecDeque<T>>,
    /// Nobody takes parts any more.
    closed: AtomicBool,
}

impl<T> Queue<T> {
    fn with<R>(&self, act: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        act(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The half of the work. Cloning shares it.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Queue<T>>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Nobody takes parts any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl<T> Sender<T> {
    /// Hands a part on, and waits until it and all before it have been taken. Nobody is woken for it: not to be awaited in a
    /// set that polls only what was woken.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) async fn send(&self, part: T) -> Result<(), Gone> {
        if self.is_closed() {
            return Err(Gone);
        }
        self.0.with(|waiting| waiting.push_back(part));
        poll_fn(|_| match (self.0.with(|waiting| waiting.is_empty()), self.is_closed()) {
            (true, _) => Poll::Ready(Ok(())),
            (false, true) => Poll::Ready(Err(Gone)),
            (false, false) => Poll::Pending,
        })
        .await
    }

    /// Hands a part on where there is room, and waits for nobody.
    pub(crate) fn offer(&self, part: T) {
        self.0.with(|waiting| {
            if waiting.len() < ROOM {
                waiting.push_back(part);
            }
        });
    }

    /// Whether nobody takes parts any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// What the future gives; `None` where nobody takes parts any more before it does. It is borrowed, because one that is
    /// handed over by value has its room twice.
    pub(crate) async fn while_heard<R>(&self, mut work: Pin<&mut impl Future<Output = R>>) -> Option<R> {
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(given) => Poll::Ready(Some(given)),
            Poll::Pending if self.is_closed() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

/// The half of the door.
#[derive(Debug)]
pub(crate) struct Receiver<T>(Arc<Queue<T>>);

impl<T> Receiver<T> {
    /// The next part, if there is one: to be asked after each poll of the work.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.with(VecDeque::pop_front)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

/// What work gives whose parts nobody hears: they are taken and dropped.
pub(crate) async fn unheard<T, R>(work: impl Future<Output = R>, mut parts: Receiver<T>) -> R {
    let mut work = pin!(work);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(given) = work.as_mut().poll(cx) {
                return Poll::Ready(given);
            }
            // Whoever waited for a part to be taken has what it waited for: it is polled again.
            if std::iter::from_fn(|| parts.take()).count() == 0 {
                return Poll::Pending;
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_slow_door_holds_the_work_up_and_a_gone_one_ends_it() {
        let (parts, mut door) = queue();
        for _ in 0..2 * ROOM {
            parts.offer('o');
        }
        let mut sending = Box::pin(parts.send('s'));
        assert!((&mut sending).now_or_never().is_none(), "nobody has taken anything");
        assert_eq!(std::iter::from_fn(|| door.take()).collect::<String>(), "o".repeat(ROOM) + "s");
        assert_eq!((&mut sending).now_or_never(), Some(Ok(())));
        let mut last = Box::pin(parts.send('s'));
        assert!((&mut last).now_or_never().is_none());
        drop(door);
        assert_eq!((&mut last).now_or_never(), Some(Err(Gone)), "it was left behind");
        assert_eq!(parts.send('s').now_or_never(), Some(Err(Gone)));
        assert_eq!(parts.while_heard(pin!(std::future::pending::<()>())).now_or_never(), Some(None));
    }

    #[test]
    fn what_the_door_has_taken_before_it_went_was_sent() {
        let (parts, mut door) = queue();
        let mut sending = Box::pin(parts.send('s'));
        assert!((&mut sending).now_or_never().is_none());
        assert_eq!(door.take(), Some('s'));
        drop(door);
        assert_eq!((&mut sending).now_or_never(), Some(Ok(())));
    }

    #[test]
    fn unheard_work_goes_on_however_many_parts_it_has() {
        let (parts, door) = queue();
        let work = async {
            for _ in 0..3 * ROOM {
                parts.send('x').await.unwrap();
            }
            7
        };
        assert_eq!(unheard(work, door).now_or_never(), Some(7));
    }
}
