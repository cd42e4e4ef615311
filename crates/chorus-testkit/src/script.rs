//! What a scripted backend does with one request.

use crate::{ChatAnswer, Received};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Holds a script back until the test lets it go on; one permit lets one [`Step::Await`] pass.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets one step pass, now or later.
    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub(crate) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// One thing that happens on the socket.
#[derive(Debug, Clone)]
pub enum Step {
    /// These bytes, in one write (one chunk of a chunked body).
    Write(Bytes),
    /// These bytes, one write (and one chunk) a byte.
    Trickle(Bytes),
    /// A pause.
    Wait(Duration),
    /// A pause until the gate opens.
    Await(Gate),
    /// The connection is reset (RST).
    Reset,
    /// The connection is closed (FIN), whatever was promised.
    Close,
    /// Nothing more, until the client leaves.
    Stall,
}

impl Step {
    /// [`Step::Write`] of text or bytes.
    #[must_use]
    pub fn write(bytes: impl Into<Bytes>) -> Self {
        Self::Write(bytes.into())
    }

    /// `data: …` and a blank line, in one write.
    #[must_use]
    pub fn event(data: &str) -> Self {
        Self::write(format!("data: {data}\n\n"))
    }
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `content-length`.
    Length,
    /// `transfer-encoding: chunked`.
    Chunked,
    /// The end of the connection.
    UntilClose,
    /// The script writes the head itself.
    Raw,
}

/// What goes over the wire: a head, if any, and steps.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
    pub(crate) body: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Kind {
    /// JSON or a stream, as the request asks.
    Chat(Box<ChatAnswer>),
    /// Always this.
    Fixed(Response),
}

/// What a scripted backend does with one request.
#[derive(Debug, Clone)]
pub struct Script {
    kind: Kind,
    headers: Vec<(String, String)>,
    before: Vec<Step>,
    after: Vec<Step>,
    gap: Option<Duration>,
}

impl Script {
    /// A text answer, whole or (in pieces of a word) streamed, as the request asks.
    #[must_use]
    pub fn reply(text: &str) -> Self {
        Self::chat(ChatAnswer::text(text))
    }

    /// A text answer in these pieces; whole when the request does not ask for a stream.
    #[must_use]
    pub fn stream<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>) -> Self {
        Self::chat(ChatAnswer::pieces(pieces))
    }

    /// An answer, whole or streamed as the request asks.
    #[must_use]
    pub fn chat(answer: ChatAnswer) -> Self {
        Self::of(Kind::Chat(Box::new(answer)))
    }

    /// A JSON body with a status, whatever the request asks.
    #[must_use]
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::body(status, "application/json", [Step::write(body.to_string())])
    }

    /// An error in the OpenAI shape.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        let body =
            serde_json::json!({"error": {"message": message, "type": "error", "param": null, "code": null}});
        Self::json(status, &body)
    }

    /// Any body with a `content-length`.
    #[must_use]
    pub fn body(status: u16, content_type: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        Self::fixed(status, Framing::Length, content_type, steps)
    }

    /// An event stream, chunked: one chunk a step. No `[DONE]` is added.
    #[must_use]
    pub fn sse(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::fixed(200, Framing::Chunked, "text/event-stream", steps)
    }

    /// An event stream that ends with the connection.
    #[must_use]
    pub fn sse_until_close(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::fixed(200, Framing::UntilClose, "text/event-stream", steps)
    }

    /// Steps on the bare socket, status line included.
    #[must_use]
    pub fn raw(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::fixed(0, Framing::Raw, "", steps)
    }

    /// A further response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Happens before the head is sent, such as a [`Step::Wait`] or [`Step::Await`].
    #[must_use]
    pub fn first(mut self, step: Step) -> Self {
        self.before.push(step);
        self
    }

    /// Happens when all of it was sent.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.after.push(step);
        self
    }

    /// Pause between the events of a streamed [`chat`](Self::chat) answer.
    #[must_use]
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap = Some(gap);
        self
    }

    fn of(kind: Kind) -> Self {
        Self { kind, headers: Vec::new(), before: Vec::new(), after: Vec::new(), gap: None }
    }

    fn fixed(
        status: u16,
        framing: Framing,
        content_type: &str,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::of(Kind::Fixed(Response { status, headers, framing, body: steps.into_iter().collect() }))
    }

    /// Steps before the head, the response, and steps after it, for this request.
    pub(crate) fn play(self, request: &Received) -> (Vec<Step>, Response, Vec<Step>) {
        let mut response = match self.kind {
            Kind::Fixed(response) => response,
            Kind::Chat(answer) if request.wants_stream() => streamed(&answer, request, self.gap),
            Kind::Chat(answer) => Response {
                status: 200,
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                framing: Framing::Length,
                body: vec![Step::write(answer.whole(&request.model).to_string())],
            },
        };
        response.headers.extend(self.headers);
        (self.before, response, self.after)
    }
}

fn streamed(answer: &ChatAnswer, request: &Received, gap: Option<Duration>) -> Response {
    let mut body = Vec::new();
    for chunk in answer.chunks(&request.model, request.wants_usage()) {
        body.push(Step::event(&chunk.to_string()));
        body.extend(gap.map(Step::Wait));
    }
    body.push(Step::event("[DONE]"));
    Response {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
        framing: Framing::Chunked,
        body,
    }
}
