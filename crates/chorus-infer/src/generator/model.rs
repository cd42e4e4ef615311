//! The decoder: embedding, layers of attention and gated feed-forward, logits of the last position.
//!
//! It knows weights and positions; it knows no text and no sampling. Activations are 32-bit. Invariant: a token's
//! keys, values and logits do not depend on how many tokens were passed together.

use std::io::{Read, Seek};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::Content;
use rayon::prelude::*;

use super::fault::GenerateFault;
use super::gguf::{Metadata, Rotation, Shape};
use super::kv::{HeadCache, Sequence};
use super::math;
use super::q8::{Activations, Q8Matrix};

/// One layer's weights. Queries, keys and values are one matrix, and so are gate and up.
#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    qkv: Q8Matrix,
    qkv_bias: Option<Vec<f32>>,
    attention_out: Q8Matrix,
    feed_norm: Vec<f32>,
    gate_up: Q8Matrix,
    down: Q8Matrix,
}

/// A model's weights.
#[derive(Debug)]
pub(super) struct Model {
    shape: Shape,
    embedding: Q8Matrix,
    layers: Vec<Layer>,
    out_norm: Vec<f32>,
    /// `None` where the embedding serves as output too.
    output: Option<Q8Matrix>,
    frequencies: Vec<f32>,
}

/// Buffers of a forward pass, kept between passes.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    stream: Vec<f32>,
    normed: Vec<f32>,
    wide: Vec<f32>,
    mixed: Vec<f32>,
    projected: Vec<f32>,
    activations: Activations,
    logits: Vec<f32>,
}

/// Reads tensors of one file.
struct Tensors<'a, R> {
    content: &'a Content,
    reader: &'a mut R,
}

impl<R: Read + Seek> Tensors<'_, R> {
    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    fn get(&mut self, name: &str) -> Result<QTensor, GenerateFault> {
        let tensor = self.content.tensor(self.reader, name, &Device::Cpu);
        tensor.map_err(|fault| GenerateFault::File(format!("{name}: {fault}")))
    }

    /// A vector of exactly `length` numbers.
    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, GenerateFault> {
        let plain = |tensor: QTensor| tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>();
        let numbers =
            plain(self.get(name)?).map_err(|fault| GenerateFault::File(format!("{name}: {fault}")))?;
        if numbers.len() == length {
            return Ok(numbers);
        }
        Err(GenerateFault::File(format!("{name} has {} numbers, not {length}", numbers.len())))
    }

    /// Tensors stacked into one matrix of exactly that size; `rows` is `None` for the vocabulary, which the file sets.
    fn matrix(
        &mut self,
        names: &[&str],
        rows: Option<usize>,
        columns: usize,
    ) -> Result<Q8Matrix, GenerateFault> {
        let tensors = names.iter().map(|name| self.get(name)).collect::<Result<Vec<_>, _>>()?;
        let named = |fault: String| GenerateFault::File(format!("{}: {fault}", names.join(" + ")));
        let matrix = Q8Matrix::stack(&tensors).map_err(|fault| named(fault.to_string()))?;
        if matrix.columns() != columns || rows.is_some_and(|rows| rows != matrix.rows()) {
            return Err(named(format!("the matrix is {} × {}", matrix.rows(), matrix.columns())));
        }
        Ok(matrix)
    }

    fn layer(&mut self, index: usize, shape: &Shape) -> Result<Layer, GenerateFault> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let (width, queries, keys) = (shape.width, shape.query_width(), shape.kv_width());
        let (q, k, v) = (name("attn_q.weight"), name("attn_k.weight"), name("attn_v.weight"));
        let (gate, up) = (name("ffn_gate.weight"), name("ffn_up.weight"));
        let qkv_bias = if self.has(&name("attn_q.bias")) {
            let mut bias = self.vector(&name("attn_q.bias"), queries)?;
            bias.extend(self.vector(&name("attn_k.bias"), keys)?);
            bias.extend(self.vector(&name("attn_v.bias"), keys)?);
            Some(bias)
        } else {
            None
        };
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm.weight"), width)?,
            qkv: self.matrix(&[&q, &k, &v], Some(queries + 2 * keys), width)?,
            qkv_bias,
            attention_out: self.matrix(&[&name("attn_output.weight")], Some(width), queries)?,
            feed_norm: self.vector(&name("ffn_norm.weight"), width)?,
            gate_up: self.matrix(&[&gate, &up], Some(2 * shape.hidden), width)?,
            down: self.matrix(&[&name("ffn_down.weight")], Some(width), shape.hidden)?,
        })
    }
}

