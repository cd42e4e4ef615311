//! `cargo xtask endurance`: Chorus under load at 70% of its peak, with a backend that fails and clients that leave; and
//! what it must have kept by the end: its memory, its sockets, its records, its books.

mod ask;
mod backend;
mod clients;
mod verdict;

use crate::process::{self, Ports, Server};
use crate::say;
use anyhow::{bail, ensure};
use backend::Backend;
use clients::{Pace, Seen};
use std::path::{Path, PathBuf};
use std::time::Duration;
use verdict::Memory;

/// What is served.
const CONFIG: &str = include_str!("endurance.yaml");
/// How long the peak is looked for.
const PEAK: Duration = Duration::from_secs(8);
/// Clients that look for it.
const AT_PEAK: usize = 48;
/// Clients of the load itself: enough that those whose answer stalls do not slow down the others.
const CLIENTS: usize = 192;
/// How much of the peak the load is.
const SHARE: f64 = 0.7;
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_secs(1);
/// Idle connections are kept for 4 s; then there are none.
const COOLING: Duration = Duration::from_secs(8);

/// Runs it.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let (mut minutes, mut flat) = (2.0, verdict::FLAT);
    for pair in words.chunks(2) {
        match pair {
            ["--minutes", number] => minutes = number.parse()?,
            ["--drift", percent] => flat = percent.parse()?,
            _ => bail!("usage: cargo xtask endurance [--minutes N] [--drift PERCENT]"),
        }
    }
    ensure!(minutes >= 1.0, "--minutes takes at least 1: memory has to warm up");
    let again: Vec<&str> = [&["endurance"], words].concat();
    if process::in_release(root, &again)?.is_some() {
        return Ok(());
    }
    let folder = process::folder(root, "endurance")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(endure(root, &folder, Duration::from_secs_f64(minutes * 60.0), flat))
}

async fn endure(root: &Path, folder: &Path, lasts: Duration, flat: f64) -> anyhow::Result<()> {
    let backend = Backend::start().await?;
    let (chorus, ports) = serve(root, folder, &backend.scripts.base_url())?;
    // One request opens what is opened once, such as the files of the records.
    let mut seen = clients::ask(ports.data, Pace::new(1, None, Duration::from_millis(200), 0)).await;
    tokio::time::sleep(COOLING).await;
    let base = process::open_files(chorus.id())?;
    let first = seen.asked().next_multiple_of(1000);
    let peak = clients::ask(ports.data, Pace::new(AT_PEAK, None, PEAK, first)).await;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand requests")]
    let rate = peak.asked() as f64 / PEAK.as_secs_f64();
    let first = (first + peak.asked()).next_multiple_of(1000) + 1000;
    seen.add(peak);
    say(&format!(
        "load average {}; peak {rate:.0} requests/s; {:.0} a second for {} s",
        process::load_average(),
        rate * SHARE,
        lasts.as_secs()
    ));
    let watching = tokio::spawn(watch(chorus.id(), lasts));
    seen.add(clients::ask(ports.data, Pace::new(CLIENTS, Some(rate * SHARE), lasts, first)).await);
    let memory = Memory { looks: watching.await??, flat };
    tokio::time::sleep(COOLING).await;
    let files = (base, process::open_files(chorus.id())?);
    let connections = backend.scripts.open_connections();
    finish(chorus, folder, &seen, &backend, &memory, files, connections)
}

/// Stops it, so that every record is written, and judges.
fn finish(
    mut chorus: Server,
    folder: &Path,
    seen: &Seen,
    backend: &Backend,
    memory: &Memory,
    files: (usize, usize),
    connections: usize,
) -> anyhow::Result<()> {
    chorus.stop()?;
    let kept = verdict::Books::read(&folder.join("runs.sqlite"), seen)?;
    verdict::of(seen, &kept, backend.charged(), memory, files, connections)
}

fn serve(root: &Path, folder: &Path, upstream: &str) -> anyhow::Result<(Server, Ports)> {
    let config: PathBuf = folder.join("endurance.yaml");
    std::fs::write(&config, CONFIG)?;
    let ports = Ports::free()?;
    let mut command = process::chorus(root, &config, folder, ports);
    command.env("UP", upstream);
    let mut chorus = Server::start("chorus", &mut command, folder)?;
    chorus.until_ready(ports.management)?;
    Ok((chorus, ports))
}

/// The memory over the run, a look a second.
async fn watch(id: u32, lasts: Duration) -> anyhow::Result<Vec<u64>> {
    let began = tokio::time::Instant::now();
    let mut looks = Vec::new();
    while began.elapsed() < lasts {
        tokio::time::sleep(LOOK).await;
        looks.push(process::resident_bytes(id)?);
    }
    Ok(looks)
}

impl Pace {
    fn new(clients: usize, rate: Option<f64>, lasts: Duration, first: u64) -> Self {
        Self { clients, rate, lasts, first }
    }
}
