//! One connection of a client that asks Chorus over and over, and what it was told.
//!
//! It knows chat completions. **Invariant:** an answer counts as whole only when its end was read.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest time of one request: much longer than any time limit of the server that is asked.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection; it is opened when it is needed.
pub(crate) struct Line {
    port: u16,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Told {
    /// The run's id.
    pub(crate) run: String,
    pub(crate) end: End,
    pub(crate) body: Vec<u8>,
}

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With all of it.
    Whole,
    /// With an error: a status, or an event of the stream.
    Refused,
    /// We hung up after the first piece.
    Left,
}

/// The totals of an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
}

impl Line {
    pub(crate) fn to(port: u16) -> Self {
        Self { port, sender: None }
    }

    /// Asks, and reads the answer; with `leaves` only its first piece, and then hangs up.
    pub(crate) async fn ask(&mut self, body: String, leaves: bool) -> anyhow::Result<Told> {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => connect(self.port).await?,
        };
        let told = tokio::time::timeout(PATIENCE, exchange(&mut sender, body, leaves)).await;
        let told = told.context("no answer in time")??;
        if told.end != End::Left {
            self.sender = Some(sender);
        }
        Ok(told)
    }
}

async fn connect(port: u16) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn exchange(sender: &mut SendRequest<Full<Bytes>>, body: String, leaves: bool) -> anyhow::Result<Told> {
    sender.ready().await?;
    let request = Request::post("/v1/chat/completions").header("host", "chorus");
    let request = request.header("content-type", "application/json").body(Full::new(body.into()))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let run = header("x-vsr-replay-id").context("an answer without a run")?.to_owned();
    let streams = header("content-type").is_some_and(|value| value.starts_with("text/event-stream"));
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        body.extend_from_slice(frame?.data_ref().map(|data| &data[..]).unwrap_or_default());
        if leaves {
            return Ok(Told { run, end: End::Left, body });
        }
    }
    ensure!(!streams || body.ends_with(b"\n\n"), "a stream broke off amid an event");
    let whole = status.is_success() && (!streams || body.ends_with(b"data: [DONE]\n\n"));
    Ok(Told { run, end: if whole { End::Whole } else { End::Refused }, body })
}

impl Told {
    /// The totals that the answer names last.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let (_, rest) = text.rsplit_once("\"usage\":{")?;
        let rest = format!("{{{rest}");
        serde_json::Deserializer::from_str(&rest).into_iter().next()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_totals_count() {
        let usage =
            r#"{"usage":null}{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}} [DONE]"#;
        let told = Told { run: String::new(), end: End::Whole, body: usage.as_bytes().to_vec() };
        assert_eq!(told.usage(), Some(Usage { prompt_tokens: 3, completion_tokens: 4 }));
    }
}
