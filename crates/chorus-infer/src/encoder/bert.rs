//! The BERT encoder as a graph: token ids → one mean-pooled vector a text.
//!
//! It knows the architecture and its tensors' names; it knows no tokenizer and no run time. Invariant: no
//! operator looks across texts, so that a text's vector does not depend on what else is in its batch. This is why
//! activations are quantised token by token, and why the graph has no padding mask: texts that share a pass
//! have the same length.

use super::EncodeFault;
use super::graph::{GraphWriter, Name, float, integer, integer_list};
use super::quantise;
use super::weights::Tensors;

/// Names of the graph's inputs and its output.
pub(super) const TOKENS: &str = "tokens";
/// Place of each token, `0..length`.
pub(super) const PLACES: &str = "places";
/// One vector a text.
pub(super) const POOLED: &str = "pooled";

/// Width of an attention head; the same in every MiniLM and BERT. Source: the model's `config.json`.
const HEAD_WIDTH: usize = 32;
/// Source: `layer_norm_eps` in the model's `config.json`.
const NORM_EPSILON: f32 = 1e-12;
/// Levels of a weight: 7 bits. Two products of an 8-bit activation and a 7-bit weight fit 16 bits, which is what
/// x86 without VNNI sums them in; 8-bit weights would saturate there. Source: oneDNN, "Nuances of int8 computations".
const WEIGHT_LIMIT: i8 = 63;
/// Levels of a token embedding: it is only looked up, never multiplied as an integer.
const EMBEDDING_LIMIT: i8 = 127;
/// The unsigned byte that stands for an activation of zero.
const ACTIVATION_ZERO: u8 = 128;
/// Keeps the scale of an all-zero token from being zero.
const SMALLEST_ACTIVATION: f32 = 1e-6;

/// How the linear layers compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Weights as 7-bit integers with one scale a column, activations as 8-bit integers with one scale a token.
    Int8,
    /// 32-bit floats throughout: the yardstick for what [`Precision::Int8`] costs.
    Float,
}

/// Writes the model in `weights` as an ONNX file's bytes.
pub(super) fn convert(weights: &mut dyn Tensors, precision: Precision) -> Result<Vec<u8>, EncodeFault> {
    let hidden = weights.width("embeddings.word_embeddings.weight")?;
    if hidden == 0 || !hidden.is_multiple_of(HEAD_WIDTH) {
        return Err(EncodeFault(format!("token embeddings of width {hidden} are not a BERT's")));
    }
    let mut bert = Bert::new(weights, hidden, precision);
    let mut state = bert.embeddings()?;
    let mut layer = 0;
    while bert.weights.has(&format!("encoder.layer.{layer}.output.dense.weight")) {
        state = bert.layer(layer, &state)?;
        layer += 1;
    }
    let pooled = bert.pool(&state);
    bert.graph.finish(&pooled, POOLED, &["batch", "hidden"])
}

struct Bert<'a> {
    weights: &'a mut dyn Tensors,
    graph: GraphWriter,
    hidden: usize,
    precision: Precision,
    last_axis: Name,
}

impl<'a> Bert<'a> {
    fn new(weights: &'a mut dyn Tensors, hidden: usize, precision: Precision) -> Self {
        let mut graph = GraphWriter::default();
        let last_axis = graph.integers(&[-1]);
        Self { weights, graph, hidden, precision, last_axis }
    }

