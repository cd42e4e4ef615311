//! Digests of files, and the stamp beside a file that says it was verified.
//!
//! Invariant: a stamp is written only after every byte of the file was hashed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const BUFFER_BYTES: usize = 1 << 20;

/// SHA-256 of a file, in lower-case hex.
///
/// # Errors
/// Any error of reading it.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

/// Where the stamp of a file lies: its name with `.sha256` appended.
fn stamp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    PathBuf::from(name)
}

/// Notes that the file was hashed: digest and size.
pub(super) fn write_stamp(path: &Path, sha256: &str, bytes: u64) -> io::Result<()> {
    std::fs::write(stamp_path(path), format!("{sha256} {bytes}\n"))
}

/// The digest in a file's stamp, if the file still has the size that was stamped.
#[must_use]
pub fn stamped_digest(path: &Path) -> Option<String> {
    let stamp = std::fs::read_to_string(stamp_path(path)).ok()?;
    let (sha256, bytes) = stamp.trim_end().split_once(' ')?;
    let size = std::fs::metadata(path).ok()?.len();
    (bytes.parse() == Ok(size)).then(|| sha256.to_owned())
}

/// Forgets that the file was verified.
pub(super) fn remove_stamp(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(stamp_path(path)) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_until_the_size_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        std::fs::write(&path, b"abc").unwrap();
        let sha256 = sha256_of_file(&path).unwrap();
        // FIPS 180-4, the example "abc".
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(stamped_digest(&path), None);
        write_stamp(&path, &sha256, 3).unwrap();
        assert_eq!(stamped_digest(&path), Some(sha256));
        std::fs::write(&path, b"abcd").unwrap();
        assert_eq!(stamped_digest(&path), None);
    }
}
