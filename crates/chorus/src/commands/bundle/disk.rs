//! Bundles and sources on disk.
//!
//! It knows files, and nothing of what they say. **Invariant:** a bundle is written only when it is whole, its blobs
//! before the index that names them; no link is followed and no file is read beyond its bound.

use super::builtin;
use crate::terminal::note;
use anyhow::{Context, bail};
use chorus_bundle::attest::{self, Attached};
use chorus_bundle::verify::{Blobs, MAX_ASSET_BYTES, MAX_BUNDLE_BYTES, MAX_LAYERS};
use chorus_bundle::{Bundle, BundleFault, Files, archive, source, verify};
use chorus_spec::Severity;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The file that makes a directory a layout.
const LAYOUT: &str = "oci-layout";
/// What tar adds to a bundle, at most: a header and padding a file, and the end.
const ARCHIVE_SLACK: u64 = (MAX_LAYERS as u64 + 16) * 1024;

/// A layout in a directory.
struct Directory(PathBuf);

impl Blobs for Directory {
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, BundleFault> {
        let missing = || BundleFault::Missing(name.to_owned());
        let path = self.0.join(name);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
        let file = fs::File::open(&path).ok().filter(|_| is_file).ok_or_else(missing)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| missing())?;
        if bytes.len() as u64 > most {
            return Err(BundleFault::TooLarge { name: name.to_owned(), most, unit: "bytes" });
        }
        Ok(bytes)
    }
}

/// A bundle with what is attached to it.
pub(super) struct Opened {
    pub(super) bundle: Bundle,
    pub(super) attached: Vec<Attached>,
}

impl Opened {
    fn bare(bundle: Bundle) -> Self {
        Self { bundle, attached: Vec::new() }
    }

    fn of(files: &dyn Blobs) -> Result<Self, Vec<BundleFault>> {
        let bundle = verify::read(files)?;
        let attached = attest::read(files, &bundle.digest).map_err(|fault| vec![fault])?;
        Ok(Self { bundle, attached })
    }
}

/// Reads a bundle of a layout directory, an archive, a source directory, or the program itself.
pub(super) fn read(path: &Path) -> anyhow::Result<Result<Opened, Vec<BundleFault>>> {
    if let Some(files) = builtin::files(path) {
        return built(&files, path).map(|bundle| Ok(Opened::bare(bundle)));
    }
    if path.join(LAYOUT).exists() {
        return Ok(Opened::of(&Directory(path.to_owned())));
    }
    if path.is_dir() {
        if path.join(source::INTERFACE).exists() {
            return build(path).map(|bundle| Ok(Opened::bare(bundle)));
        }
        bail!("{} is neither a bundle ({LAYOUT}) nor a source ({})", path.display(), source::INTERFACE);
    }
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    if size > MAX_BUNDLE_BYTES + ARCHIVE_SLACK {
        let name = shown.to_string();
        return Ok(Err(vec![BundleFault::TooLarge { name, most: MAX_BUNDLE_BYTES, unit: "bytes" }]));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    Ok(archive::load(&bytes).map_err(|fault| vec![fault]).and_then(|files| Opened::of(&files)))
}

/// A bundle that is whole.
pub(super) fn open(path: &Path) -> anyhow::Result<Bundle> {
    open_with(path).map(|it| it.bundle)
}

/// A bundle that is whole, and what is attached to it.
pub(super) fn open_with(path: &Path) -> anyhow::Result<Opened> {
    match read(path)? {
        Ok(opened) => Ok(opened),
        Err(faults) => {
            faults.iter().for_each(|it| note(&format!("error[{}]: {it}", it.code())));
            bail!("{} is refused: see above", path.display());
        }
    }
}

/// Builds a source directory; what stands against it, and warnings, go to standard error.
pub(super) fn build(dir: &Path) -> anyhow::Result<Bundle> {
    built(&files(dir)?, dir)
}

fn built(files: &Files, dir: &Path) -> anyhow::Result<Bundle> {
    let reading = source::read(files);
    for it in &reading.findings {
        let text = files.get(&it.file).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
        note(&it.diagnostic.render(&dir.join(&it.file).display().to_string(), &text));
    }
    let count = |severity| reading.findings.iter().filter(|it| it.diagnostic.severity == severity).count();
    let Some(source) = reading.source else {
        bail!("{} does not build: {} error(s), see above", dir.display(), count(Severity::Error));
    };
    Ok(Bundle::build(source)?)
}

/// The files below a directory, by name; hidden ones are left out.
fn files(dir: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    let mut open = vec![(dir.to_owned(), String::new())];
    while let Some((folder, prefix)) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                bail!("{} has a name that is not UTF-8", path.display());
            };
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push((path, format!("{prefix}{name}/")));
            } else if !kind.is_file() {
                bail!("{} is a link; a source holds files only", path.display());
            } else {
                if entry.metadata()?.len() > MAX_ASSET_BYTES || files.len() >= MAX_LAYERS {
                    bail!("{} is too large, or one file too many", path.display());
                }
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(format!("{prefix}{name}"), bytes);
            }
        }
    }
    Ok(files)
}

/// Writes a bundle as a layout directory. Blobs are named by what they hold, so one that is there already stays.
pub(super) fn write_layout(bundle: &Bundle, attached: &[Attached], dir: &Path) -> anyhow::Result<()> {
    let is_empty = fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty && !dir.join(LAYOUT).exists() {
        bail!("{} is not empty and holds no bundle; name another directory", dir.display());
    }
    let mut files = attest::layout(bundle, attached)?;
    let index = files.remove_entry("index.json");
    for (name, bytes) in files.into_iter().chain(index) {
        let path = dir.join(&name);
        let is_there = name.starts_with("blobs/") && fs::read(&path).is_ok_and(|there| there == bytes);
        if !is_there {
            put(&path, &bytes)?;
        }
    }
    Ok(())
}

/// Writes a bundle as one file.
pub(super) fn write_archive(bundle: &Bundle, attached: &[Attached], file: &Path) -> anyhow::Result<()> {
    put(file, &archive::save(&attest::layout(bundle, attached)?)?)
}

/// Writes a file whole or not at all.
pub(super) fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let wrong = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(wrong)?;
    }
    let mut name = path.file_name().with_context(wrong)?.to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    fs::write(&part, bytes).and_then(|()| fs::rename(&part, path)).with_context(wrong)
}
