//! Reads a safetensors file one tensor at a time, so that a large file never lies in memory whole.
//!
//! It knows the file format and no architecture. Invariant: what it returns has as many values as its shape says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::EncodeFault;

/// Largest header, in bytes: no encoder's comes near it, and more is a damaged file.
const HEADER_LIMIT_BYTES: u64 = 16 << 20;

/// The tensors of an encoder by BERT's names, wherever they lie.
pub(super) trait Tensors {
    /// Whether there is a tensor of this name.
    fn has(&self, name: &str) -> bool;
    /// Width of a matrix: values of one row.
    fn width(&self, name: &str) -> Result<usize, EncodeFault>;
    /// A tensor's values, row-major.
    fn read(&mut self, name: &str) -> Result<Vec<f32>, EncodeFault>;
}

/// An open weights file.
pub(super) struct Weights {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, TensorInfo>,
    data_start: u64,
}

impl Weights {
    /// Opens a file and reads its header.
    pub(super) fn open(path: &Path) -> Result<Self, EncodeFault> {
        let broken = |what: String| EncodeFault(format!("{}: {what}", path.display()));
        let mut file = File::open(path).map_err(|fault| broken(fault.to_string()))?;
        let mut length = [0_u8; 8];
        file.read_exact(&mut length).map_err(|fault| broken(fault.to_string()))?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_LIMIT_BYTES {
            return Err(broken("not a safetensors file".to_owned()));
        }
        let mut header = vec![0_u8; length as usize];
        file.read_exact(&mut header).map_err(|fault| broken(fault.to_string()))?;
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|fault| broken(format!("bad header: {fault}")))?;
        let tensors = metadata.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        Ok(Self { path: path.to_owned(), file, tensors, data_start: 8 + length })
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, EncodeFault> {
        self.tensors.get(name).ok_or_else(|| self.broken(&format!("no tensor {name}")))
    }

    fn broken(&self, what: &str) -> EncodeFault {
        EncodeFault(format!("{}: {what}", self.path.display()))
    }
}

impl Tensors for Weights {
    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn width(&self, name: &str) -> Result<usize, EncodeFault> {
        match self.info(name)?.shape.as_slice() {
            &[_, width] => Ok(width),
            other => Err(self.broken(&format!("{name} of shape {other:?} is no matrix"))),
        }
    }

    /// Only 32-bit floats are read.
    fn read(&mut self, name: &str) -> Result<Vec<f32>, EncodeFault> {
        let info = self.info(name)?;
        if info.dtype != Dtype::F32 {
            return Err(self.broken(&format!("{name} is {:?}, not F32", info.dtype)));
        }
        let (start, end) = info.data_offsets;
        let mut bytes = vec![0_u8; end.saturating_sub(start)];
        self.file
            .seek(SeekFrom::Start(self.data_start + start as u64))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|fault| self.broken(&format!("{name}: {fault}")))?;
        Ok(bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect())
    }
}
