//! A real `redis-server` of a test's own, where one is on the PATH.
//!
//! It knows no client. **Invariant:** it listens on this machine alone, keeps nothing, and ends with the value.

use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// How often it is looked whether the server listens, [`PAUSE`] apart.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// The server.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
    /// Gone with the server.
    _folder: TempDir,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl RedisServer {
    /// One that listens; `None`, which is told on standard error, where there is no `redis-server`.
    ///
    /// # Errors
    /// There is no folder or no port for it.
    pub async fn start(password: Option<&str>) -> io::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        let started = command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(process) = started else {
            skipped();
            return Ok(None);
        };
        let server = Self { process, port, _folder: folder };
        for _ in 0..LOOKS {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        // One that does not listen by now fails the test where it is asked.
        Ok(Some(server))
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

#[expect(clippy::print_stderr, reason = "who runs a test should hear why it did nothing")]
fn skipped() {
    eprintln!("skipped: no redis-server on the PATH (Debian: apt-get install redis-server)");
}
