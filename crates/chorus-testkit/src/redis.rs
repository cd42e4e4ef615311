//! A real `redis-server` of a test's own, where one is on the PATH.
//!
//! It knows no client. **Invariant:** it listens on this machine alone, keeps nothing, and ends with the value.

use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Ports that it is tried at.
const PORTS: usize = 4;

/// How often it is looked whether the server answers, [`PAUSE`] apart.
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
    /// One that answers; `None`, which is told on standard error, where there is no `redis-server`.
    ///
    /// # Errors
    /// There is no folder or no port for it, or it does not answer.
    pub async fn start(password: Option<&str>) -> io::Result<Option<Self>> {
        for _ in 0..PORTS {
            let Some(mut server) = Self::started(password)? else {
                skipped();
                return Ok(None);
            };
            for _ in 0..LOOKS {
                // Another program has its port: it was free a moment ago.
                if server.process.try_wait()?.is_some() {
                    break;
                }
                if answers(server.port).await.is_ok() {
                    return Ok(Some(server));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Err(io::Error::other("the redis-server does not answer"))
    }

    /// One that has just been started; `None` where there is none.
    fn started(password: Option<&str>) -> io::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        let started = command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(started.ok().map(|process| Self { process, port, _folder: folder }))
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

/// That what listens there is a Redis server: it answers also whoever has not said the password.
async fn answers(port: u16) -> io::Result<()> {
    let mut line = TcpStream::connect(("127.0.0.1", port)).await?;
    line.write_all(b"PING\r\n").await?;
    // A connection that has met itself, as one to a free port may, would read its own words.
    match line.read_u8().await? {
        b'+' | b'-' => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[expect(clippy::print_stderr, reason = "who runs a test should hear why it did nothing")]
fn skipped() {
    eprintln!("skipped: no redis-server on the PATH (Debian: apt-get install redis-server)");
}