    /// Token, place and type embeddings, summed and normalised.
    fn embeddings(&mut self) -> Result<Name, EncodeFault> {
        let tokens = self.graph.input(TOKENS, &["batch", "length"]);
        let places = self.graph.input(PLACES, &["length"]);
        let words = self.weights.read("embeddings.word_embeddings.weight")?;
        let vocabulary = words.len() / self.hidden;
        let words = quantise::rows(&words, self.hidden, EMBEDDING_LIMIT);
        let levels = self.graph.signed_bytes(&[vocabulary, self.hidden], &words.levels);
        let scales = self.graph.floats(&[vocabulary, 1], &words.scales);
        let levels = self.graph.apply("Gather", &[&levels, &tokens], vec![]);
        let scales = self.graph.apply("Gather", &[&scales, &tokens], vec![]);
        let levels = self.graph.apply("Cast", &[&levels], vec![integer("to", 1)]);
        let word = self.graph.apply("Mul", &[&levels, &scales], vec![]);

        // A single text has type 0 throughout, so that row is folded into every place.
        let kinds = self.weights.read("embeddings.token_type_embeddings.weight")?;
        let mut place_rows = self.weights.read("embeddings.position_embeddings.weight")?;
        for row in place_rows.chunks_mut(self.hidden) {
            row.iter_mut().zip(&kinds).for_each(|(value, kind)| *value += kind);
        }
        let place_count = place_rows.len() / self.hidden;
        let place_rows = self.graph.floats(&[place_count, self.hidden], &place_rows);
        let place = self.graph.apply("Gather", &[&place_rows, &places], vec![]);
        let sum = self.graph.apply("Add", &[&word, &place], vec![]);
        self.normalise("embeddings.LayerNorm", &sum)
    }

    /// One transformer layer: attention, then feed-forward, each with its residual and norm.
    fn layer(&mut self, layer: usize, state: &str) -> Result<Name, EncodeFault> {
        let prefix = format!("encoder.layer.{layer}");
        let context = self.attention(&prefix, state)?;
        let context = self.activation(&context);
        let attended = self.linear(&format!("{prefix}.attention.output.dense"), &context, 1.0)?;
        let sum = self.graph.apply("Add", &[&attended, state], vec![]);
        let state = self.normalise(&format!("{prefix}.attention.output.LayerNorm"), &sum)?;

        let narrow = self.activation(&state);
        let wide = self.linear(&format!("{prefix}.intermediate.dense"), &narrow, 1.0)?;
        let wide = self.graph.apply("Gelu", &[&wide], vec![]);
        let wide = self.activation(&wide);
        let narrow = self.linear(&format!("{prefix}.output.dense"), &wide, 1.0)?;
        let sum = self.graph.apply("Add", &[&narrow, &state], vec![]);
        self.normalise(&format!("{prefix}.output.LayerNorm"), &sum)
    }

    /// Scaled dot-product attention over all tokens of a text. Source: Vaswani et al. 2017, §3.2.
    fn attention(&mut self, prefix: &str, state: &str) -> Result<Name, EncodeFault> {
        let state = self.activation(state);
        // The factor 1/√width is folded into the query's weights.
        let scale = 1.0 / (HEAD_WIDTH as f32).sqrt();
        let query = self.linear(&format!("{prefix}.attention.self.query"), &state, scale)?;
        let key = self.linear(&format!("{prefix}.attention.self.key"), &state, 1.0)?;
        let value = self.linear(&format!("{prefix}.attention.self.value"), &state, 1.0)?;
        let query = self.split_heads(&query, &[0, 2, 1, 3]);
        let key = self.split_heads(&key, &[0, 2, 3, 1]);
        let value = self.split_heads(&value, &[0, 2, 1, 3]);
        let scores = self.graph.apply("MatMul", &[&query, &key], vec![]);
        let shares = self.graph.apply("Softmax", &[&scores], vec![integer("axis", -1)]);
        let context = self.graph.apply("MatMul", &[&shares, &value], vec![]);
        let context = self.graph.apply("Transpose", &[&context], vec![integer_list("perm", &[0, 2, 1, 3])]);
        let shape = self.graph.integers(&[0, 0, self.hidden as i64]);
        Ok(self.graph.apply("Reshape", &[&context, &shape], vec![]))
    }

    /// `[batch, length, hidden]` → `[batch, length, heads, width]`, with its axes in the order of `axes`.
    fn split_heads(&mut self, input: &str, axes: &[i64]) -> Name {
        let heads = (self.hidden / HEAD_WIDTH) as i64;
        let shape = self.graph.integers(&[0, 0, heads, HEAD_WIDTH as i64]);
        let split = self.graph.apply("Reshape", &[input, &shape], vec![]);
        self.graph.apply("Transpose", &[&split], vec![integer_list("perm", axes)])
    }

