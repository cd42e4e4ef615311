//! Text to tokens and tokens to bytes, from the vocabulary inside a GGUF file.
//!
//! Byte-level BPE only. It knows special tokens, and that they are control where the chat template wrote them and
//! plain text where a person (or another model) did: [`Vocabulary::disarm`] keeps the two apart.

use std::collections::{BTreeMap, BTreeSet};

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::{NFC, NormalizerWrapper, Sequence as Normalizers};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, PreTokenizerWrapper, Tokenizer};

use super::fault::GenerateFault;
use super::gguf::{Metadata, whole_number};

/// Put inside a special token's spelling to make it text; a Unicode noncharacter, removed before tokens are made.
const DISARM: char = '\u{FDD0}';

/// Source: `tokenizer.json` of Qwen2.5; llama.cpp, `LLAMA_VOCAB_PRE_TYPE_QWEN2`.
const QWEN2_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Source: `tokenizer.json` of Llama 3; llama.cpp, `LLAMA_VOCAB_PRE_TYPE_LLAMA3`.
const LLAMA3_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Names of tokens that end a turn, in the chat formats of the supported families.
const TURN_ENDS: [&str; 5] = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>"];

/// Source: ggml, `llama_token_type`.
const TYPE_CONTROL: usize = 3;
const TYPE_USER_DEFINED: usize = 4;
const TYPE_UNUSED: usize = 5;

/// The vocabulary of one model.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    bytes: Vec<Box<[u8]>>,
    specials: Vec<String>,
    silent: BTreeSet<u32>,
    ends: BTreeSet<u32>,
    bos: Option<(u32, String)>,
    eos: String,
    adds_bos: bool,
    longest_token_bytes: usize,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary").field("tokens", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// Builds the vocabulary from a file's `tokenizer.ggml.*` keys.
    ///
    /// # Errors
    /// [`GenerateFault::Unsupported`] for another kind of tokenizer; [`GenerateFault::File`] where keys are missing.
    pub(super) fn read(metadata: Metadata<'_>) -> Result<Self, GenerateFault> {
        match metadata.text("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => return Err(GenerateFault::Unsupported(format!("tokenizer {other:?}"))),
        }
        let names = texts(metadata, "tokenizer.ggml.tokens")?;
        let kinds: Vec<usize> = metadata
            .list("tokenizer.ggml.token_type")
            .map(|kinds| kinds.iter().map(|kind| whole_number(kind).unwrap_or(1)).collect())
            .unwrap_or_default();
        let of_kind = |wanted: &'static [usize]| {
            names.iter().zip(&kinds).enumerate().filter(move |(_, (_, kind))| wanted.contains(kind))
        };
        let id = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let silent: BTreeSet<u32> =
            of_kind(&[TYPE_CONTROL, TYPE_UNUSED]).map(|(index, _)| id(index)).collect();
        let specials: Vec<String> =
            of_kind(&[TYPE_CONTROL, TYPE_USER_DEFINED]).map(|(_, (name, _))| name.clone()).collect();
        let special = |key: &str| {
            let index = metadata.number(key)?;
            names.get(index).map(|name| (id(index), name.clone()))
        };
        let bos = special("tokenizer.ggml.bos_token_id");
        let eos = special("tokenizer.ggml.eos_token_id");
        let known_ends = names
            .iter()
            .enumerate()
            .filter(|(index, name)| silent.contains(&id(*index)) && TURN_ENDS.contains(&name.as_str()));
        let ends = known_ends.map(|(index, _)| id(index)).chain(eos.iter().map(|(id, _)| *id)).collect();
        let bytes = token_bytes(&names, &specials);
        Ok(Self {
            tokenizer: tokenizer(metadata, &names, &specials)?,
            longest_token_bytes: bytes.iter().map(|bytes| bytes.len()).max().unwrap_or(1).max(1),
            bytes,
            specials,
            silent,
            ends,
            bos,
            eos: eos.map(|(_, name)| name).unwrap_or_default(),
            adds_bos: metadata.flag("tokenizer.ggml.add_bos_token").unwrap_or(false),
        })
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The spelling of the token that begins a sequence.
    pub(super) fn bos(&self) -> &str {
        self.bos.as_ref().map(|(_, name)| name.as_str()).unwrap_or_default()
    }

    /// The spelling of the token that ends a sequence.
    pub(super) fn eos(&self) -> &str {
        &self.eos
    }

    /// Whether a token ends the assistant's turn.
    pub(super) fn ends_turn(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The bytes that a token adds to an answer; none for control tokens.
    pub(super) fn answer_bytes(&self, token: u32) -> &[u8] {
        if self.silent.contains(&token) { &[] } else { self.bytes(token) }
    }

    /// The bytes that spell a token.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map(AsRef::as_ref).unwrap_or_default()
    }

    /// Fewest tokens that a text of so many bytes can have.
    pub(super) fn fewest_tokens(&self, bytes: usize) -> usize {
        bytes / self.longest_token_bytes
    }

    /// The text with every special token's spelling broken, so that it can only become text.
    pub(super) fn disarm(&self, text: &str) -> String {
        let mut text = text.replace(DISARM, "");
        for special in &self.specials {
            if text.contains(special.as_str()) {
                let mut letters = special.chars();
                let broken: String = letters.next().into_iter().chain([DISARM]).chain(letters).collect();
                text = text.replace(special.as_str(), &broken);
            }
        }
        text
    }

    /// Tokens of a rendered prompt: special tokens are control unless disarmed.
    ///
    /// # Errors
    /// [`GenerateFault::Inference`] if the tokenizer fails, which it has no reason to.
    pub(super) fn encode_prompt(&self, prompt: &str) -> Result<Vec<u32>, GenerateFault> {
        let encoding = self.tokenizer.encode_fast(prompt, false);
        let encoding = encoding.map_err(|fault| GenerateFault::Inference(fault.to_string()))?;
        let mut tokens = encoding.get_ids().to_vec();
        if let Some((bos, _)) =
            self.bos.as_ref().filter(|(bos, _)| self.adds_bos && tokens.first() != Some(bos))
        {
            tokens.insert(0, *bos);
        }
        Ok(tokens)
    }

    /// Tokens of a plain text.
    pub(super) fn count(&self, text: &str) -> usize {
        self.tokenizer.encode_fast(self.disarm(text), false).map_or(0, |encoding| encoding.len())
    }
}

