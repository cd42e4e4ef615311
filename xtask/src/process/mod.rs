//! Servers that a chore starts as processes of their own: started, waited for, measured, and stopped.
//!
//! It knows no server. **Invariant:** a process that was started here is gone when its [`Server`] is.

mod measure;

pub(crate) use measure::{Load, load_average, open_files, resident_bytes};

use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take to listen, and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server.
pub(crate) struct Server {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Server {
    /// Starts it; what it says goes to `NAME.log` in that folder.
    pub(crate) fn start(name: &str, command: &mut Command, folder: &Path) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        let output = Stdio::from(file.try_clone()?);
        let command = command.stdin(Stdio::null()).stdout(output).stderr(file);
        let child = command.spawn().with_context(|| format!("{name} does not start"))?;
        Ok(Self { child, name: name.to_owned(), log })
    }

    /// Waits until it listens there.
    pub(crate) fn until_open(&mut self, port: u16) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.child.try_wait()?.is_some();
            if ended || began.elapsed() > PATIENCE {
                bail!("{} does not listen; it said:\n{}", self.name, self.said());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until it serves: what listens there says that it is ready. It listens before its stores are open.
    pub(crate) fn until_ready(&mut self, management: u16) -> anyhow::Result<()> {
        self.until_open(management)?;
        let mut line = TcpStream::connect(("127.0.0.1", management))?;
        line.set_read_timeout(Some(PATIENCE))?;
        line.write_all(b"GET /ready HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        line.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.0 200"), "{} is not ready: {answer}\n{}", self.name, self.said());
        Ok(())
    }

    /// What it has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a kill from outside does.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let asked = Command::new("kill").arg(self.id().to_string()).status()?;
        ensure!(asked.success(), "{} cannot be told to stop", self.name);
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        self.kill()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure; the process was asked first, so that its own children end too.
        let _ = self.stop();
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether a program of that name can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|found| found.status.success())
}

/// A folder of this run below the target folder; emptied first.
pub(crate) fn folder(root: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let folder = built(root).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A server that is taken as it is, in place of a release build: what holds of it must hold of a debug build too, which CI
/// has already.
pub(crate) const GIVEN: &str = "CHORUS";

/// Where cargo builds.
pub(crate) fn built(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs the same chore again as a release build, next to a release build of the server; `None` where this is one, or where
/// `CHORUS` names a server. Debug builds would measure themselves.
pub(crate) fn in_release(root: &Path, words: &[&str]) -> anyhow::Result<Option<()>> {
    if !cfg!(debug_assertions) || std::env::var_os(GIVEN).is_some() {
        return Ok(None);
    }
    let done = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "chorus", "--package", "xtask"])
        .current_dir(root)
        .status()?;
    ensure!(done.success(), "the release build failed");
    let ended = Command::new(built(root).join("release/xtask")).args(words).current_dir(root).status()?;
    ensure!(ended.success(), "it failed; see above");
    Ok(Some(()))
}

/// `chorus serve` of a release build, or of `CHORUS`, with its state in that folder.
pub(crate) fn chorus(root: &Path, config: &Path, folder: &Path, ports: Ports) -> Command {
    let given = std::env::var_os(GIVEN).map(PathBuf::from);
    let mut command = Command::new(given.unwrap_or_else(|| built(root).join("release/chorus")));
    command.arg("serve").arg(config);
    command.args(["--port", &ports.data.to_string(), "--management-port", &ports.management.to_string()]);
    command.args(["--no-watch", "--grace", "2"]);
    command.arg("--runs-file").arg(folder.join("runs.sqlite"));
    command.arg("--keys-file").arg(folder.join("keys.sqlite"));
    command
}

/// Where a Chorus listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) data: u16,
    pub(crate) management: u16,
}

impl Ports {
    /// Two free ones.
    pub(crate) fn free() -> anyhow::Result<Self> {
        Ok(Self { data: free_port()?, management: free_port()? })
    }
}
