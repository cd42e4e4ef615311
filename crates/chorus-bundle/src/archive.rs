//! A layout as one file, to carry about: an uncompressed tar, the same bytes for the same layout.
//!
//! It knows no file system. **Invariant:** what is unpacked has the names of a layout and no others; neither a link nor a
//! path can lead out of it.

use crate::fault::BundleFault;
use crate::oci::blob_name;
use crate::path::Files;
use crate::verify::{MAX_BUNDLE_BYTES, MAX_LAYERS};
use std::io::Read as _;

/// Packs the files of a layout, in order of their names.
///
/// # Errors
/// A name that a tar header cannot hold.
pub fn save(layout: &Files) -> Result<Vec<u8>, BundleFault> {
    let fault = |fault: std::io::Error| BundleFault::Archive(fault.to_string());
    let mut out = tar::Builder::new(Vec::new());
    for (name, bytes) in layout {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        out.append_data(&mut header, name, bytes.as_slice()).map_err(fault)?;
    }
    out.into_inner().map_err(fault)
}

/// Unpacks a layout; it is not verified yet.
///
/// # Errors
/// What is no tar file, has names that no layout has, a name twice, links, or more than a bundle may have.
pub fn load(archive: &[u8]) -> Result<Files, BundleFault> {
    let fault = |fault: std::io::Error| BundleFault::Archive(fault.to_string());
    let mut files = Files::new();
    let mut total = 0_u64;
    for entry in tar::Archive::new(archive).entries().map_err(fault)? {
        let mut entry = entry.map_err(fault)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type().is_dir() {
            continue;
        }
        let name = checked_name(name, entry.header().entry_type().is_file())?;
        total = total.saturating_add(entry.size());
        if total > MAX_BUNDLE_BYTES || files.len() > MAX_LAYERS + 8 {
            return Err(BundleFault::TooLarge {
                name: "the archive".to_owned(),
                most: MAX_BUNDLE_BYTES,
                unit: "bytes",
            });
        }
        let mut bytes = Vec::new();
        let size = entry.size();
        (&mut entry).take(size).read_to_end(&mut bytes).map_err(fault)?;
        if (bytes.len() as u64) < size {
            return Err(BundleFault::Size { name, wanted: size, found: bytes.len() as u64 });
        }
        if files.insert(name.clone(), bytes).is_some() {
            return Err(BundleFault::Archive(format!("`{name}` stands twice")));
        }
    }
    Ok(files)
}

fn checked_name(name: String, is_file: bool) -> Result<String, BundleFault> {
    let stripped = name.strip_prefix("./").unwrap_or(&name);
    let is_blob = stripped
        .strip_prefix("blobs/sha256/")
        .is_some_and(|hex| blob_name(&format!("sha256:{hex}")).is_some());
    if !is_file {
        return Err(BundleFault::Path { name, why: "is no ordinary file" });
    }
    if !(is_blob || stripped == "oci-layout" || stripped == "index.json") {
        return Err(BundleFault::Path { name, why: "is not a name of an OCI image layout" });
    }
    Ok(stripped.to_owned())
}
