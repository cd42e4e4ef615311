//! A folder that only its owner may look into: what is kept there is content, or names secrets.

use std::io;
use std::path::Path;

/// Lets nobody else in.
///
/// # Errors
/// When the file system refuses.
#[cfg(unix)]
pub(crate) fn close(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

/// Lets nobody else in, where the system knows how to.
///
/// # Errors
/// None here.
#[cfg(not(unix))]
pub(crate) fn close(_: &Path) -> io::Result<()> {
    Ok(())
}
