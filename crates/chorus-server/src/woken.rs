//! A stream that does nothing when it is polled for nothing.
//!
//! hyper asks a body for more once it has sent what there was, and again once that has left; each time all that makes the
//! body would look at its socket and its clocks. It knows nothing of what streams. **Invariant:** what waits within is
//! polled after each of its wakes, and after each item.

use futures_util::stream::Stream;
use futures_util::task::AtomicWaker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A stream that is polled only where it may have more.
pub(crate) struct Woken<S> {
    stream: S,
    wakes: Arc<Wakes>,
    /// Of `wakes`.
    waker: Waker,
}

/// What wakes the stream, and whom it wakes then.
#[derive(Default)]
struct Wakes {
    came: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.came.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<S: Stream + Unpin> Woken<S> {
    pub(crate) fn new(stream: S) -> Self {
        let wakes = Arc::new(Wakes { came: AtomicBool::new(true), ..Wakes::default() });
        Self { stream, waker: Arc::clone(&wakes).into(), wakes }
    }
}

impl<S: Stream + Unpin> Stream for Woken<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Self { stream, wakes, waker } = &mut *self;
        // First, so that a wake that comes meanwhile finds the task.
        wakes.task.register(cx.waker());
        if !wakes.came.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = Pin::new(stream).poll_next(&mut Context::from_waker(waker));
        if polled.is_ready() {
            wakes.came.store(true, Ordering::Release);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, StreamExt, stream};
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn it_is_polled_after_a_wake_and_after_an_item_and_not_besides() {
        let (polls, within) = (AtomicUsize::new(0), AtomicWaker::new());
        let more = AtomicUsize::new(2);
        let mut woken = Woken::new(stream::poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            within.register(cx.waker());
            if more.load(Ordering::Relaxed) == 0 {
                Poll::Pending
            } else {
                Poll::Ready(Some(more.fetch_sub(1, Ordering::Relaxed)))
            }
        }));
        let mut next = || woken.next().now_or_never().flatten();
        assert_eq!([next(), next(), next(), next(), next()], [Some(2), Some(1), None, None, None]);
        assert_eq!(polls.load(Ordering::Relaxed), 3, "two items, and once that there is no more");
        more.store(1, Ordering::Relaxed);
        assert_eq!(next(), None, "nothing has woken it");
        within.wake();
        assert_eq!([next(), next()], [Some(1), None]);
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let (parts, taken) = tokio::sync::mpsc::unbounded_channel();
        let taken = stream::unfold(taken, |mut taken| async move { Some((taken.recv().await?, taken)) });
        let reader = tokio::spawn(Woken::new(Box::pin(taken)).collect::<Vec<u32>>());
        for part in 0..100 {
            tokio::task::yield_now().await;
            parts.send(part).unwrap();
        }
        drop(parts);
        assert_eq!(reader.await.unwrap(), (0..100).collect::<Vec<_>>());
    }
}