    /// Prepares the input of one or more linear layers.
    fn activation(&mut self, input: &str) -> Activation {
        if self.precision == Precision::Float {
            return Activation::Float(input.to_owned());
        }
        // The largest magnitude, by way of both extremes: rten's `Abs` costs more than the two reductions.
        let highest = self.graph.apply("ReduceMax", &[input, &self.last_axis], vec![]);
        let lowest = self.graph.apply("ReduceMin", &[input, &self.last_axis], vec![]);
        let lowest = self.graph.apply("Neg", &[&lowest], vec![]);
        let floor = self.graph.floats(&[], &[SMALLEST_ACTIVATION]);
        let largest = self.graph.apply("Max", &[&highest, &lowest, &floor], vec![]);
        let limit = self.graph.floats(&[], &[f32::from(i8::MAX)]);
        let scale = self.graph.apply("Div", &[&largest, &limit], vec![]);
        let scaled = self.graph.apply("Div", &[input, &scale], vec![]);
        let unit = self.graph.floats(&[], &[1.0]);
        let zero = self.graph.byte(ACTIVATION_ZERO);
        let levels = self.graph.apply("QuantizeLinear", &[&scaled, &unit, &zero], vec![]);
        Activation::Quantised { levels, zero, scale }
    }

    /// `factor × (input · weightᵀ + bias)`.
    fn linear(&mut self, name: &str, input: &Activation, factor: f32) -> Result<Name, EncodeFault> {
        let mut weight = self.weights.read(&format!("{name}.weight"))?;
        let mut bias = self.weights.read(&format!("{name}.bias"))?;
        weight.iter_mut().chain(&mut bias).for_each(|value| *value *= factor);
        let columns = bias.len();
        let depth = weight.len() / columns.max(1);
        let bias = self.graph.floats(&[columns], &bias);
        let product = match input {
            Activation::Float(input) => {
                let weight = self.graph.floats(&[depth, columns], &quantise::transpose(&weight, depth));
                self.graph.apply("MatMul", &[input, &weight], vec![])
            }
            Activation::Quantised { levels, zero, scale } => {
                let quantised = quantise::rows(&weight, depth, WEIGHT_LIMIT);
                let weight = quantise::transpose(&quantised.levels, depth);
                let weight = self.graph.signed_bytes(&[depth, columns], &weight);
                let weight_zero = self.graph.signed_bytes(&[], &[0]);
                let weight_scale = self.graph.floats(&[columns], &quantised.scales);
                let sums = self.graph.apply("MatMulInteger", &[levels, &weight, zero, &weight_zero], vec![]);
                let sums = self.graph.apply("Cast", &[&sums], vec![integer("to", 1)]);
                let sums = self.graph.apply("Mul", &[&sums, &weight_scale], vec![]);
                self.graph.apply("Mul", &[&sums, scale], vec![])
            }
        };
        Ok(self.graph.apply("Add", &[&product, &bias], vec![]))
    }

    fn normalise(&mut self, name: &str, input: &str) -> Result<Name, EncodeFault> {
        let weight = self.weights.read(&format!("{name}.weight"))?;
        let bias = self.weights.read(&format!("{name}.bias"))?;
        let weight = self.graph.floats(&[weight.len()], &weight);
        let bias = self.graph.floats(&[bias.len()], &bias);
        let attributes = vec![integer("axis", -1), float("epsilon", NORM_EPSILON)];
        Ok(self.graph.apply("LayerNormalization", &[input, &weight, &bias], attributes))
    }

    /// The mean over a text's tokens, special ones included, as the model was trained.
    fn pool(&mut self, state: &str) -> Name {
        let axis = self.graph.integers(&[1]);
        self.graph.apply("ReduceMean", &[state, &axis], vec![integer("keepdims", 0)])
    }
}

/// The input of a linear layer.
enum Activation {
    Float(Name),
    Quantised { levels: Name, zero: Name, scale: Name },
}
