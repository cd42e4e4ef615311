//! A real `redis-server` of a test's own, where one is on the PATH.

use chorus_store::RedisPlace;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server; it ends with the test.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) port: u16,
    /// Gone with the server.
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// One that listens; `None`, which is told, where there is no `redis-server`.
    pub(crate) async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let args =
            ["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--requirepass", "sesame"];
        let server = Command::new("redis-server")
            .args(args)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = server else {
            eprintln!("skipped: no redis-server on the PATH (Debian: apt-get install redis-server)");
            return None;
        };
        let it = Self { process, port, _folder: folder };
        for _ in 0..100 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // One that does not listen by now fails the test where it is asked.
        Some(it)
    }

    /// How it is reached, for keys that begin so.
    pub(crate) fn place(&self, prefix: &str) -> RedisPlace {
        RedisPlace {
            address: format!("127.0.0.1:{}", self.port),
            database: 2,
            password: Some("sesame".to_owned()),
            tls: false,
            tls_any_certificate: false,
            retries: 0,
            key_prefix: prefix.to_owned(),
        }
    }
}
