//! Text → unit vectors.
//!
//! It knows tokens, windows and the encoder's graph; it knows no label and no request. Invariant: a text's vector
//! is the same, bit by bit, alone and in any batch.

mod bert;
mod choice;
mod graph;
mod keeping;
mod packed;
mod quantise;
mod tokens;
mod weights;
mod windows;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use sha2::{Digest, Sha256};

pub use bert::Precision;
pub use choice::{DEFAULT_ENCODER, MULTILINGUAL_ENCODER, digest_in, encoder_for, open};
pub use keeping::Keeping;
use tokens::Tokens;

/// Version of the converted file's layout: part of its digest and name.
const LAYOUT: &str = "bert-rows-1";
/// What multilingual-e5-small was trained to see before a text that is compared with its like, not searched for.
/// Source: Wang et al. 2024, "Multilingual E5 Text Embeddings", and the model's card.
const E5_PREFIX: &str = "query: ";
/// Tokens that share one pass. More gains nothing on one thread and costs memory.
const PASS_TOKENS: usize = 2_048;

/// Why a text could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeFault(pub String);

/// Turns texts into unit vectors.
pub trait TextEncoder: Send + Sync {
    /// Identity of weights and layout, `sha256:…`.
    fn digest(&self) -> &str;
    /// Length of every vector.
    fn dimension(&self) -> usize;
    /// One unit vector a text; a text longer than a window is represented by the mean over its windows.
    ///
    /// # Errors
    /// [`EncodeFault`].
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault>;
    /// [`encode`](Self::encode) for texts that will be asked for again at the next start, such as the examples of a
    /// policy: an encoder that keeps vectors across starts may answer with them.
    ///
    /// # Errors
    /// [`EncodeFault`].
    fn encode_examples(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(texts)
    }
    /// All of a text, however long: one unit vector a window, at least one.
    ///
    /// # Errors
    /// [`EncodeFault`].
    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault>;
    /// Tokens of a text.
    fn count_tokens(&self, text: &str) -> usize;
}

/// A sentence encoder of the BERT family: all-MiniLM-L6-v2, multilingual-e5-small, or another whose vector is the mean
/// over its tokens.
///
/// Each pass runs on one thread; as many passes run at once as the machine has cores.
pub struct MiniLm {
    vocabulary: Tokens,
    model: Model,
    tokens: NodeId,
    places: NodeId,
    pooled: NodeId,
    dimension: usize,
    digest: String,
    threads: Vec<Arc<ThreadPool>>,
    passes: AtomicUsize,
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("MiniLm").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl MiniLm {
    /// Loads an encoder from its safetensors weights and `tokenizer.json`.
    ///
    /// The first load converts the weights and leaves the result in `cache`, under a name that has the digest of
    /// both files; later loads read only that (a quarter of the size).
    ///
    /// # Errors
    /// [`EncodeFault`] when a file is absent, damaged or of another architecture.
    pub fn load(weights: &Path, tokenizer: &Path, cache: &Path) -> Result<Self, EncodeFault> {
        Self::load_as(weights, tokenizer, cache, Precision::Int8)
    }

    /// [`MiniLm::load`] with a chosen precision.
    ///
    /// # Errors
    /// As [`MiniLm::load`].
    pub fn load_as(
        weights: &Path,
        tokenizer: &Path,
        cache: &Path,
        precision: Precision,
    ) -> Result<Self, EncodeFault> {
        let digest = identity(&digests(&[weights, tokenizer])?, precision, "");
        let model = converted(cache, &digest, precision, || weights::Weights::open(weights))?;
        Self::assemble(model, Tokens::open(tokenizer, "")?, &digest)
    }

    /// Loads multilingual-e5-small from its safetensors weights and `tokenizer.json`; otherwise as [`MiniLm::load`].
    ///
    /// # Errors
    /// As [`MiniLm::load`].
    pub fn load_e5(weights: &Path, tokenizer: &Path, cache: &Path) -> Result<Self, EncodeFault> {
        let precision = Precision::Int8;
        let digest = identity(&digests(&[weights, tokenizer])?, precision, E5_PREFIX);
        let model = converted(cache, &digest, precision, || weights::Weights::open(weights))?;
        Self::assemble(model, Tokens::open(tokenizer, E5_PREFIX)?, &digest)
    }

    /// Loads multilingual-e5-small from the one packed file that has its weights in 4 bits and its vocabulary.
    ///
    /// # Errors
    /// As [`MiniLm::load`].
    pub fn load_packed_e5(file: &Path, cache: &Path, precision: Precision) -> Result<Self, EncodeFault> {
        let digest = identity(&digests(&[file])?, precision, E5_PREFIX);
        let vocabulary = packed::vocabulary_of(file)?;
        let model = converted(cache, &digest, precision, || packed::Packed::open(file))?;
        Self::assemble(model, Tokens::packed(vocabulary, E5_PREFIX)?, &digest)
    }

    fn assemble(model: Model, vocabulary: Tokens, digest: &str) -> Result<Self, EncodeFault> {
        let node = |name| model.node_id(name).map_err(|fault| EncodeFault(fault.to_string()));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut encoder = Self {
            tokens: node(bert::TOKENS)?,
            places: node(bert::PLACES)?,
            pooled: node(bert::POOLED)?,
            threads: (0..cores).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect(),
            passes: AtomicUsize::new(0),
            dimension: 0,
            vocabulary,
            model,
            digest: format!("sha256:{digest}"),
        };
        // One pass finds the dimension and warms the allocator.
        encoder.dimension = encoder.encode(&[""])?.first().map_or(0, Vec::len);
        Ok(encoder)
    }

    /// One unit vector a window. Windows of one length share passes.
    fn embed(&self, windows: &[Vec<i32>]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let mut order: Vec<usize> = (0..windows.len()).collect();
        let length = |place: usize| windows.get(place).map_or(0, Vec::len);
        order.sort_by_key(|&place| length(place));
        let mut vectors = vec![Vec::new(); windows.len()];
        for same_length in order.chunk_by(|&left, &right| length(left) == length(right)) {
            let width = same_length.first().map_or(1, |&place| length(place).max(1));
            for pass in same_length.chunks((PASS_TOKENS / width).max(1)) {
                let tokens = pass.iter().filter_map(|&place| windows.get(place)).flatten().copied().collect();
                let pooled = self.run(tokens, pass.len(), width)?;
                for (&place, vector) in pass.iter().zip(pooled) {
                    if let Some(slot) = vectors.get_mut(place) {
                        *slot = vector;
                    }
                }
            }
        }
        Ok(vectors)
    }

    /// One pass of the graph over `batch` windows of `length` tokens.
    fn run(&self, tokens: Vec<i32>, batch: usize, length: usize) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let tokens = NdTensor::from_data([batch, length], tokens);
        let places = NdTensor::from_data([length], (0..length as i32).collect::<Vec<_>>());
        let turn = self.passes.fetch_add(1, Ordering::Relaxed);
        let thread = self.threads.get(turn % self.threads.len().max(1)).cloned();
        let inputs = vec![(self.tokens, tokens.view().into()), (self.places, places.view().into())];
        let options = RunOptions::default().with_thread_pool(thread);
        let [pooled] = self
            .model
            .run_n(inputs, [self.pooled], Some(options))
            .map_err(|fault| EncodeFault(format!("the encoder's pass failed: {fault}")))?;
        let pooled: NdTensor<f32, 2> =
            pooled.try_into().map_err(|fault| EncodeFault(format!("the encoder's output: {fault:?}")))?;
        let width = pooled.size(1);
        Ok(pooled.to_vec().chunks(width.max(1)).map(|vector| unit(vector.to_vec())).collect())
    }

