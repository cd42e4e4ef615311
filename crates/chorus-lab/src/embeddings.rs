//! Vectors of many texts, kept in a file so that a training run can be repeated in seconds.
//!
//! It knows the encoder's trait and no label. Invariant: a kept vector is only used for the very text and encoder
//! that gave it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use chorus_infer::{EncodeFault, TextEncoder};
use sha2::{Digest, Sha256};

type Key = [u8; 32];

/// An encoder that remembers what it has encoded, in memory and in a file.
pub struct CachedEncoder<'a> {
    encoder: &'a dyn TextEncoder,
    path: PathBuf,
    kept: Mutex<BTreeMap<Key, Vec<f32>>>,
}

impl std::fmt::Debug for CachedEncoder<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CachedEncoder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> CachedEncoder<'a> {
    /// Puts a file behind an encoder; the file need not exist yet. A record that was cut short is ignored.
    ///
    /// # Errors
    /// [`EncodeFault`] when the file exists and cannot be read.
    pub fn open(encoder: &'a dyn TextEncoder, path: &Path) -> Result<Self, EncodeFault> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(EncodeFault(format!("{}: {cause}", path.display()))),
        };
        let record = size_of::<Key>() + encoder.dimension() * size_of::<f32>();
        let mut kept = BTreeMap::new();
        for record in bytes.chunks_exact(record) {
            if let Some((key, vector)) = record.split_first_chunk() {
                let vector = vector.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
                kept.insert(*key, vector);
            }
        }
        Ok(Self { encoder, path: path.to_owned(), kept: Mutex::new(kept) })
    }

    fn key(&self, text: &str) -> Key {
        Sha256::new()
            .chain_update(self.encoder.digest())
            .chain_update([0])
            .chain_update(text)
            .finalize()
            .into()
    }

    fn append(&self, fresh: &[(Key, Vec<f32>)]) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        for (key, vector) in fresh {
            bytes.extend_from_slice(key);
            bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(&bytes)
    }
}

impl TextEncoder for CachedEncoder<'_> {
    fn digest(&self) -> &str {
        self.encoder.digest()
    }

    fn dimension(&self) -> usize {
        self.encoder.dimension()
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let keys: Vec<Key> = texts.iter().map(|text| self.key(text)).collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: BTreeMap<Key, &str> = keys
            .iter()
            .zip(texts)
            .filter(|(key, _)| !kept.contains_key(*key))
            .map(|(key, text)| (*key, *text))
            .collect();
        let vectors = self.encoder.encode(&missing.values().copied().collect::<Vec<_>>())?;
        let fresh: Vec<(Key, Vec<f32>)> = missing.into_keys().zip(vectors).collect();
        self.append(&fresh).map_err(|cause| EncodeFault(format!("{}: {cause}", self.path.display())))?;
        kept.extend(fresh);
        Ok(keys.iter().map(|key| kept.get(key).cloned().unwrap_or_default()).collect())
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Gives each text its length, and counts how many it was asked for.
    struct Counting(AtomicUsize);

    impl TextEncoder for Counting {
        fn digest(&self) -> &str {
            "sha256:counting"
        }
        fn dimension(&self) -> usize {
            2
        }
        fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
            self.0.fetch_add(texts.len(), Ordering::Relaxed);
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
    fn a_text_is_encoded_once_across_runs_and_a_cut_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let counting = Counting(AtomicUsize::new(0));
        let texts = ["one", "three", "one"];
        let expected = vec![vec![3.0, 1.0], vec![5.0, 1.0], vec![3.0, 1.0]];
        assert_eq!(CachedEncoder::open(&counting, &path).unwrap().encode(&texts).unwrap(), expected);
        assert_eq!(counting.0.load(Ordering::Relaxed), 2, "the repeated text is encoded once");

        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(CachedEncoder::open(&counting, &path).unwrap().encode(&texts).unwrap(), expected);
        assert_eq!(counting.0.load(Ordering::Relaxed), 3, "only the text of the cut record is encoded again");
    }
}
