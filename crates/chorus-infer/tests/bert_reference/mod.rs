//! A BERT in plain loops over 32-bit floats, and a tiny random one to feed it: the yardstick of the encoder's tests.
//!
//! It knows nothing of the code under test. Invariant: the tiny model's files are the same on every machine.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a fixture: a panic here is a failed test, and plain loops read best with indices"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

const HEAD_WIDTH: usize = 32;
const HIDDEN: usize = 64;
const WIDE: usize = 128;
const PLACES: usize = 256;
const SEED: u64 = 0x0043_4f52_5553;

/// Words of the tiny model, next to the special tokens.
pub(crate) const WORDS: [&str; 24] = [
    "how", "do", "plants", "make", "food", "from", "light", "what", "is", "the", "sum", "of", "two", "odd",
    "numbers", "write", "a", "letter", "to", "bank", "##s", "##ing", ".", "?",
];

type Matrix = Vec<Vec<f32>>;

/// Weights of a BERT by tensor name, each with its shape.
pub(crate) struct Bert {
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Bert {
    /// Two layers, 64 wide, with weights drawn from a fixed seed.
    pub(crate) fn tiny() -> Self {
        let mut draw = Draw(SEED);
        let mut tensors = BTreeMap::new();
        let mut add = |name: String, shape: &[usize], centre: f32, spread: f32| {
            let values = (0..shape.iter().product()).map(|_| centre + spread * draw.next()).collect();
            tensors.insert(name, (shape.to_vec(), values));
        };
        add("embeddings.word_embeddings.weight".to_owned(), &[WORDS.len() + 5, HIDDEN], 0.0, 1.0);
        add("embeddings.position_embeddings.weight".to_owned(), &[PLACES, HIDDEN], 0.0, 0.3);
        add("embeddings.token_type_embeddings.weight".to_owned(), &[2, HIDDEN], 0.0, 0.3);
        add_norm(&mut add, "embeddings.LayerNorm");
        for layer in 0..2 {
            let prefix = format!("encoder.layer.{layer}");
            let linears = [
                ("attention.self.query", HIDDEN, HIDDEN),
                ("attention.self.key", HIDDEN, HIDDEN),
                ("attention.self.value", HIDDEN, HIDDEN),
                ("attention.output.dense", HIDDEN, HIDDEN),
                ("intermediate.dense", WIDE, HIDDEN),
                ("output.dense", HIDDEN, WIDE),
            ];
            for (name, outputs, inputs) in linears {
                let spread = (3.0 / inputs as f32).sqrt();
                add(format!("{prefix}.{name}.weight"), &[outputs, inputs], 0.0, spread);
                add(format!("{prefix}.{name}.bias"), &[outputs], 0.0, 0.1);
            }
            add_norm(&mut add, &format!("{prefix}.attention.output.LayerNorm"));
            add_norm(&mut add, &format!("{prefix}.output.LayerNorm"));
        }
        Self { tensors }
    }

    /// Reads all of a safetensors file.
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors = BTreeMap::new();
        for (name, tensor) in file.tensors() {
            if tensor.dtype() == Dtype::F32 {
                let values = tensor.data().as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
                tensors.insert(name, (tensor.shape().to_vec(), values));
            }
        }
        Self { tensors }
    }

    /// Writes weights and tokenizer into a folder; returns their paths.
    pub(crate) fn write(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let bytes: BTreeMap<&String, (Vec<usize>, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, (shape, values))| {
                (name, (shape.clone(), values.iter().flat_map(|value| value.to_le_bytes()).collect()))
            })
            .collect();
        let views = bytes.iter().map(|(name, (shape, data))| {
            (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
        });
        let weights = folder.join("model.safetensors");
        std::fs::write(&weights, safetensors::serialize(views, None).unwrap()).unwrap();
        let tokenizer = folder.join("tokenizer.json");
        std::fs::write(&tokenizer, tokenizer_file()).unwrap();
        (weights, tokenizer)
    }

