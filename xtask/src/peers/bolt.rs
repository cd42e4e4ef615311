//! `cargo xtask bolt`: a release build of Chorus whose code lies in memory as a load runs through it, by LLVM's BOLT.
//!
//! A request passes through several times as much code as the processor's first cache holds; what runs together then
//! stands together. All crates are optimised as one before (a quarter of an hour on two cores, which is why every release
//! build is not made like this). What is loaded: the rules of `bench-peers` with whole answers and streams, and
//! `endurance` with its failures, retries and clients that leave.

use super::{backend_at, load, sides};
use crate::line::{End, Line};
use crate::process::{self, Ports, Server};
use crate::say;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Connections of the load.
const LINES: usize = 16;
/// Whole answers, and streams, that each asks for.
const WHOLE: usize = 500;
const STREAMS: usize = 5;
/// How long the load with failures lasts, in minutes.
const FAILING: &str = "1";

/// Which of LLVM's versions are looked for where plain `llvm-bolt` is not there.
const VERSIONS: std::ops::Range<u32> = 15..40;

/// Builds it, and says where it is.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let cpu = match words {
        [] => None,
        ["--cpu", cpu] => Some(*cpu),
        _ => bail!("usage: cargo xtask bolt [--cpu NAME], such as x86-64-v3 or native"),
    };
    let bolt = installed()?;
    let folder = process::folder(root, "bolt")?;
    say("1 of 4: a build of all crates as one");
    let whole = build(root, cpu)?;
    let (instrumented, laid_out) = (folder.join("instrumented"), folder.join("chorus"));
    let profile = folder.join("profile");
    say("2 of 4: a build that counts what it runs");
    let mut count = Command::new(&bolt);
    count.arg(&whole).arg("-instrument").arg("-o").arg(&instrumented);
    count.arg(format!("-instrumentation-file={}", profile.display())).arg("-instrumentation-file-append-pid");
    done(&mut count, &folder)?;
    say("3 of 4: two loads that it runs");
    decisions(root, &folder, &instrumented)?;
    let failing = Command::new(std::env::current_exe()?)
        .args(["endurance", "--minutes", FAILING, "--drift", "100"])
        .env(process::GIVEN, &instrumented)
        .output()?;
    ensure!(failing.status.success(), "the load failed: {}", String::from_utf8_lossy(&failing.stdout));
    say("4 of 4: its code in the order of what ran");
    let counts = counts(&folder, &bolt)?;
    let mut lay_out = Command::new(&bolt);
    lay_out.arg(&whole).arg("-o").arg(&laid_out).arg(format!("-data={}", counts.display()));
    lay_out.args(["-reorder-blocks=ext-tsp", "-reorder-functions=cdsort"]);
    lay_out.args(["-split-functions", "-split-all-cold", "-split-eh"]);
    done(&mut lay_out, &folder)?;
    let version = Command::new(&laid_out).arg("--version").output()?;
    ensure!(version.status.success(), "it does not start");
    say(&format!(
        "{} is {}; `cargo xtask bench-peers --bolt {}` measures it beside a plain release build",
        laid_out.display(),
        String::from_utf8_lossy(&version.stdout).trim(),
        laid_out.display()
    ));
    Ok(())
}

/// The program, of whichever version.
fn installed() -> anyhow::Result<String> {
    let newest_first = VERSIONS.rev().map(|version| format!("llvm-bolt-{version}"));
    std::iter::once("llvm-bolt".to_owned())
        .chain(newest_first)
        .find(|name| process::is_installed(name))
        .context("llvm-bolt is not installed (Debian: apt-get install bolt-19, or a later version)")
}

/// How a release build differs here: one unit, with the symbols that tell BOLT where code begins.
const PROFILE: [&str; 3] =
    ["profile.release.lto='fat'", "profile.release.codegen-units=1", "profile.release.strip='none'"];

/// A build that BOLT can work on. It runs on every processor of the architecture where none is named.
fn build(root: &Path, cpu: Option<&str>) -> anyhow::Result<PathBuf> {
    let cpu = cpu.map(|cpu| format!("build.rustflags=['-Ctarget-cpu={cpu}']"));
    let built = Command::new("cargo")
        .args(["rustc", "--release", "--package", "chorus", "--bin", "chorus"])
        .args(PROFILE.into_iter().chain(cpu.as_deref()).flat_map(|change| ["--config", change]))
        // Relocations, without which no code can be moved.
        .args(["--", "-Clink-arg=-Wl,--emit-relocs"])
        .current_dir(root)
        .status()?;
    ensure!(built.success(), "the release build failed");
    Ok(process::built(root).join("release/chorus"))
}

/// Runs a step, which says much: what it said is in the folder, and in the error.
fn done(step: &mut Command, folder: &Path) -> anyhow::Result<()> {
    let output = step.output()?;
    let said = [output.stdout, output.stderr].concat();
    fs::write(folder.join("bolt.log"), &said)?;
    ensure!(output.status.success(), "llvm-bolt: {}", String::from_utf8_lossy(&said));
    Ok(())
}

/// What the loads have counted, each process in a file of its own, as one file.
fn counts(folder: &Path, bolt: &str) -> anyhow::Result<PathBuf> {
    let mut counts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "fdata") {
            counts.push(path);
        }
    }
    ensure!(counts.len() > 1, "the build that counts has written {} counts", counts.len());
    // Another program of the same version.
    let merged = Command::new(bolt.replace("llvm-bolt", "merge-fdata")).args(&counts).output()?;
    ensure!(merged.status.success(), "merge-fdata: {}", String::from_utf8_lossy(&merged.stderr));
    let all = folder.join("all.fdata");
    fs::write(&all, merged.stdout)?;
    Ok(all)
}

/// The rules of the benchmark, asked through several connections at once.
fn decisions(root: &Path, folder: &Path, chorus: &Path) -> anyhow::Result<()> {
    let port = process::free_port()?;
    let mut backend = Server::start("backend", &mut backend_at(port)?, folder)?;
    backend.until_open(port)?;
    let ports = Ports::free()?;
    let plain = sides::chorus_at(root, folder, port, ports)?;
    let mut command = sides::like(Command::new(chorus), &plain);
    let mut server = Server::start("chorus", &mut command, folder)?;
    server.until_ready(ports.management)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..LINES {
            asking.spawn(ask(ports.data));
        }
        asking.join_all().await.into_iter().collect::<anyhow::Result<()>>()
    })?;
    server.stop()
}

async fn ask(port: u16) -> anyhow::Result<()> {
    let mut line = Line::to(port);
    for at in 0..WHOLE + STREAMS {
        let told = line.ask(load::body(at >= WHOLE), false).await?;
        ensure!(told.end == End::Whole, "a request failed: {}", String::from_utf8_lossy(&told.body));
    }
    Ok(())
}