    /// A text's windows with their special tokens, as the graph takes them.
    fn windows(&self, text: &str) -> Result<Vec<Vec<i32>>, EncodeFault> {
        let Tokens { begin, end, prefix, .. } = &self.vocabulary;
        let tokens = self.vocabulary.ids(text)?;
        let framed = windows::windows(&tokens, prefix.len() + 2).map(|window| {
            let front = std::iter::once(begin).chain(prefix);
            front.chain(window).chain(std::iter::once(end)).map(|id| id.cast_signed()).collect()
        });
        Ok(framed.collect())
    }
}

impl TextEncoder for MiniLm {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let mut all = Vec::with_capacity(texts.len());
        let mut counts = Vec::with_capacity(texts.len());
        for text in texts {
            let windows = self.windows(text)?;
            counts.push(windows.len());
            all.extend(windows);
        }
        let mut vectors = self.embed(&all)?.into_iter();
        Ok(counts.into_iter().map(|count| mean(vectors.by_ref().take(count))).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.embed(&self.windows(text)?)
    }

    fn count_tokens(&self, text: &str) -> usize {
        // A text that cannot be tokenised cannot be encoded either; four bytes a token is the usual guess.
        self.vocabulary.ids(text).map_or(text.len() / 4, |tokens| tokens.len())
    }
}

/// The model in graph form: read from `cache`, or made from the tensors and left there.
fn converted<T: weights::Tensors>(
    cache: &Path,
    digest: &str,
    precision: Precision,
    tensors: impl FnOnce() -> Result<T, EncodeFault>,
) -> Result<Model, EncodeFault> {
    let path = cache.join(format!("encoder-{digest}.onnx"));
    if !path.is_file() {
        let bytes = bert::convert(&mut tensors()?, precision)?;
        publish(&path, &bytes).map_err(|fault| at(&path, &fault))?;
    }
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options.load_file(&path).map_err(|fault| at(&path, &fault))
}

/// Hexadecimal digest over layout, precision, prefix and the digests of the files.
fn identity(files: &[impl AsRef<[u8]>], precision: Precision, prefix: &str) -> String {
    let mut identity = Sha256::new();
    identity.update(format!("{LAYOUT}/{precision:?}{prefix}\n"));
    files.iter().for_each(|digest| identity.update(digest));
    hex::encode(identity.finalize())
}

fn digests(files: &[&Path]) -> Result<Vec<[u8; 32]>, EncodeFault> {
    files.iter().map(|path| file_digest(path).map_err(|fault| at(path, &fault))).collect()
}

fn file_digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = fs::File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        match buffer.get(..read) {
            Some(bytes) if read > 0 => digest.update(bytes),
            _ => return Ok(digest.finalize().into()),
        }
    }
}

/// Writes a file under its name only when it is whole, so that a killed process leaves none by half.
fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    fs::create_dir_all(&folder)?;
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|fault| fault.error)?;
    Ok(())
}

fn at(path: &Path, fault: &dyn std::fmt::Display) -> EncodeFault {
    EncodeFault(format!("{}: {fault}", path.display()))
}

/// The unit vector of the mean; a single vector is left as it is.
fn mean(vectors: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let mut vectors = vectors.peekable();
    let mut sum = vectors.next().unwrap_or_default();
    if vectors.peek().is_none() {
        return sum;
    }
    for vector in vectors {
        sum.iter_mut().zip(&vector).for_each(|(sum, value)| *sum += value);
    }
    unit(sum)
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vector
}
