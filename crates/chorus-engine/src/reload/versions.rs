//! Configurations that were served, kept on disk: one file each, named by number, time and cause.
//!
//! The files hold what the operator wrote, credentials too, so nobody else may read them.
//!
//! **Invariant:** at most [`KEPT_VERSIONS`] are kept, the latest; a number is never used twice.

use super::fault::Refusal;
use crate::private_folder;
use crate::publish::publish;
use chorus_spec::Digest;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most versions that are kept (`kept_versions`).
pub const KEPT_VERSIONS: usize = 20;

/// A kept configuration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Version {
    /// Its number, from 1.
    pub version: u64,
    /// When it was first served, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who asked for it: `start`, `signal`, `watch`, `api` or `rollback`.
    pub cause: String,
    /// Its digest.
    pub digest: Digest,
    #[serde(skip)]
    text: String,
}

/// The folder of one file's versions.
#[derive(Debug, Clone)]
pub struct Versions {
    folder: PathBuf,
}

impl Versions {
    /// Versions of the configuration `file`, below `folder`; made if it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path, file: &Path) -> io::Result<Self> {
        let whole = fs::canonicalize(file)?;
        let digest = Digest::of(whole.as_os_str().as_encoded_bytes());
        let tail: String = digest.as_str().chars().rev().take(12).collect();
        let stem = whole.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = folder.join(format!("{stem}-{tail}"));
        fs::create_dir_all(&folder)?;
        private_folder::close(&folder)?;
        Ok(Self { folder })
    }

    /// Keeps a text, unless it is the latest already; returns its number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, text: &str, cause: &str, at_ms: u64) -> io::Result<u64> {
        let kept = self.list()?;
        let latest = kept.first();
        if let Some(latest) = latest.filter(|latest| latest.text == text) {
            return Ok(latest.version);
        }
        let version = latest.map_or(1, |latest| latest.version + 1);
        publish(&self.folder.join(format!("{version:06}-{at_ms}-{cause}.yaml")), text.as_bytes(), None)?;
        for old in kept.iter().skip(KEPT_VERSIONS - 1) {
            fs::remove_file(
                self.folder.join(format!("{:06}-{}-{}.yaml", old.version, old.at_ms, old.cause)),
            )?;
        }
        Ok(version)
    }

    /// What is kept, latest first.
    pub(super) fn list(&self) -> io::Result<Vec<Version>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let mut parts = name.splitn(3, '-');
            let number = |part: Option<&str>| part.and_then(|part| part.parse::<u64>().ok());
            // Anything else in the folder is not ours.
            let (Some(version), Some(at_ms), Some(cause)) =
                (number(parts.next()), number(parts.next()), parts.next())
            else {
                continue;
            };
            let text = fs::read_to_string(&path)?;
            let digest = Digest::of(text.as_bytes());
            found.push(Version { version, at_ms, cause: cause.to_owned(), digest, text });
        }
        found.sort_by_key(|version| std::cmp::Reverse(version.version));
        Ok(found)
    }

    /// The text of that version, or of the latest that is not `served`.
    pub(super) fn text(&self, version: Option<u64>, served: &Digest) -> Result<Option<String>, Refusal> {
        let wanted = |kept: &Version| match version {
            Some(number) => kept.version == number,
            None => kept.digest != *served,
        };
        Ok(self.list()?.into_iter().find(wanted).map(|kept| kept.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_a_repeated_text_is_not_kept_twice() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        fs::write(&file, "x").unwrap();
        let versions = Versions::open(&folder.path().join("versions"), &file).unwrap();
        for n in 1..=25_u64 {
            assert_eq!(versions.keep(&format!("text {n}"), "api", n).unwrap(), n);
            assert_eq!(versions.keep(&format!("text {n}"), "watch", n).unwrap(), n);
        }
        let kept = versions.list().unwrap();
        let numbers: Vec<u64> = kept.iter().map(|v| v.version).collect();
        assert_eq!(numbers, (6..=25).rev().collect::<Vec<_>>());
        let served = Digest::of(b"text 25");
        assert_eq!(versions.text(None, &served).unwrap().as_deref(), Some("text 24"));
        assert_eq!(versions.text(Some(7), &served).unwrap().as_deref(), Some("text 7"));
        assert_eq!(versions.text(Some(5), &served).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_what_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        fs::write(&file, "x").unwrap();
        let versions = Versions::open(folder.path(), &file).unwrap();
        versions.keep("api_key: sk-1", "start", 1).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode(&versions.folder), 0);
        assert_eq!(mode(&versions.folder.join("000001-1-start.yaml")), 0);
    }
}
