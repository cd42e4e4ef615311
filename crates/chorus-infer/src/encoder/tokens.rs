//! Text → token ids, with what frames a window.
//!
//! It knows tokenizers and no graph. Invariant: what a tokenizer's file says of truncation and padding is undone, so
//! that all of a text becomes tokens; windows take its place.

use std::collections::BTreeMap;
use std::path::Path;

use tokenizers::models::unigram::Unigram;
use tokenizers::{Model, Tokenizer};

use super::EncodeFault;
use super::packed::Vocabulary;

/// The mark that stands for a space before a piece. Source: SentencePiece.
const SPACE_MARK: char = '\u{2581}';

/// A tokenizer and its frame.
pub(super) struct Tokens {
    how: How,
    /// Id before a window.
    pub(super) begin: u32,
    /// Id after a window.
    pub(super) end: u32,
    /// Ids that stand before the text in every window: what the model was trained to see there.
    pub(super) prefix: Vec<u32>,
}

enum How {
    /// A `tokenizer.json`.
    File(Box<Tokenizer>),
    /// Pieces of a packed file.
    Pieces { model: Box<Unigram>, unknown: u32, rewrites: BTreeMap<char, String> },
}

impl Tokens {
    /// The tokenizer of a `tokenizer.json`, which names its special tokens as BERT does or as XLM-R does.
    pub(super) fn open(path: &Path, prefix: &str) -> Result<Self, EncodeFault> {
        let mut tokenizer = Tokenizer::from_file(path).map_err(|fault| super::at(path, &fault))?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|fault| super::at(path, &fault))?;
        let special = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| tokenizer.token_to_id(name));
            found.ok_or_else(|| EncodeFault(format!("the tokenizer has no {}", names[0])))
        };
        let (begin, end) = (special(["[CLS]", "<s>"])?, special(["[SEP]", "</s>"])?);
        Self { how: How::File(Box::new(tokenizer)), begin, end, prefix: Vec::new() }.with_prefix(prefix)
    }

    /// The tokenizer of a packed file.
    pub(super) fn packed(vocabulary: Vocabulary, prefix: &str) -> Result<Self, EncodeFault> {
        let Vocabulary { pieces, begin, end, unknown, rewrites } = vocabulary;
        let model = Unigram::from(pieces, Some(unknown as usize), false)
            .map_err(|fault| EncodeFault(fault.to_string()))?;
        let how = How::Pieces { model: Box::new(model), unknown, rewrites };
        Self { how, begin, end, prefix: Vec::new() }.with_prefix(prefix)
    }

    fn with_prefix(mut self, prefix: &str) -> Result<Self, EncodeFault> {
        self.prefix = self.ids(prefix)?;
        Ok(self)
    }

    /// Token ids of a text, without any frame.
    pub(super) fn ids(&self, text: &str) -> Result<Vec<u32>, EncodeFault> {
        match &self.how {
            How::File(tokenizer) => {
                let encoding =
                    tokenizer.encode_fast(text, false).map_err(|fault| EncodeFault(fault.to_string()))?;
                Ok(encoding.get_ids().to_vec())
            }
            How::Pieces { model, unknown, rewrites } => {
                let mut ids = Vec::new();
                for word in rewritten(text, rewrites).split_whitespace() {
                    let pieces = model
                        .tokenize(&format!("{SPACE_MARK}{word}"))
                        .map_err(|fault| EncodeFault(fault.to_string()))?;
                    ids.extend(
                        pieces.iter().map(|piece| if piece.value.is_empty() { *unknown } else { piece.id }),
                    );
                }
                Ok(ids)
            }
        }
    }
}

fn rewritten(text: &str, rewrites: &BTreeMap<char, String>) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match rewrites.get(&letter) {
            Some(other) => out.push_str(other),
            None => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        let pieces = [
            ("<unk>", 0.0),
            ("<s>", 0.0),
            ("</s>", 0.0),
            ("▁", -2.0),
            ("▁fi", -1.0),
            ("sh", -1.5),
            ("q:", -1.0),
        ];
        let vocabulary = Vocabulary {
            pieces: pieces.iter().map(|(piece, score)| ((*piece).to_owned(), *score)).collect(),
            begin: 1,
            end: 2,
            unknown: 0,
            rewrites: BTreeMap::from([
                ('ﬁ', "fi".to_owned()),
                ('\t', " ".to_owned()),
                ('\u{1}', String::new()),
            ]),
        };
        Tokens::packed(vocabulary, "q: ").unwrap()
    }

    #[test]
    fn words_are_rewritten_marked_and_cut_into_the_likeliest_pieces() {
        let tokens = tokens();
        assert_eq!(tokens.prefix, [3, 6]);
        for (text, want) in [
            ("ﬁsh", vec![4, 5]),
            (" fi\u{1}sh\t\n fi ", vec![4, 5, 4]),
            ("", vec![]),
            ("fi\u{2603}sh", vec![4, 0, 5]),
        ] {
            assert_eq!(tokens.ids(text).unwrap(), want, "{text:?}");
        }
    }
}
