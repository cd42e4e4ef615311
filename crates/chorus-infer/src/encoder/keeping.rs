//! Vectors of examples, kept in files across starts: one file a bank of examples.
//!
//! It knows digests and files, no example's meaning. A file's name is the digest of encoder and texts, its last bytes
//! the digest of what stands before them. Invariant: a kept vector is used only for the very texts and encoder that
//! gave it; a file that is damaged, or cannot be read or written, costs time and nothing else. The folder may be
//! deleted at any moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{EncodeFault, TextEncoder};

/// Bytes of a digest.
const DIGEST_BYTES: usize = 32;

/// An encoder that keeps the vectors of examples in a folder.
pub struct Keeping {
    encoder: Arc<dyn TextEncoder>,
    folder: PathBuf,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Keeping").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Keeping {
    /// Puts a folder behind an encoder; it need not exist yet.
    #[must_use]
    pub fn new(encoder: Arc<dyn TextEncoder>, folder: PathBuf) -> Self {
        Self { encoder, folder }
    }

    fn file(&self, texts: &[&str]) -> PathBuf {
        let mut digest = Sha256::new();
        digest.update(self.encoder.digest());
        for text in texts {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        self.folder.join(format!("{}.vectors", hex::encode(digest.finalize())))
    }

    fn kept(&self, file: &Path, count: usize) -> Option<Vec<Vec<f32>>> {
        let bytes = fs::read(file).ok()?;
        let (vectors, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        let width = self.encoder.dimension() * size_of::<f32>();
        let sound = vectors.len() == count * width && digest == Sha256::digest(vectors).as_slice();
        let floats = |row: &[u8]| row.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
        (sound && width > 0).then(|| vectors.chunks_exact(width).map(floats).collect())
    }

    fn keep(&self, file: &Path, vectors: &[Vec<f32>]) {
        let mut bytes: Vec<u8> = vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let digest = Sha256::digest(&bytes);
        bytes.extend_from_slice(&digest);
        if let Err(fault) = super::publish(file, &bytes) {
            tracing::debug!(%fault, file = %file.display(), "the vectors of examples could not be kept");
        }
    }
}

impl TextEncoder for Keeping {
    fn digest(&self) -> &str {
        self.encoder.digest()
    }

    fn dimension(&self) -> usize {
        self.encoder.dimension()
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encoder.encode(texts)
    }

    fn encode_examples(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let file = self.file(texts);
        if let Some(kept) = self.kept(&file, texts.len()) {
            return Ok(kept);
        }
        let vectors = self.encoder.encode(texts)?;
        self.keep(&file, &vectors);
        Ok(vectors)
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encoder.encode_windows(text)
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.encoder.count_tokens(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Two numbers a text, and how often it was asked.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl TextEncoder for Counted {
        fn digest(&self) -> &str {
            "sha256:counted"
        }

        fn dimension(&self) -> usize {
            2
        }

        fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect())
        }

        fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
            self.encode(&[text])
        }

        fn count_tokens(&self, text: &str) -> usize {
            text.len()
        }
    }

    #[test]
    fn examples_are_encoded_once_across_starts_and_requests_are_never_kept() {
        let folder = tempfile::tempdir().unwrap();
        let inner = Arc::new(Counted::default());
        let start = || Keeping::new(Arc::clone(&inner) as Arc<dyn TextEncoder>, folder.path().join("banks"));
        let first = start().encode_examples(&["a", "bc"]).unwrap();
        assert_eq!(start().encode_examples(&["a", "bc"]).unwrap(), first);
        assert_eq!(inner.0.load(Ordering::Relaxed), 1);
        // Another cut of the same letters, and another order, are other texts.
        for other in [["ab", "c"], ["bc", "a"]] {
            assert_ne!(start().encode_examples(&other).unwrap(), first);
        }
        start().encode(&["a", "bc"]).unwrap();
        start().encode_windows("a").unwrap();
        assert_eq!(inner.0.load(Ordering::Relaxed), 5);
        assert_eq!(fs::read_dir(folder.path().join("banks")).unwrap().count(), 3);
    }

    #[test]
    fn a_damaged_file_is_not_believed_and_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let keeping = Keeping::new(Arc::new(Counted::default()), folder.path().to_owned());
        let first = keeping.encode_examples(&["a"]).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&file).unwrap();
        for damaged in [&whole[..whole.len() - 1], &[], &[0; 40][..]] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(keeping.encode_examples(&["a"]).unwrap(), first);
            assert_eq!(fs::read(&file).unwrap(), whole);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        fs::write(&file, "x").unwrap();
        let keeping = Keeping::new(Arc::new(Counted::default()), file);
        assert_eq!(keeping.encode_examples(&["a"]).unwrap(), [[1.0, 1.0]]);
    }
}
