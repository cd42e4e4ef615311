//! What a process takes: processor time, memory, open files; from `/proc`, so on Linux only.

use anyhow::Context;
use std::fs;

/// Clock ticks a second of `/proc/PID/stat`; the kernel's interface to programs has had 100 on every architecture that
/// we build for. Source: proc(5), `USER_HZ`.
const TICKS: f64 = 100.0;

/// Processor time of a process and its children, in seconds, as a difference between two looks.
pub(crate) struct Load {
    id: u32,
    before: f64,
}

impl Load {
    /// From now on.
    pub(crate) fn of(id: u32) -> anyhow::Result<Self> {
        Ok(Self { id, before: cpu_seconds(id)? })
    }

    /// Until now, in seconds.
    pub(crate) fn taken(&self) -> anyhow::Result<f64> {
        Ok(cpu_seconds(self.id)? - self.before)
    }
}

/// Processor time of a process and of its living children so far, in seconds; user and system together.
fn cpu_seconds(id: u32) -> anyhow::Result<f64> {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(Stat { parent, ticks: own }) = stat(&entry.file_name().to_string_lossy()) else { continue };
        if entry.file_name().to_string_lossy() == id.to_string() || parent == id {
            ticks += own;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few million ticks")]
    Ok(ticks as f64 / TICKS)
}

struct Stat {
    parent: u32,
    ticks: u64,
}

/// Fields 4, 14 and 15; the second is a name in brackets, which may hold anything. Source: proc(5).
fn stat(id: &str) -> Option<Stat> {
    if !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat { parent: u32::try_from(number(1)?).ok()?, ticks: number(11)? + number(12)? })
}

/// Memory of a process that is in use, in bytes (`VmRSS`).
pub(crate) fn resident_bytes(id: u32) -> anyhow::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

/// Open files of a process, sockets among them.
pub(crate) fn open_files(id: u32) -> anyhow::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{id}/fd"))?.count())
}

/// What else the machine is doing.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
