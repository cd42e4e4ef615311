//! JSON-RPC over the streamable HTTP of the Model Context Protocol: one message a POST, answered by JSON or by events.
//!
//! It knows messages and the session that the server gives, no method. Source: Model Context Protocol 2025-06-18,
//! transports, "Sending Messages to the Server" and "Session Management".

use crate::client::Upstream;
use crate::fault::UpstreamFault;
use crate::seam::Sent;
use crate::target::{Target, Timeouts};
use bytes::Bytes;
use chorus_wire::SseDecoder;
use serde_json::Value;

/// The server names a session by this header, and wants it back.
const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";

/// A conversation with one server. Dropping it leaves the session to the server's own time limit.
pub struct Conversation {
    upstream: Upstream,
    target: Target,
    limits: Timeouts,
    revision: &'static str,
    session: Option<String>,
}

impl Upstream {
    /// A conversation with the server there, in that revision of the protocol.
    #[must_use]
    pub fn converse(&self, target: &Target, revision: &'static str, limits: Timeouts) -> Conversation {
        let (upstream, target) = (self.clone(), target.clone());
        Conversation { upstream, target, limits, revision, session: None }
    }
}

impl Conversation {
    /// Sends a request and gives the response of its `id`.
    ///
    /// # Errors
    /// [`UpstreamFault`], also where no response came.
    pub async fn ask(&mut self, message: &Value) -> Result<Value, UpstreamFault> {
        let answer = self.send(message).await?;
        let wanted = message.get("id");
        let messages = read(&answer)?;
        let response = messages.into_iter().find(|it| it.get("id") == wanted && it.get("method").is_none());
        response.ok_or_else(|| UpstreamFault::malformed("no response to the request came"))
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`UpstreamFault`].
    pub async fn tell(&mut self, message: &Value) -> Result<(), UpstreamFault> {
        self.send(message).await.map(drop)
    }

    async fn send(&mut self, message: &Value) -> Result<Bytes, UpstreamFault> {
        let mut headers = vec![(REVISION.to_owned(), self.revision.to_owned())];
        headers.extend(self.session.iter().map(|session| (SESSION.to_owned(), session.clone())));
        let body = Bytes::from(message.to_string());
        let sent = Sent { body, path: None, accept: "application/json, text/event-stream" };
        let (head, mut body) =
            self.upstream.post_for_head(&self.target, sent, &headers, &self.limits).await?;
        let given = head.get(SESSION).and_then(|value| value.to_str().ok());
        self.session = given.map(str::to_owned).or_else(|| self.session.take());
        body.collect().await
    }
}

/// The messages of an answer: one JSON value, a list of them, or one an event.
fn read(answer: &[u8]) -> Result<Vec<Value>, UpstreamFault> {
    if let Ok(value) = serde_json::from_slice::<Value>(answer) {
        return Ok(match value {
            Value::Array(all) => all,
            one => vec![one],
        });
    }
    let mut decoder = SseDecoder::new(chorus_wire::sse::MAX_EVENT_BYTES);
    let mut events = Vec::new();
    decoder.push(answer, &mut events).map_err(UpstreamFault::malformed)?;
    events.extend(decoder.finish().map_err(UpstreamFault::malformed)?);
    Ok(events.iter().filter_map(|event| serde_json::from_slice(event.data.as_ref()).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_json_or_events() {
        let one = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(read(one).unwrap().len(), 1);
        let events = b"event: message\ndata: {\"id\":1}\n\nevent: message\ndata: {\"id\":2}\n\n";
        assert_eq!(read(events).unwrap()[1]["id"], 2);
        assert!(read(b"").unwrap().is_empty());
    }
}