impl Model {
    /// Reads all weights.
    ///
    /// # Errors
    /// [`GenerateFault::File`] or [`GenerateFault::Unsupported`].
    pub(super) fn read(content: &Content, reader: &mut (impl Read + Seek)) -> Result<Self, GenerateFault> {
        let shape = Shape::read(Metadata(content))?;
        let mut tensors = Tensors { content, reader };
        let embedding = tensors.matrix(&["token_embd.weight"], None, shape.width)?;
        let layers =
            (0..shape.layers).map(|index| tensors.layer(index, &shape)).collect::<Result<Vec<_>, _>>()?;
        let output = if tensors.has("output.weight") {
            Some(tensors.matrix(&["output.weight"], Some(embedding.rows()), shape.width)?)
        } else {
            None
        };
        let factors = if tensors.has("rope_freqs.weight") {
            Some(tensors.vector("rope_freqs.weight", shape.rotated / 2)?)
        } else {
            None
        };
        Ok(Self {
            frequencies: shape.rope_frequencies(factors.as_deref()),
            out_norm: tensors.vector("output_norm.weight", shape.width)?,
            shape,
            embedding,
            layers,
            output,
        })
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Tokens of the vocabulary.
    pub(super) fn vocabulary(&self) -> usize {
        self.embedding.rows()
    }

    fn matrices(&self) -> impl Iterator<Item = &Q8Matrix> {
        let layers = self
            .layers
            .iter()
            .flat_map(|layer| [&layer.qkv, &layer.attention_out, &layer.gate_up, &layer.down]);
        layers.chain([&self.embedding]).chain(&self.output)
    }

    /// Number of weights in matrices.
    pub(super) fn parameters(&self) -> u64 {
        self.matrices().map(|matrix| (matrix.rows() * matrix.columns()) as u64).sum()
    }

    /// Bytes of matrices.
    pub(super) fn weight_bytes(&self) -> u64 {
        self.matrices().map(|matrix| matrix.bytes() as u64).sum()
    }

    /// An empty sequence.
    pub(super) fn sequence(&self) -> Sequence {
        Sequence::new(self.shape.layers, self.shape.kv_heads, self.shape.head_size)
    }

    /// Appends tokens to a sequence and leaves the logits after the last one in the buffers. `tokens` holds at least
    /// one, each below [`Model::vocabulary`].
    pub(super) fn forward(&self, tokens: &[u32], sequence: &mut Sequence, scratch: &mut Scratch) {
        let width = self.shape.width;
        scratch.stream.resize(tokens.len() * width, 0.0);
        for (token, row) in tokens.iter().zip(scratch.stream.chunks_exact_mut(width)) {
            self.embedding.copy_row(*token as usize, row);
        }
        let start = sequence.tokens().len();
        let turns = self.turns(start, tokens.len());
        for (layer, heads) in self.layers.iter().zip(&mut sequence.layers) {
            self.attend(layer, heads, start, &turns, scratch);
            self.feed(layer, scratch);
        }
        sequence.push(tokens);
        self.finish(scratch);
    }

    /// Cosine and sine of every pair's angle, position after position.
    fn turns(&self, start: usize, count: usize) -> Vec<(f32, f32)> {
        let angle = |position: usize, frequency: &f32| {
            let (sine, cosine) = (position as f32 * frequency).sin_cos();
            (cosine, sine)
        };
        let positions = start..start + count;
        positions.flat_map(|position| self.frequencies.iter().map(move |f| angle(position, f))).collect()
    }

    fn attend(
        &self,
        layer: &Layer,
        heads: &mut [HeadCache],
        start: usize,
        turns: &[(f32, f32)],
        scratch: &mut Scratch,
    ) {
        let shape = &self.shape;
        let count = scratch.stream.len() / shape.width;
        let row_width = layer.qkv.rows();
        scratch.norm(&layer.attention_norm, shape.norm_epsilon);
        scratch.wide.resize(count * row_width, 0.0);
        layer.qkv.multiply(&scratch.activations, &mut scratch.wide);
        let turned = shape.query_width() + shape.kv_width();
        let pairs = self.frequencies.len();
        for (row, turns) in scratch.wide.chunks_exact_mut(row_width).zip(turns.chunks_exact(pairs)) {
            if let Some(bias) = &layer.qkv_bias {
                math::add(row, bias);
            }
            let (turned, values) = row.split_at_mut(turned);
            for head in turned.chunks_exact_mut(shape.head_size) {
                rotate(head, turns, shape.rotation);
            }
            let (_, keys) = turned.split_at(shape.query_width());
            let new = keys.chunks_exact(shape.head_size).zip(values.chunks_exact(shape.head_size));
            for (head, (key, value)) in heads.iter_mut().zip(new) {
                head.keys.extend_from_slice(key);
                head.values.extend_from_slice(value);
            }
        }
        scratch.mixed.resize(count * shape.query_width(), 0.0);
        mix(shape, heads, start, row_width, &scratch.wide, &mut scratch.mixed);
        scratch.activations.set(&scratch.mixed, shape.query_width());
        scratch.project(&layer.attention_out);
    }

    fn feed(&self, layer: &Layer, scratch: &mut Scratch) {
        let hidden = self.shape.hidden;
        let count = scratch.stream.len() / self.shape.width;
        scratch.norm(&layer.feed_norm, self.shape.norm_epsilon);
        scratch.wide.resize(count * 2 * hidden, 0.0);
        layer.gate_up.multiply(&scratch.activations, &mut scratch.wide);
        scratch.mixed.resize(count * hidden, 0.0);
        let rows = scratch.wide.par_chunks_exact(2 * hidden).zip(scratch.mixed.par_chunks_exact_mut(hidden));
        rows.for_each(|(row, out)| math::gated(row, out));
        scratch.activations.set(&scratch.mixed, hidden);
        scratch.project(&layer.down);
    }

    fn finish(&self, scratch: &mut Scratch) {
        let last = scratch.stream.len() - self.shape.width;
        scratch.stream.drain(..last);
        scratch.norm(&self.out_norm, self.shape.norm_epsilon);
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        scratch.logits.resize(output.rows(), 0.0);
        output.multiply(&scratch.activations, &mut scratch.logits);
    }
}

impl Scratch {
    /// One number a token of the vocabulary, after the last token that was passed.
    pub(super) fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Normalises the stream and makes it ready to be multiplied.
    fn norm(&mut self, weights: &[f32], epsilon: f32) {
        self.normed.resize(self.stream.len(), 0.0);
        math::rms_norm(&self.stream, weights, epsilon, &mut self.normed);
        self.activations.set(&self.normed, weights.len());
    }

