//! A connection to a database: opened when it is first used, shared, opened again when it is lost.
//!
//! Many questions are on their way at once; the server answers them in turn. **Invariant:** whoever gets a connection finds
//! the tables of the present schema; while the server is away, nobody waits for it longer than [`CONNECT_TIME`], and at most
//! one attempt is made a [`PAUSE`].

use super::{PostgresFault, PostgresPlace, schema, tls};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection may take, tables included: a request may wait for it.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long after a failure the next attempt is made.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Silence after which a connection is asked whether it lives.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The connection.
pub(crate) struct PostgresLine {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Arc<Client>>,
    failed: Option<(Instant, PostgresFault)>,
}

impl PostgresLine {
    /// To that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`PostgresFault::Tls`].
    pub(crate) fn new(place: &PostgresPlace) -> Result<Self, PostgresFault> {
        let tls = tls::connector(&place.tls)?;
        let mut config = Config::new();
        config
            .host(&place.host)
            .port(place.port)
            .dbname(&place.database)
            .user(&place.user)
            .application_name("chorus")
            .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable })
            .connect_timeout(CONNECT_TIME)
            .keepalives_idle(KEEPALIVE)
            .tcp_user_timeout(ANSWER_TIME);
        if let Some(password) = &place.password {
            config.password(password);
        }
        Ok(Self { config, tls, state: Mutex::default() })
    }

    /// The connection itself.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(crate) async fn client(&self) -> Result<Arc<Client>, PostgresFault> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        if let Some((_, fault)) = state.failed.as_ref().filter(|(since, _)| since.elapsed() < PAUSE) {
            return Err(fault.clone());
        }
        match timeout(CONNECT_TIME, self.connect()).await.unwrap_or(Err(PostgresFault::Slow)) {
            Ok(client) => {
                let client = Arc::new(client);
                *state = State { client: Some(Arc::clone(&client)), failed: None };
                Ok(client)
            }
            Err(fault) => {
                *state = State { client: None, failed: Some((Instant::now(), fault.clone())) };
                Err(fault)
            }
        }
    }

    async fn connect(&self) -> Result<Client, PostgresFault> {
        // The second half moves the bytes; it ends with the connection, whose end the client tells.
        let mut client = match &self.tls {
            Some(tls) => {
                let (client, moving) = self.config.connect(tls.clone()).await?;
                tokio::spawn(moving);
                client
            }
            None => {
                let (client, moving) = self.config.connect(NoTls).await?;
                tokio::spawn(moving);
                client
            }
        };
        schema::migrate(&mut client).await?;
        Ok(client)
    }

    /// An answer, if it comes in time. A connection that is too slow is given up: it may be a dead one.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(crate) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, PostgresFault> {
        match timeout(ANSWER_TIME, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.state.lock().await.client = None;
                Err(PostgresFault::Slow)
            }
        }
    }
}
