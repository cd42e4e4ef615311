//! Questions to a Qdrant server, carried by the process's own client.
//!
//! It knows an address and a key, not what is asked. **Invariant:** no fault repeats either.

use crate::env::Env;
use chorus_spec::QdrantPlace;
use chorus_store::{QdrantAsk, QdrantFault, QdrantLink};
use chorus_upstream::{ClientOptions, Secret, Target, Timeouts, Upstream, UpstreamFault};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Why a server cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum QdrantPlaceFault {
    /// The address is none.
    #[error("the address of the Qdrant server cannot be used")]
    Address,
    /// The key is not there.
    #[error("the key of the Qdrant server: {0}")]
    Key(String),
    /// Nothing can be encrypted here.
    #[error("the client of the Qdrant server: {0}")]
    Client(String),
}

/// The way to one server, over connections of its own; nothing is sent yet.
///
/// # Errors
/// [`QdrantPlaceFault`].
pub fn link(place: &QdrantPlace, env: &Env) -> Result<Arc<dyn QdrantLink>, QdrantPlaceFault> {
    let upstream = Upstream::new(&ClientOptions::default());
    let upstream = upstream.map_err(|fault| QdrantPlaceFault::Client(fault.to_string()))?;
    Ok(Arc::new(Link::to(place, env, upstream)?))
}

/// The way to one server.
pub(crate) struct Link {
    upstream: Upstream,
    target: Target,
    limits: Timeouts,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

impl Link {
    /// To that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`QdrantPlaceFault`].
    pub(crate) fn to(place: &QdrantPlace, env: &Env, upstream: Upstream) -> Result<Self, QdrantPlaceFault> {
        let scheme = if place.tls { "https" } else { "http" };
        let mut target = Target::builder(&format!("{scheme}://{}:{}", place.host, place.port)).chat_path("/");
        if let Some(key) = &place.api_key {
            let key = env.reveal(key).map_err(|fault| QdrantPlaceFault::Key(fault.to_string()))?;
            target = target.auth("api-key", "", Secret::new(&key));
        }
        let target = target.build().map_err(|_| QdrantPlaceFault::Address)?;
        let usual = Timeouts::default();
        let limits = Timeouts { total: place.timeout, connect: usual.connect.min(place.timeout), ..usual };
        Ok(Self { upstream, target, limits })
    }

    async fn send(&self, it: QdrantAsk) -> Result<Value, QdrantFault> {
        let body = it.body.map(|body| body.to_string().into());
        let answer = self.upstream.exchange(&self.target, it.method, &it.path, body, &self.limits).await;
        let answer = answer.map_err(|fault| fault_of(&fault))?;
        serde_json::from_slice(&answer).map_err(|_| failed("its answer is not JSON"))
    }
}

impl QdrantLink for Link {
    fn ask(&self, it: QdrantAsk) -> BoxFuture<'_, Result<Value, QdrantFault>> {
        self.send(it).boxed()
    }
}

fn fault_of(fault: &UpstreamFault) -> QdrantFault {
    match fault {
        UpstreamFault::Status { status: 404, .. } => QdrantFault::NotFound,
        UpstreamFault::Status { status: 401 | 403, .. } => failed("it refused the key"),
        UpstreamFault::Status { status, .. } => {
            QdrantFault::Failed(format!("it answered with status {status}"))
        }
        UpstreamFault::Timeout { .. } => failed("it did not answer in time"),
        UpstreamFault::Connect { .. } => failed("it could not be reached"),
        _ => failed("its answer broke off"),
    }
}

fn failed(why: &str) -> QdrantFault {
    QdrantFault::Failed(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    fn place(port: u16) -> QdrantPlace {
        QdrantPlace {
            host: "127.0.0.1".to_owned(),
            port,
            api_key: Some(chorus_spec::Secret::new("${QDRANT_KEY}")),
            tls: false,
            timeout: Duration::from_secs(5),
            collection: "c".to_owned(),
        }
    }

    fn link(port: u16) -> Link {
        let env = Env::having(&[("QDRANT_KEY", "hush")]);
        Link::to(&place(port), &env, Upstream::new(&Default::default()).unwrap()).unwrap()
    }

    /// Answers one request a connection, and gives what was asked.
    async fn answered(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut read = vec![0; 4096];
            let n = socket.read(&mut read).await.unwrap();
            asked.push(String::from_utf8_lossy(&read[..n]).to_ascii_lowercase());
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    }

    fn http(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }

    fn put() -> QdrantAsk {
        let body = Some(json!({"vectors": {"size": 2, "distance": "Cosine"}}));
        QdrantAsk { method: "PUT", path: "/collections/c".to_owned(), body }
    }

    #[tokio::test]
    async fn a_question_goes_as_it_is_with_the_key_and_faults_tell_neither() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let missing = r#"{"status":{"error":"Not found: Collection `c` doesn't exist!"},"time":1e-5}"#;
        let answers = vec![
            http("200 OK", r#"{"result":true,"status":"ok","time":0.03}"#),
            http("404 Not Found", missing),
            http("401 Unauthorized", "Must provide an API key or an Authorization bearer token"),
            http("500 Internal Server Error", r#"{"status":{"error":"disk hush"}}"#),
        ];
        let server = tokio::spawn(answered(listener, answers));
        let link = link(port);
        assert_eq!(link.ask(put()).await.unwrap()["result"], true);
        let get = QdrantAsk { method: "GET", path: "/collections/c?x=1".to_owned(), body: None };
        assert_eq!(link.ask(get.clone()).await, Err(QdrantFault::NotFound));
        assert_eq!(link.ask(get.clone()).await, Err(failed("it refused the key")));
        assert_eq!(link.ask(get.clone()).await, Err(failed("it answered with status 500")));
        let asked = server.await.unwrap();
        assert!(asked[0].starts_with("put /collections/c http/1.1\r\n"), "{}", asked[0]);
        assert!(asked[0].contains("api-key: hush\r\n") && asked[0].contains(r#""distance":"cosine""#));
        assert!(asked[1].starts_with("get /collections/c?x=1 http/1.1\r\n"), "{}", asked[1]);
        let away = link.ask(get).await.unwrap_err().to_string();
        assert!(!away.contains("127.0.0.1") && !format!("{link:?}{away}").contains("hush"), "{away}");
    }

    #[test]
    fn a_key_that_is_not_set_is_named_not_shown() {
        let upstream = Upstream::new(&Default::default()).unwrap();
        let fault = Link::to(&place(1), &Env::having(&[]), upstream).unwrap_err().to_string();
        assert!(fault.contains("QDRANT_KEY"), "{fault}");
    }
}
