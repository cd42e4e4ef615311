//! A connection to a Redis server: opened when it is first used, shared, opened again when it is lost.
//!
//! It knows no configuration: address and password come resolved. **Invariant:** no fault repeats an address or a password.

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, ConnectionAddr, ErrorKind, IntoConnectionInfo as _, RedisConnectionInfo, RedisError};
use std::fmt;
use std::time::Duration;
use tokio::sync::OnceCell;

/// The port where an address names none.
const PORT: u16 = 6379;

/// How long a connection may take, where no request waits for it.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long one step may take there, its connection included.
pub(crate) const STEP_TIME: Duration = Duration::from_secs(10);
/// Longest time to live: ten years. The server's clock plus this is far from any overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A time to live as a server takes it: in milliseconds, at least one.
pub(crate) fn ttl_ms(ttl: Duration) -> u64 {
    u64::try_from(ttl.min(LONGEST).as_millis()).unwrap_or(u64::MAX).max(1)
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisPlace {
    /// `host:port`.
    pub address: String,
    /// The database's number.
    pub database: i64,
    /// The password; never shown.
    pub password: Option<String>,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whether any certificate will do.
    pub tls_any_certificate: bool,
    /// How often a lost connection is tried again.
    pub retries: usize,
    /// What the names of keys begin with.
    pub key_prefix: String,
}

impl fmt::Debug for RedisPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisPlace").field("database", &self.database).finish_non_exhaustive()
    }
}

/// Why a place cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of the Redis server cannot be used")]
pub struct RedisPlaceFault;

/// Why a server did not do what it was asked: the kind of its failure alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedisFault(pub(crate) &'static str);

impl RedisFault {
    /// Whether the server was not there, which waiting may mend.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        [LATE, UNREACHABLE].contains(&self.0)
    }
}

impl From<&RedisError> for RedisFault {
    fn from(fault: &RedisError) -> Self {
        Self(kind(fault))
    }
}

/// The connection.
#[derive(Clone)]
pub(crate) struct RedisLine {
    client: Client,
    retries: usize,
    connect_time: Duration,
    command_time: Duration,
    connection: OnceCell<ConnectionManager>,
}

impl RedisLine {
    /// To that place; nothing is sent yet. The times are those that a connection, and one command, may take.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub(crate) fn new(
        place: &RedisPlace,
        connect_time: Duration,
        command_time: Duration,
    ) -> Result<Self, RedisPlaceFault> {
        let (host, port) = place.address.rsplit_once(':').unwrap_or((&place.address, ""));
        let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| RedisPlaceFault)? };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = if place.tls {
            ConnectionAddr::TcpTls { host, port, insecure: place.tls_any_certificate, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let mut who = RedisConnectionInfo::default().set_db(place.database);
        if let Some(password) = &place.password {
            who = who.set_password(password);
        }
        let info = address.into_connection_info().map_err(|_| RedisPlaceFault)?.set_redis_settings(who);
        let client = Client::open(info).map_err(|_| RedisPlaceFault)?;
        let connection = OnceCell::new();
        Ok(Self { client, retries: place.retries, connect_time, command_time, connection })
    }

    /// The connection itself.
    ///
    /// # Errors
    /// What the client says.
    pub(crate) async fn connection(&self) -> Result<ConnectionManager, RedisError> {
        let connect = || async {
            let config = ConnectionManagerConfig::new()
                .set_number_of_retries(self.retries)
                .set_connection_timeout(Some(self.connect_time))
                .set_response_timeout(Some(self.command_time));
            self.client.get_connection_manager_with_config(config).await
        };
        self.connection.get_or_try_init(connect).await.cloned()
    }

    /// The answer to a question, within the time of one command, its connection included.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub(crate) async fn answer<T>(
        &self,
        ask: impl AsyncFnOnce(&mut ConnectionManager) -> Result<T, RedisError>,
    ) -> Result<T, RedisFault> {
        let asked = async {
            let mut connection = self.connection().await?;
            ask(&mut connection).await
        };
        match tokio::time::timeout(self.command_time, asked).await {
            Ok(answer) => answer.map_err(|fault| RedisFault::from(&fault)),
            Err(_) => Err(RedisFault(LATE)),
        }
    }
}

const LATE: &str = "it did not answer in time";
const UNREACHABLE: &str = "it could not be reached";

/// The kind of a failure alone: the server's own text may name what nobody should see.
pub(crate) fn kind(fault: &RedisError) -> &'static str {
    match fault.kind() {
        ErrorKind::AuthenticationFailed => "it refused the password",
        _ if fault.is_timeout() => LATE,
        _ if fault.is_io_error() => UNREACHABLE,
        _ => "it did not do what it was asked",
    }
}
