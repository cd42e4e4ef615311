//! What a GGUF file says about its model: shape, rotary embedding, norms.
//!
//! It reads metadata and no weight. Invariant: a [`Shape`] that was read is consistent (heads divide, sizes are not
//! zero), so that nobody behind it has to ask again.

use candle_core::quantized::gguf_file::{Content, Value};

use super::fault::GenerateFault;

/// Typed reading of a file's metadata.
#[derive(Clone, Copy)]
pub(super) struct Metadata<'a>(pub(super) &'a Content);

impl<'a> Metadata<'a> {
    pub(super) fn value(self, key: &str) -> Option<&'a Value> {
        self.0.metadata.get(key)
    }

    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn number(self, key: &str) -> Option<usize> {
        whole_number(self.value(key)?)
    }

    pub(super) fn real(self, key: &str) -> Option<f32> {
        match self.value(key)? {
            Value::F32(number) => Some(*number),
            Value::F64(number) => Some(*number as f32),
            other => whole_number(other).map(|number| number as f32),
        }
    }

    pub(super) fn list(self, key: &str) -> Option<&'a [Value]> {
        match self.value(key)? {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
}

/// A whole number of any width.
pub(super) fn whole_number(value: &Value) -> Option<usize> {
    match *value {
        Value::U8(number) => Some(number.into()),
        Value::U16(number) => Some(number.into()),
        Value::U32(number) => number.try_into().ok(),
        Value::U64(number) => number.try_into().ok(),
        Value::I8(number) => number.try_into().ok(),
        Value::I16(number) => number.try_into().ok(),
        Value::I32(number) => number.try_into().ok(),
        Value::I64(number) => number.try_into().ok(),
        _ => None,
    }
}

/// Which numbers of a head are turned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    /// Neighbours: 0 with 1, 2 with 3. Source: llama.cpp, `LLAMA_ROPE_TYPE_NORM`, architecture `llama`.
    Neighbours,
    /// Halves: 0 with n/2. Source: llama.cpp, `LLAMA_ROPE_TYPE_NEOX`, architecture `qwen2`.
    Halves,
}

/// Sizes and constants of a decoder of the Llama or Qwen2 family.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) family: String,
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_size: usize,
    pub(super) rotated: usize,
    pub(super) rotation: Rotation,
    pub(super) rope_base: f32,
    pub(super) rope_divisor: f32,
    pub(super) norm_epsilon: f32,
    pub(super) context_window: usize,
}

/// Largest size that is believed: more is taken for a damaged file.
const LARGEST_SIZE: usize = 1 << 20;

impl Shape {
    /// Reads and checks the shape.
    ///
    /// # Errors
    /// [`GenerateFault::Unsupported`] for another family or rope scaling; [`GenerateFault::File`] for sizes that are
    /// missing or contradict each other.
    pub(super) fn read(metadata: Metadata<'_>) -> Result<Self, GenerateFault> {
        let family = metadata.text("general.architecture").unwrap_or_default();
        let rotation = match family {
            "llama" => Rotation::Neighbours,
            "qwen2" => Rotation::Halves,
            other => return Err(GenerateFault::Unsupported(format!("architecture `{other}`"))),
        };
        let key = |name: &str| format!("{family}.{name}");
        let size = |name: &str| match metadata.number(&key(name)) {
            Some(number) if (1..=LARGEST_SIZE).contains(&number) => Ok(number),
            Some(number) => Err(GenerateFault::File(format!("{} is {number}", key(name)))),
            None => Err(GenerateFault::File(format!("{} is missing", key(name)))),
        };
        let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_size = size("attention.key_length").unwrap_or(width / heads);
        let shape = Self {
            family: family.to_owned(),
            layers: size("block_count")?,
            width,
            hidden: size("feed_forward_length")?,
            heads,
            kv_heads: size("attention.head_count_kv").unwrap_or(heads),
            head_size,
            rotated: size("rope.dimension_count").unwrap_or(head_size),
            rotation,
            rope_base: metadata.real(&key("rope.freq_base")).unwrap_or(10_000.0),
            rope_divisor: rope_divisor(metadata, family)?,
            norm_epsilon: metadata.real(&key("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5),
            context_window: size("context_length")?,
        };
        shape.check()?;
        Ok(shape)
    }

    fn check(&self) -> Result<(), GenerateFault> {
        let holds = self.heads.is_multiple_of(self.kv_heads)
            && self.head_size > 0
            && self.head_size.is_multiple_of(2)
            && self.rotated.is_multiple_of(2)
            && self.rotated <= self.head_size;
        if holds {
            Ok(())
        } else {
            Err(GenerateFault::File("attention sizes contradict each other".to_owned()))
        }
    }

    /// Numbers of all query heads.
    pub(super) fn query_width(&self) -> usize {
        self.heads * self.head_size
    }

    /// Numbers of all key (or value) heads.
    pub(super) fn kv_width(&self) -> usize {
        self.kv_heads * self.head_size
    }

    /// How fast each pair turns: radians a position. `factors` are the file's own divisors, where it has them.
    ///
    /// Source: Su et al. 2021, "RoFormer", §3.2.2; divisors: Llama 3.1's `rope_freqs`.
    pub(super) fn rope_frequencies(&self, factors: Option<&[f32]>) -> Vec<f32> {
        let pairs = self.rotated / 2;
        let frequency = |pair: usize| {
            let exponent = -2.0 * pair as f64 / self.rotated as f64;
            let factor = factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
            (f64::from(self.rope_base).powf(exponent) / f64::from(factor * self.rope_divisor)) as f32
        };
        (0..pairs).map(frequency).collect()
    }
}

/// What positions are divided by; only linear scaling is known.
fn rope_divisor(metadata: Metadata<'_>, family: &str) -> Result<f32, GenerateFault> {
    match metadata.text(&format!("{family}.rope.scaling.type")) {
        None | Some("none") => Ok(1.0),
        Some("linear") => Ok(metadata.real(&format!("{family}.rope.scaling.factor")).unwrap_or(1.0)),
        Some(other) => Err(GenerateFault::Unsupported(format!("rope scaling `{other}`"))),
    }
}