    /// Adds the product of the activations to the stream.
    fn project(&mut self, matrix: &Q8Matrix) {
        self.projected.resize(self.stream.len(), 0.0);
        matrix.multiply(&self.activations, &mut self.projected);
        math::add(&mut self.stream, &self.projected);
    }
}

/// Turns the pairs of one head by their angles.
fn rotate(head: &mut [f32], turns: &[(f32, f32)], rotation: Rotation) {
    let turn = |a: &mut f32, b: &mut f32, (cosine, sine): (f32, f32)| {
        (*a, *b) = (*a * cosine - *b * sine, *a * sine + *b * cosine);
    };
    match rotation {
        Rotation::Neighbours => {
            let (pairs, _) = head.as_chunks_mut::<2>();
            for ([a, b], angle) in pairs.iter_mut().zip(turns) {
                turn(a, b, *angle);
            }
        }
        Rotation::Halves => {
            let (low, high) = head.split_at_mut(turns.len());
            for ((a, b), angle) in low.iter_mut().zip(high).zip(turns) {
                turn(a, b, *angle);
            }
        }
    }
}

/// Attention of every new position over all before it. A unit of work is one position's group of query heads that
/// share a key-value head; its result is a contiguous piece of `out`.
///
/// Source: Ainslie et al. 2023, "GQA", §2.2.
fn mix(shape: &Shape, heads: &[HeadCache], start: usize, row_width: usize, rows: &[f32], out: &mut [f32]) {
    let group_width = shape.query_width() / shape.kv_heads;
    let scale = (shape.head_size as f32).sqrt().recip();
    let units = out.par_chunks_exact_mut(group_width).enumerate();
    units.for_each_init(Vec::new, |scores, (unit, out)| {
        let (position, head) = (unit / shape.kv_heads, unit % shape.kv_heads);
        let from = position * row_width + head * group_width;
        let queries = rows.get(from..from + group_width).unwrap_or_default();
        let Some(cache) = heads.get(head) else { return };
        let seen = (start + position + 1) * shape.head_size;
        math::wide(
            #[inline(always)]
            || {
                let pairs = queries.chunks_exact(shape.head_size).zip(out.chunks_exact_mut(shape.head_size));
                for (query, out) in pairs {
                    scores.clear();
                    let keys = cache.keys.chunks_exact(shape.head_size).take(start + position + 1);
                    scores.extend(keys.map(|key| math::dot(query, key) * scale));
                    math::softmax(scores);
                    out.fill(0.0);
                    let values = cache.values.get(..seen).unwrap_or_default().chunks_exact(shape.head_size);
                    for (score, value) in scores.iter().zip(values) {
                        math::add_scaled(out, *score, value);
                    }
                }
            },
        );
    });
}
