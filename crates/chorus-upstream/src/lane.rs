//! One HTTP/1.1 connection, which carries one request at a time and is driven by whoever waits for the answer.
//!
//! No task of its own stands behind it: what comes over the socket wakes the task that wants it, and no other. It knows
//! no place and no pool. **Invariant:** dropping a lane closes its socket at once (case A16).

use crate::UpstreamFault;
use crate::bell::Bell;
use crate::clock::Deadline;
use crate::connect::{Connector, Life, Line};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tower::util::ServiceExt;

/// Most bytes of an answer's status line and headers that are held while the rest is missing.
pub(crate) const MAX_HEAD_BYTES: usize = 64 << 10;

/// A request as it is sent.
pub(crate) type Outgoing = Request<Full<Bytes>>;

/// A connection.
pub(crate) struct Lane {
    sender: SendRequest<Full<Bytes>>,
    /// Gone once it has ended.
    connection: Option<Connection<TokioIo<Line>, Full<Bytes>>>,
    life: Life,
    bell: Arc<Bell>,
    /// Rings it.
    ringer: Waker,
    /// For whichever deadline is next. It is never set later than that, but may be set earlier, by a stage or a request
    /// that is over: to leave it so costs less than to set it anew for each.
    timer: Pin<Box<Sleep>>,
}

impl Lane {
    /// A connection to that place.
    ///
    /// # Errors
    /// [`UpstreamFault::Connect`].
    pub(crate) async fn open(connector: Connector, place: Uri) -> Result<Self, UpstreamFault> {
        let line = connector.oneshot(place).await;
        let line = line.map_err(|fault| UpstreamFault::Connect { detail: chain(&*fault) })?;
        let life = line.inner().life();
        let opened = Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(line).await;
        let (sender, connection) =
            opened.map_err(|fault| UpstreamFault::Connect { detail: chain(&fault) })?;
        let (bell, timer) = (Arc::new(Bell::default()), Box::pin(sleep(Duration::MAX)));
        let ringer = Waker::from(Arc::clone(&bell));
        Ok(Self { sender, connection: Some(connection), life, bell, ringer, timer })
    }

    /// Sends a request and waits for the head of its answer. A request of which nothing was sent, because the connection
    /// had ended before it, is in the error.
    ///
    /// # Errors
    /// The outer one when the time is up, the inner one when the connection breaks.
    pub(crate) async fn ask(
        &mut self,
        request: Outgoing,
        deadline: Deadline,
    ) -> Result<Result<Response<Incoming>, TrySendError<Outgoing>>, UpstreamFault> {
        self.bell.forget();
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            // Nothing but the connection, which was driven just now, can bring the answer: nobody has to be woken for it.
            match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
                Poll::Pending if self.is_late(deadline.end()) => Poll::Ready(Err(deadline.fault())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// The next frame of an answer that comes over this connection.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut take = || Pin::new(&mut *incoming).poll_frame(&mut Context::from_waker(Waker::noop()));
        let (taken, _) = self.bell.still(&mut take);
        if taken.is_ready() {
            return taken;
        }
        self.drive(cx);
        let (taken, rang) = self.bell.still(&mut take);
        if taken.is_pending() && rang {
            // Not for what was taken: something came meanwhile.
            cx.waker().wake_by_ref();
        }
        taken
    }

    /// Lets the connection read and write what it can; the task is woken when it can do more.
    fn drive(&mut self, cx: &mut Context<'_>) {
        self.bell.wakes(cx.waker());
        drive(&mut self.connection, &mut Context::from_waker(&self.ringer));
    }

    /// Whether that moment has passed; the task that drove it last is woken when it does.
    pub(crate) fn is_late(&mut self, end: Instant) -> bool {
        let mut ring = Context::from_waker(&self.ringer);
        if self.timer.deadline() > end {
            self.timer.as_mut().reset(end);
        }
        while self.timer.as_mut().poll(&mut ring).is_ready() {
            if self.timer.deadline() >= end {
                return true;
            }
            self.timer.as_mut().reset(end);
        }
        false
    }

    /// Whether it can carry another request: the answer to the last one was read to its end.
    pub(crate) fn is_free(&self) -> bool {
        self.sender.is_ready()
    }

    /// Whether the backend had closed it before the last request came, and gave no byte to that (case C16).
    pub(crate) fn died_idle(&self) -> bool {
        self.life.died_idle()
    }

    /// Closes it as its protocols wish; what cannot be said at once is left out.
    pub(crate) fn close(self) {
        let Self { sender, mut connection, .. } = self;
        drop(sender);
        drive(&mut connection, &mut Context::from_waker(Waker::noop()));
    }
}

/// Lets a connection read and write what it can.
fn drive(connection: &mut Option<Connection<TokioIo<Line>, Full<Bytes>>>, cx: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready());
    if ended {
        // An error has reached whoever waits for the answer, or nobody did.
        *connection = None;
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
