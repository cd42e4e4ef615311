//! States in a Redis server, which machines share.
//!
//! A state is one key with its own time to live; `GETDEL` (Redis 6.2) takes it. It knows no configuration: address and
//! password come resolved. **Invariant:** as of the module above; and no fault repeats an address or a password.

use crate::redis_line::{self, RedisLine, RedisPlace, RedisPlaceFault};
use chorus_collab::WorkflowStates;
use chorus_collab::workflows::StateFault;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::RedisError;
use std::fmt;
use std::time::Duration;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long one command may take.
const COMMAND_TIME: Duration = Duration::from_secs(5);

/// The store. It connects when it is first used; cloning shares the connection.
#[derive(Clone)]
pub struct RedisStates {
    line: RedisLine,
    prefix: String,
    ttl: Duration,
}

impl fmt::Debug for RedisStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStates").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl RedisStates {
    /// The store at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, ttl: Duration) -> Result<Self, RedisPlaceFault> {
        let line = RedisLine::new(place, CONNECT_TIME, COMMAND_TIME)?;
        Ok(Self { line, prefix: place.key_prefix.clone(), ttl })
    }

    async fn put_now(&self, id: &str, state: &str) -> Result<(), RedisError> {
        let mut connection = self.line.connection().await?;
        let millis = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut set = redis::cmd("SET");
        set.arg(format!("{}{id}", self.prefix)).arg(state).arg("PX").arg(millis);
        set.query_async(&mut connection).await
    }

    async fn take_now(&self, id: &str) -> Result<Option<String>, RedisError> {
        let mut connection = self.line.connection().await?;
        redis::cmd("GETDEL").arg(format!("{}{id}", self.prefix)).query_async(&mut connection).await
    }
}

impl WorkflowStates for RedisStates {
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        async move { self.put_now(id, &state).await.map_err(|fault| told(&fault)) }.boxed()
    }

    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        async move { self.take_now(id).await.map_err(|fault| told(&fault)) }.boxed()
    }
}

/// The kind of a failure alone: the server's own text may name what nobody should see.
fn told(fault: &RedisError) -> StateFault {
    let kind = redis_line::kind(fault);
    tracing::warn!(kind, "the Redis store of workflow states failed");
    StateFault(format!("the Redis store failed ({kind})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::TcpListener;

    fn place(address: &str) -> RedisPlace {
        RedisPlace {
            address: address.to_owned(),
            database: 0,
            password: None,
            tls: false,
            tls_any_certificate: false,
            retries: 0,
            key_prefix: "p:".to_owned(),
        }
    }

    /// A server that keeps one value, and every command that it was sent.
    async fn one_value(listener: TcpListener, seen: tokio::sync::mpsc::UnboundedSender<Vec<String>>) {
        let (socket, _) = listener.accept().await.unwrap();
        let (read, mut write) = socket.into_split();
        let (mut read, mut kept) = (BufReader::new(read), None::<String>);
        while let Some(command) = command(&mut read).await {
            let reply = match command[0].as_str() {
                "SET" => {
                    kept = Some(command[2].clone());
                    "+OK\r\n".to_owned()
                }
                "GETDEL" => {
                    kept.take().map_or("$-1\r\n".to_owned(), |it| format!("${}\r\n{it}\r\n", it.len()))
                }
                _ => "+OK\r\n".to_owned(),
            };
            write.write_all(reply.as_bytes()).await.unwrap();
            seen.send(command).unwrap();
        }
    }

    /// One command of the Redis protocol.
    async fn command(read: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Option<Vec<String>> {
        let parts = number(read, '*').await?;
        let mut all = Vec::new();
        for _ in 0..parts {
            let length = number(read, '$').await?;
            let mut bytes = vec![0; length + 2];
            read.read_exact(&mut bytes).await.ok()?;
            bytes.truncate(length);
            all.push(String::from_utf8(bytes).unwrap());
        }
        Some(all)
    }

    async fn number(read: &mut (impl tokio::io::AsyncBufRead + Unpin), mark: char) -> Option<usize> {
        let mut line = String::new();
        read.read_line(&mut line).await.ok()?;
        line.trim().strip_prefix(mark)?.parse().ok()
    }

    #[tokio::test]
    async fn a_state_is_set_with_its_time_to_live_and_taken_by_getdel() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, mut commands) = tokio::sync::mpsc::unbounded_channel();
        let server = tokio::spawn(one_value(listener, seen));
        let states = RedisStates::new(&place(&address), Duration::from_secs(90)).unwrap();
        states.put("x", "{\"é\":1}".to_owned()).await.unwrap();
        assert_eq!(states.take("x").await.unwrap().as_deref(), Some("{\"é\":1}"));
        assert_eq!(states.take("x").await.unwrap(), None, "taken once");
        server.abort();
        let mut sent = Vec::new();
        while let Ok(command) = commands.try_recv() {
            sent.push(command.join(" "));
        }
        sent.retain(|command| !command.starts_with("CLIENT"));
        assert_eq!(sent, ["SET p:x {\"é\":1} PX 90000", "GETDEL p:x", "GETDEL p:x"]);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_a_fault_without_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let place = RedisPlace { password: Some("hunter2".to_owned()), ..place(&address) };
        let states = RedisStates::new(&place, Duration::from_secs(1)).unwrap();
        let fault = states.take("x").await.unwrap_err().to_string();
        assert!(fault.starts_with("the Redis store failed (") && !fault.contains("127.0.0.1"), "{fault}");
        assert!(!format!("{place:?}{states:?}").contains("hunter2"));
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let of = |address: &str| RedisStates::new(&place(address), Duration::from_secs(1)).is_ok();
        assert!(of("localhost:6379") && of("[::1]:7000") && of("redis"));
        assert!(!of("localhost:port"));
    }
}
