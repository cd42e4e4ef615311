//! A real `redis-server` of a test's own, where one is on the PATH, as the stores reach it.

use chorus_store::RedisPlace;
use chorus_testkit::RedisServer;

const PASSWORD: &str = "sesame";

/// The server; it ends with the test.
pub(crate) struct Server(pub(crate) RedisServer);

impl Server {
    /// One that listens; `None`, which is told, where there is no `redis-server`.
    pub(crate) async fn start() -> Option<Self> {
        RedisServer::start(Some(PASSWORD)).await.unwrap().map(Self)
    }

    /// How it is reached, for keys that begin so.
    pub(crate) fn place(&self, prefix: &str) -> RedisPlace {
        RedisPlace {
            address: format!("127.0.0.1:{}", self.0.port()),
            database: 2,
            password: Some(PASSWORD.to_owned()),
            tls: false,
            tls_any_certificate: false,
            retries: 0,
            key_prefix: prefix.to_owned(),
        }
    }
}
