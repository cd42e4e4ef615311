//! `cargo xtask crash`: Chorus is killed under load, over and over on the same files; after each kill they open, hold every
//! record that anybody else had seen, and the workflow that waited for a tool goes on.
//!
//! A record is acknowledged once its transaction is committed, which is when another process can read it; that is at most
//! a few milliseconds after the answer, not before it. So an answer of the last moment may have no record: how old the
//! oldest such answer was is printed, and bounded.

mod load;
mod workflow;

use crate::process::{self, Ports, Server};
use crate::records::Records;
use crate::say;
use anyhow::{bail, ensure};
use chorus_testkit::ScriptedUpstream;
use load::Load;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is served.
const CONFIG: &str = include_str!("crash.yaml");
/// Time of load before a kill: the shortest, and by how much it grows from one kill to the next, up to eight times.
const SHORTEST: Duration = Duration::from_millis(250);
const STEP: Duration = Duration::from_millis(70);
/// How long after its answer a record may be unacknowledged on a machine that does other things too.
const LATEST: Duration = Duration::from_secs(1);

/// What was found over all kills.
#[derive(Default)]
struct Found {
    answers: usize,
    acknowledged: usize,
    /// Answers of the last moment without a record, and how long before the kill the earliest came.
    unrecorded: usize,
    earliest: Duration,
    resumed: usize,
}

/// Runs it.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let times: usize = match words {
        [] => 50,
        ["--times", times] => times.parse()?,
        _ => bail!("usage: cargo xtask crash [--times N]"),
    };
    let again: Vec<&str> = [&["crash"], words].concat();
    if process::in_release(root, &again)?.is_some() {
        return Ok(());
    }
    let folder = process::folder(root, "crash")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let found = runtime.block_on(crash(root, &folder, times))?;
    say(&format!(
        "{times} kills: the files opened and were sound each time; {} answers; {} records had been acknowledged and none \
         is lost; {} answers of the last moment have no record, the earliest {} ms before its kill; {} workflows went on",
        found.answers,
        found.acknowledged,
        found.unrecorded,
        found.earliest.as_millis(),
        found.resumed
    ));
    Ok(())
}

async fn crash(root: &Path, folder: &Path, times: usize) -> anyhow::Result<Found> {
    let upstream = ScriptedUpstream::start().await?;
    upstream.forget();
    upstream.otherwise(workflow::script);
    let config = folder.join("crash.yaml");
    std::fs::write(&config, CONFIG.replace("WAITING", &folder.join("waiting").display().to_string()))?;
    let house = House { root, folder, config, upstream: upstream.base_url() };
    let (mut found, mut acknowledged, mut waiting) = (Found::default(), BTreeSet::new(), None);
    for time in 0..=times {
        let (mut chorus, ports) = house.serve()?;
        if let Some(paused) = waiting.take() {
            workflow::resume(ports.data, paused).await?;
            found.resumed += 1;
        }
        house.sound(&acknowledged)?;
        if time == times {
            chorus.stop()?;
            break;
        }
        waiting = Some(workflow::begin(ports.data).await?);
        let load = Load::start(ports.data, &house.records());
        tokio::time::sleep(SHORTEST + STEP * u32::try_from(time % 8)?).await;
        let killed = Instant::now();
        chorus.kill()?;
        let (answered, committed) = load.end().await?;
        found.answers += answered.len();
        acknowledged.extend(committed);
        house.late(&answered, killed, &mut found)?;
    }
    found.acknowledged = acknowledged.len();
    Ok(found)
}

/// What all rounds share.
struct House<'a> {
    root: &'a Path,
    folder: &'a Path,
    config: PathBuf,
    upstream: String,
}

impl House<'_> {
    fn records(&self) -> PathBuf {
        self.folder.join("runs.sqlite")
    }

    fn serve(&self) -> anyhow::Result<(Server, Ports)> {
        let ports = Ports::free()?;
        let mut command = process::chorus(self.root, &self.config, self.folder, ports);
        command.env("UP", &self.upstream);
        let mut chorus = Server::start("chorus", &mut command, self.folder)?;
        chorus.until_ready(ports.management)?;
        Ok((chorus, ports))
    }

    /// The file of records is whole, and everything that was acknowledged is in it.
    fn sound(&self, acknowledged: &BTreeSet<String>) -> anyhow::Result<()> {
        let records = Records::open(&self.records())?;
        let check = records.check()?;
        ensure!(check == "ok", "the file of records is damaged: {check}");
        let kept: BTreeSet<String> = records.ids_after(0)?.0.into_iter().collect();
        let lost = acknowledged.difference(&kept).count();
        ensure!(lost == 0, "{lost} records that had been acknowledged are gone");
        Ok(())
    }

    /// Answers that came so late before the kill that their record was not acknowledged.
    fn late(&self, answered: &[(String, Instant)], killed: Instant, found: &mut Found) -> anyhow::Result<()> {
        let kept: BTreeSet<String> = Records::open(&self.records())?.ids_after(0)?.0.into_iter().collect();
        for (run, at) in answered.iter().filter(|(run, _)| !kept.contains(run)) {
            let before = killed.saturating_duration_since(*at);
            ensure!(
                before <= LATEST,
                "{run} was answered {} ms before the kill and has no record",
                before.as_millis()
            );
            found.unrecorded += 1;
            found.earliest = found.earliest.max(before);
        }
        Ok(())
    }
}
