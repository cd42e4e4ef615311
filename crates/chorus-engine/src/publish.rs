//! A file that is replaced at once: a reader sees the old bytes or the new ones, never a part of either.
//!
//! It knows no format. **Invariant:** what was published is there after a power cut, on a disk that honours flushes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes the bytes beside the file and puts them in its place, with those permissions, else for its owner only.
///
/// # Errors
/// What the file system says; the old file is there then.
pub(crate) fn publish(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut fresh = NamedTempFile::new_in(folder)?;
    fresh.write_all(bytes)?;
    if let Some(permissions) = permissions {
        fresh.as_file().set_permissions(permissions)?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(path).map_err(|fault| fault.error)?;
    // The rename itself is on disk only once its folder is.
    File::open(folder)?.sync_all()
}
