//! The store of workflow states against a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_redis -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should say where")]

use chorus_collab::WorkflowStates as _;
use chorus_store::{RedisPlace, RedisStates};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server of our own, which ends with the test.
struct Server(Child, u16);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// `None` where there is no `redis-server`.
    fn start(folder: &std::path::Path) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let args =
            ["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--requirepass", "sesame"];
        let server = Command::new("redis-server")
            .args(args)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(Self(server.ok()?, port))
    }

    fn states(&self, password: &str, ttl: Duration) -> RedisStates {
        let place = RedisPlace {
            address: format!("127.0.0.1:{}", self.1),
            database: 3,
            password: Some(password.to_owned()),
            tls: false,
            tls_any_certificate: false,
            retries: 3,
            key_prefix: "chorus:test:".to_owned(),
        };
        RedisStates::new(&place, ttl).unwrap()
    }
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_real_server_keeps_a_state_gives_it_once_and_forgets_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(folder.path()) else {
        eprintln!("skipped: no redis-server on the PATH (Debian: apt-get install redis-server)");
        return;
    };
    let states = server.states("sesame", Duration::from_secs(60));
    for _ in 0..100 {
        if states.put("x", "{\"é\":1}".to_owned()).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let takers = (0..8).map(|_| {
        let states = server.states("sesame", Duration::from_secs(60));
        tokio::spawn(async move { states.take("x").await.unwrap() })
    });
    let mut taken = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.extend(taker.await.unwrap());
    }
    assert_eq!(taken, ["{\"é\":1}"], "of eight connections one gets it");

    let short = server.states("sesame", Duration::from_millis(30));
    short.put("y", "z".to_owned()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(short.take("y").await.unwrap(), None, "forgotten after its time to live");

    let fault = server.states("wrong", Duration::from_secs(1)).take("x").await.unwrap_err().to_string();
    assert!(fault.contains("password"), "{fault}");
}
