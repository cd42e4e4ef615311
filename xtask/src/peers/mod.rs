//! `cargo xtask bench-peers`: Chorus against a direct connection, nginx as a plain reverse proxy, and gateways that are
//! installed; the same scripted backend, the same bodies, all in one run, in turns.
//!
//! The load comes from `wrk`; processor time from `/proc`. Both are needed, and nginx.

mod bolt;
mod instructions;
mod load;
mod sides;
mod table;
mod upstream;

use crate::{process, say};
use anyhow::{bail, ensure};
use load::{Figures, Wrk};
use sides::{Peers, Side};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Connections of the load.
const CONNECTIONS: u32 = 64;
/// Streams at once.
const STREAMS: u32 = 32;
/// How long a load lasts.
const LASTS: Duration = Duration::from_secs(4);
/// How long each side is asked before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);

/// What was measured of one side in one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// One connection.
    alone: Figures,
    /// Many connections.
    many: Figures,
    /// Processor time a request of many, in microseconds.
    request_us: f64,
    /// Processor time a streamed chunk, in microseconds.
    chunk_us: f64,
}

struct Wishes {
    rounds: usize,
    peers: Peers,
}

/// Measures, and prints the table.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let wishes = wishes(words)?;
    for program in ["nginx", "wrk"] {
        ensure!(
            process::is_installed(program),
            "{program} is not installed, and it is what Chorus is measured with (Debian: apt-get install nginx-light wrk)"
        );
    }
    let again: Vec<&str> = [&["bench-peers"], words].concat();
    if process::in_release(root, &again)?.is_some() {
        return Ok(());
    }
    let folder = process::folder(root, "bench-peers")?;
    let sides = sides::start(root, &folder, &wishes.peers)?;
    let loads: Vec<Wrk> =
        sides.iter().map(|side| Wrk::new(&folder, &side.name, &side.headers)).collect::<Result<_, _>>()?;
    say(&format!("load average {}; {} rounds", process::load_average(), wishes.rounds));
    let mut rounds: Vec<Vec<Round>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 1..=wishes.rounds {
        for ((side, wrk), rounds) in sides.iter().zip(&loads).zip(&mut rounds) {
            rounds.push(measure(wrk, side)?);
        }
        say(&format!("round {round} of {}; load average {}", wishes.rounds, process::load_average()));
    }
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    say(&table::of(&names, &rounds));
    Ok(())
}

/// Counts instructions, and prints the table.
pub(crate) fn instructions(root: &Path) -> anyhow::Result<()> {
    instructions::run(root)
}

/// Lays the code out, and says where the result is.
pub(crate) fn bolt(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    bolt::run(root, words)
}

/// This program as the scripted backend, at that port.
fn backend_at(port: u16) -> anyhow::Result<Command> {
    let mut backend = Command::new(std::env::current_exe()?);
    backend.args(["bench-upstream", &port.to_string()]);
    Ok(backend)
}

/// The scripted backend of these measurements, as a process of its own.
pub(crate) fn backend(words: &[&str]) -> anyhow::Result<()> {
    let [port] = words else { bail!("usage: cargo xtask bench-upstream PORT") };
    upstream::serve(port.parse()?)
}

fn wishes(words: &[&str]) -> anyhow::Result<Wishes> {
    let mut wishes = Wishes { rounds: 5, peers: Peers::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, words.next()) {
            ("--rounds", Some(number)) => wishes.rounds = number.parse()?,
            ("--bolt", Some(program)) => wishes.peers.bolt = Some(PathBuf::from(program)),
            ("--litellm", Some(program)) => wishes.peers.litellm = Some(PathBuf::from(program)),
            ("--portkey", Some(program)) => wishes.peers.portkey = Some(PathBuf::from(program)),
            _ => bail!(
                "usage: cargo xtask bench-peers [--rounds N] [--bolt PROGRAM] [--litellm PROGRAM] [--portkey PROGRAM]"
            ),
        }
    }
    ensure!(wishes.rounds > 0, "--rounds takes at least 1");
    Ok(wishes)
}

fn measure(wrk: &Wrk, side: &Side) -> anyhow::Result<Round> {
    wrk.whole(side.port, CONNECTIONS, WARM_UP)?;
    let alone = wrk.whole(side.port, 1, LASTS)?;
    let load = side.load()?;
    let many = wrk.whole(side.port, CONNECTIONS, LASTS)?;
    let request_us = per(load.taken()?, many.requests);
    let chunk_us = if side.streams {
        let load = side.load()?;
        let streams = wrk.streamed(side.port, STREAMS, LASTS)?;
        per(load.taken()?, streams.requests * upstream::CHUNKS)
    } else {
        f64::NAN
    };
    Ok(Round { alone, many, request_us, chunk_us })
}

/// Microseconds a piece; no number where there was none.
fn per(seconds: f64, pieces: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few million pieces")]
    let pieces = pieces as f64;
    if pieces > 0.0 { seconds * 1e6 / pieces } else { f64::NAN }
}