    /// The unit vector of a token sequence, its special tokens included.
    pub(crate) fn embed(&self, tokens: &[u32]) -> Vec<f32> {
        let words = self.matrix("embeddings.word_embeddings.weight");
        let places = self.matrix("embeddings.position_embeddings.weight");
        let kind = &self.matrix("embeddings.token_type_embeddings.weight")[0];
        let sum = |place: usize, token: u32| {
            let rows = words[token as usize].iter().zip(&places[place]).zip(kind);
            rows.map(|((word, place), kind)| word + place + kind).collect()
        };
        let summed = tokens.iter().enumerate().map(|(place, &token)| sum(place, token)).collect();
        let mut state = self.normalise("embeddings.LayerNorm", summed);
        for layer in 0.. {
            if !self.tensors.contains_key(&format!("encoder.layer.{layer}.output.dense.weight")) {
                break;
            }
            state = self.layer(&format!("encoder.layer.{layer}"), &state);
        }
        let mut mean = vec![0.0; state[0].len()];
        for row in &state {
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / state.len() as f32);
        }
        let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt();
        mean.iter().map(|value| value / length).collect()
    }

    fn layer(&self, prefix: &str, state: &Matrix) -> Matrix {
        let context = self.attention(prefix, state);
        let attended = self.linear(&format!("{prefix}.attention.output.dense"), &context);
        let state = self.normalise(&format!("{prefix}.attention.output.LayerNorm"), add(attended, state));
        let mut wide = self.linear(&format!("{prefix}.intermediate.dense"), &state);
        wide.iter_mut().flatten().for_each(|value| *value = gelu(*value));
        let narrow = self.linear(&format!("{prefix}.output.dense"), &wide);
        self.normalise(&format!("{prefix}.output.LayerNorm"), add(narrow, &state))
    }

    fn attention(&self, prefix: &str, state: &Matrix) -> Matrix {
        let query = self.linear(&format!("{prefix}.attention.self.query"), state);
        let key = self.linear(&format!("{prefix}.attention.self.key"), state);
        let value = self.linear(&format!("{prefix}.attention.self.value"), state);
        let width = query[0].len();
        let mut context = vec![vec![0.0; width]; state.len()];
        for head in (0..width).step_by(HEAD_WIDTH) {
            let columns = head..head + HEAD_WIDTH;
            for (asker, out) in query.iter().zip(&mut context) {
                let score = |key: &Vec<f32>| {
                    dot(&asker[columns.clone()], &key[columns.clone()]) / (HEAD_WIDTH as f32).sqrt()
                };
                let scores: Vec<f32> = key.iter().map(|key| score(key).exp()).collect();
                let total: f32 = scores.iter().sum();
                for (share, value) in scores.iter().zip(&value) {
                    for column in columns.clone() {
                        out[column] += share / total * value[column];
                    }
                }
            }
        }
        context
    }

    fn linear(&self, name: &str, input: &Matrix) -> Matrix {
        let weight = self.matrix(&format!("{name}.weight"));
        let bias = &self.tensors[&format!("{name}.bias")].1;
        let row =
            |row: &Vec<f32>| weight.iter().zip(bias).map(|(weight, bias)| dot(weight, row) + bias).collect();
        input.iter().map(row).collect()
    }

    fn normalise(&self, name: &str, mut rows: Matrix) -> Matrix {
        let weight = &self.tensors[&format!("{name}.weight")].1;
        let bias = &self.tensors[&format!("{name}.bias")].1;
        for row in &mut rows {
            let mean = row.iter().sum::<f32>() / row.len() as f32;
            let spread = row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / row.len() as f32;
            for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
                *value = (*value - mean) / (spread + 1e-12).sqrt() * weight + bias;
            }
        }
        rows
    }

    fn matrix(&self, name: &str) -> Matrix {
        let (shape, values) = &self.tensors[name];
        values.chunks(shape[1]).map(<[f32]>::to_vec).collect()
    }
}

/// A WordPiece tokenizer as such files are shipped: with truncation and fixed padding, which a loader must undo.
fn tokenizer_file() -> String {
    let specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let all = specials.iter().chain(&WORDS);
    let vocabulary: BTreeMap<&str, usize> = all.enumerate().map(|(place, &word)| (word, place)).collect();
    let added: Vec<serde_json::Value> = specials
        .iter()
        .enumerate()
        .map(|(id, content)| {
            serde_json::json!({"id": id, "content": content, "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false})
        })
        .collect();
    serde_json::json!({
        "version": "1.0",
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
    .to_string()
}

/// Adds the two vectors of a layer norm, near 1 and near 0.
fn add_norm(add: &mut impl FnMut(String, &[usize], f32, f32), name: &str) {
    add(format!("{name}.weight"), &[HIDDEN], 1.0, 0.2);
    add(format!("{name}.bias"), &[HIDDEN], 0.0, 0.2);
}

/// Uniform draws in -1..1. Source: Marsaglia 2003, "Xorshift RNGs".
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

fn add(mut left: Matrix, right: &Matrix) -> Matrix {
    left.iter_mut().flatten().zip(right.iter().flatten()).for_each(|(left, right)| *left += right);
    left
}

pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn gelu(value: f32) -> f32 {
    0.5 * value * (1.0 + erf(value / std::f32::consts::SQRT_2))
}

/// Error below 1.5e-7. Source: Abramowitz and Stegun 1964, 7.1.26.
fn erf(value: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.327_591_1 * value.abs());
    let series = [1.061_405_4, -1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6];
    let sum = series.iter().fold(0.0, |sum, factor| sum * t + factor) * t;
    (1.0 - sum * (-value * value).exp()).copysign(value)
}
