//! `cargo xtask bench-instructions`: how many instructions Chorus executes for a request and for a streamed chunk, as
//! valgrind counts them: the same to a hundredth, whatever else the machine does.
//!
//! All threads count, the log and the records among them; the kernel does not. Requests come one after the other, so that
//! transactions of records are small ones.

use super::{backend_at, load, sides, upstream};
use crate::line::{End, Line};
use crate::process::{self, Ports, Server};
use crate::say;
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Requests before it counts.
const WARM_UP: u64 = 50;
/// Whole answers that are counted.
const WHOLE: u64 = 200;
/// Streams that are counted.
const STREAMS: u64 = 3;
/// How long records and the log's lines may take to be written.
const SETTLES: Duration = Duration::from_millis(700);

/// Counts, and prints the table.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    for program in ["valgrind", "callgrind_control"] {
        ensure!(
            process::is_installed(program),
            "{program} is not installed (Debian: apt-get install valgrind)"
        );
    }
    if process::in_release(root, &["bench-instructions"])?.is_some() {
        return Ok(());
    }
    let folder = process::folder(root, "bench-instructions")?;
    let port = process::free_port()?;
    let mut backend = Server::start("backend", &mut backend_at(port)?, &folder)?;
    backend.until_open(port)?;
    let whole = counted(root, &folder.join("whole"), port, false)?;
    let streamed = counted(root, &folder.join("streamed"), port, true)?;
    say(&format!(
        "| what | instructions |\n|---|---|\n| a request of 3 KiB, answered whole | {} |\n| a streamed chunk, with its share of the request | {} |",
        whole / WHOLE,
        streamed / (STREAMS * upstream::CHUNKS)
    ));
    Ok(())
}

/// All instructions of the requests that count.
fn counted(root: &Path, folder: &Path, backend: u16, streams: bool) -> anyhow::Result<u64> {
    fs::create_dir_all(folder)?;
    let ports = Ports::free()?;
    let plain = sides::chorus_at(root, folder, backend, ports)?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]);
    command.arg(plain.get_program());
    let mut server = Server::start("chorus", &mut sides::like(command, &plain), folder)?;
    server.until_ready(ports.management)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut line = Line::to(ports.data);
    let ask = async |line: &mut Line, times: u64| -> anyhow::Result<()> {
        for _ in 0..times {
            let told = line.ask(load::body(streams), false).await?;
            ensure!(told.end == End::Whole, "a request failed: {}", String::from_utf8_lossy(&told.body));
        }
        tokio::time::sleep(SETTLES).await;
        Ok(())
    };
    runtime.block_on(async {
        let (warm_up, times) = if streams { (STREAMS, STREAMS) } else { (WARM_UP, WHOLE) };
        ask(&mut line, warm_up).await?;
        switched(&server, "on")?;
        ask(&mut line, times).await?;
        switched(&server, "off")
    })?;
    drop(line);
    server.stop()?;
    let said = server.said();
    let total =
        said.lines().find_map(|line| line.split_once("Collected :")).context("valgrind counted nothing")?;
    Ok(total.1.trim().parse()?)
}

/// Begins to count, or ends.
fn switched(server: &Server, to: &str) -> anyhow::Result<()> {
    let done = Command::new("callgrind_control").args(["-i", to, &server.id().to_string()]).output()?;
    ensure!(done.status.success(), "callgrind_control: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
