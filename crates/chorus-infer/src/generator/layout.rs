//! The layout that the engine is fast at, written once beside a file that has another.
//!
//! Matrices become Q8_0; everything else is copied. It knows no model. Invariant: the name of a rewritten file holds
//! the digest of the file it was made from, so that a replaced original is never served from an old copy.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content};
use candle_core::quantized::{GgmlDType, QTensor};

use super::fault::GenerateFault;
use crate::store::{sha256_of_file, stamped_digest};

/// Digits of the original's digest in a rewritten file's name.
const DIGEST_DIGITS: usize = 16;

/// An opened model file.
pub(super) struct ModelFile {
    pub(super) content: Content,
    pub(super) reader: BufReader<File>,
}

impl ModelFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`GenerateFault::File`].
    pub(super) fn open(path: &Path) -> Result<Self, GenerateFault> {
        let named = |fault: String| GenerateFault::File(format!("{}: {fault}", path.display()));
        let mut reader = BufReader::new(File::open(path).map_err(|fault| named(fault.to_string()))?);
        let content = Content::read(&mut reader).map_err(|fault| named(fault.to_string()))?;
        Ok(Self { content, reader })
    }

    /// Opens the fast copy of a file, making it if it is not there. Where it cannot be written, the file itself
    /// serves: it only takes longer to load.
    ///
    /// # Errors
    /// [`GenerateFault::File`].
    pub(super) fn open_fast(path: &Path) -> Result<Self, GenerateFault> {
        let mut original = Self::open(path)?;
        if original.is_fast() {
            return Ok(original);
        }
        let Some(copy) = copy_path(path) else {
            return Ok(original);
        };
        if let Ok(copy) = Self::open(&copy) {
            return Ok(copy);
        }
        match original.write_fast(&copy) {
            Ok(()) => Self::open(&copy),
            Err(fault) => {
                tracing::warn!(path = %copy.display(), %fault, "the fast copy of a model file was not written");
                Ok(original)
            }
        }
    }

    /// Whether every matrix already has the fast layout.
    fn is_fast(&self) -> bool {
        let matrices = self.content.tensor_infos.values().filter(|info| info.shape.rank() == 2);
        matrices.into_iter().all(|info| info.ggml_dtype == GgmlDType::Q8_0)
    }

    fn write_fast(&mut self, to: &Path) -> candle_core::Result<()> {
        let mut names: Vec<_> = self.content.tensor_infos.keys().cloned().collect();
        names.sort();
        let tensors =
            names.iter().map(|name| self.fast_tensor(name)).collect::<candle_core::Result<Vec<_>>>()?;
        let tensors: Vec<_> = names.iter().map(String::as_str).zip(&tensors).collect();
        let mut metadata: Vec<_> =
            self.content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        metadata.sort_by_key(|(key, _)| *key);
        let folder = to.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut writer = BufWriter::new(file.as_file_mut());
        gguf_file::write(&mut writer, &metadata, &tensors)?;
        writer.flush()?;
        drop(writer);
        file.as_file().sync_all()?;
        file.persist(to).map_err(|fault| fault.error)?;
        Ok(())
    }

    fn fast_tensor(&mut self, name: &str) -> candle_core::Result<QTensor> {
        let tensor = self.content.tensor(&mut self.reader, name, &Device::Cpu)?;
        if tensor.rank() != 2 || tensor.dtype() == GgmlDType::Q8_0 {
            return Ok(tensor);
        }
        QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::Q8_0)
    }
}

/// Where a file's fast copy lies; `None` if the file cannot be hashed.
fn copy_path(path: &Path) -> Option<PathBuf> {
    let digest = stamped_digest(path).or_else(|| sha256_of_file(path).ok())?;
    let stem = path.file_stem()?.to_str()?;
    Some(path.with_file_name(format!("{stem}.{}.q8_0.gguf", digest.get(..DIGEST_DIGITS)?)))
}