fn texts(metadata: Metadata<'_>, key: &str) -> Result<Vec<String>, GenerateFault> {
    let values = metadata.list(key).ok_or_else(|| GenerateFault::File(format!("{key} is missing")))?;
    let text = |value: &candle_core::quantized::gguf_file::Value| {
        value
            .to_string()
            .cloned()
            .map_err(|_| GenerateFault::File(format!("{key} holds something other than text")))
    };
    values.iter().map(text).collect()
}

fn tokenizer(
    metadata: Metadata<'_>,
    names: &[String],
    specials: &[String],
) -> Result<Tokenizer, GenerateFault> {
    let file = |reason: String| GenerateFault::File(reason);
    let pre = metadata.text("tokenizer.ggml.pre").unwrap_or("default");
    let vocab: Vocab = names.iter().cloned().zip(0u32..).collect();
    let pair = |merge: String| {
        let (left, right) =
            merge.split_once(' ').ok_or_else(|| file(format!("merge `{merge}` is no pair")))?;
        Ok((left.to_owned(), right.to_owned()))
    };
    let merges =
        texts(metadata, "tokenizer.ggml.merges")?.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?;
    let bpe =
        BPE::builder().vocab_and_merges(vocab, merges).ignore_merges(matches!(pre, "llama-bpe" | "llama3"));
    let mut tokenizer = Tokenizer::new(bpe.build().map_err(|fault| file(fault.to_string()))?);
    tokenizer.with_pre_tokenizer(Some(words(pre)?));
    let armed = Replace::new(DISARM.to_string(), "").map_err(|fault| file(fault.to_string()))?;
    let mut normalizers: Vec<NormalizerWrapper> = vec![armed.into()];
    if pre == "qwen2" {
        normalizers.push(NFC.into());
    }
    let normalizer: NormalizerWrapper = Normalizers::new(normalizers).into();
    tokenizer.with_normalizer(Some(normalizer)).map_err(|fault| file(fault.to_string()))?;
    let added = specials.iter().map(|name| AddedToken::from(name.clone(), true).normalized(false));
    tokenizer.add_special_tokens(added).map_err(|fault| file(fault.to_string()))?;
    Ok(tokenizer)
}

/// How text is cut into words before pairs are merged.
fn words(pre: &str) -> Result<PreTokenizerWrapper, GenerateFault> {
    let by_regex = |regex: &str| {
        let pattern = SplitPattern::Regex(regex.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        let split = split.map_err(|fault| GenerateFault::File(fault.to_string()))?;
        Ok(PreTokenizers::new(vec![split.into(), ByteLevel::new(false, false, false).into()]).into())
    };
    let gpt2 = ByteLevel::new(false, false, true);
    match pre {
        "smollm" => Ok(PreTokenizers::new(vec![Digits::new(true).into(), gpt2.into()]).into()),
        "qwen2" => by_regex(QWEN2_WORDS),
        "llama-bpe" | "llama3" => by_regex(LLAMA3_WORDS),
        "default" | "gpt-2" => Ok(gpt2.into()),
        other => Err(GenerateFault::Unsupported(format!("pre-tokenizer `{other}`"))),
    }
}

/// The bytes of every token: special tokens as spelled, others through the byte-level alphabet.
fn token_bytes(names: &[String], specials: &[String]) -> Vec<Box<[u8]>> {
    let alphabet = byte_alphabet();
    let specials: BTreeSet<&String> = specials.iter().collect();
    let spell = |name: &String| -> Box<[u8]> {
        if specials.contains(name) {
            return name.as_bytes().into();
        }
        let bytes: Option<Vec<u8>> = name.chars().map(|letter| alphabet.get(&letter).copied()).collect();
        bytes.unwrap_or_else(|| name.as_bytes().to_vec()).into()
    };
    names.iter().map(spell).collect()
}

/// The letters that stand for bytes: printable Latin-1 for itself, the rest from U+0100 on.
///
/// Source: GPT-2, `bytes_to_unicode`.
fn byte_alphabet() -> BTreeMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let own = (0..=u8::MAX).filter(|byte| printable(*byte)).map(|byte| (char::from(byte), byte));
    let shifted = (0..=u8::MAX).filter(|byte| !printable(*byte)).zip('\u{100}'..);
    own.chain(shifted.map(|(byte, letter)| (letter, byte))).collect()
}
