//! The heads that the binary carries: one set an encoder.
//!
//! It knows files and which encoder each set is for; it knows no text. Invariant: every head of a set names the digest of
//! the set's encoder, so that [`for_encoder`] never gives a linear head that was trained on other vectors.

use std::sync::OnceLock;

use super::Head;
use crate::mixed::MixedHead;

/// The heads over one encoder.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heads {
    /// One probability a category of MMLU-Pro, of which there are 14.
    pub domain: Option<&'static Head>,
    /// Labels `easy` and `hard` at least; over [`crate::lexical::join`]ed vectors with the default encoder, over plain ones
    /// with one of many languages.
    pub complexity: Option<&'static Head>,
    /// `needs_fact_check` and `no_fact_check_needed`, over [`crate::lexical::join`]ed vectors.
    pub fact_check: Option<&'static Head>,
    /// Four kinds of feedback, and `none`, over [`crate::lexical::join`]ed vectors.
    pub user_feedback: Option<&'static Head>,
    /// `AR`, `DIFFUSION` and `BOTH`, over [`crate::lexical::join`]ed vectors.
    pub modality: Option<&'static Head>,
    /// The probability that a text tries to take over the model.
    pub injection: Option<&'static MixedHead>,
}

/// The built-in heads of the default encoder. Their labels are those of every set.
#[must_use]
pub fn of_default() -> Heads {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| Set::parse(&DEFAULT)).heads()
}

/// The built-in heads of an encoder, by its digest. One that none were trained on has the default injection head alone:
/// that is of use by its words.
#[must_use]
pub fn for_encoder(digest: &str) -> Heads {
    // Only the set that is asked for is read: most processes use the default encoder.
    let fits = |heads: &Heads| heads.domain.is_some_and(|head| head.encoder_digest() == digest);
    let found = Some(of_default()).filter(fits).or_else(|| Some(of_multilingual()).filter(fits));
    found.unwrap_or_else(|| Heads { injection: of_default().injection, ..Heads::default() })
}

fn of_multilingual() -> Heads {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| Set::parse(&MULTILINGUAL)).heads()
}

/// The files of a set.
struct Files {
    domain: &'static [u8],
    complexity: &'static [u8],
    fact_check: &'static [u8],
    user_feedback: &'static [u8],
    modality: &'static [u8],
    injection: &'static [u8],
}

/// Of [`crate::encoder::DEFAULT_ENCODER`].
static DEFAULT: Files = Files {
    domain: include_bytes!("../../heads/domain.safetensors"),
    complexity: include_bytes!("../../heads/complexity.safetensors"),
    fact_check: include_bytes!("../../heads/fact_check.safetensors"),
    user_feedback: include_bytes!("../../heads/user_feedback.safetensors"),
    modality: include_bytes!("../../heads/modality.safetensors"),
    injection: include_bytes!("../../heads/injection.safetensors"),
};

/// Of [`crate::encoder::MULTILINGUAL_ENCODER`].
static MULTILINGUAL: Files = Files {
    domain: include_bytes!("../../heads/multilingual-e5-small/domain.safetensors"),
    complexity: include_bytes!("../../heads/multilingual-e5-small/complexity.safetensors"),
    fact_check: include_bytes!("../../heads/multilingual-e5-small/fact_check.safetensors"),
    user_feedback: include_bytes!("../../heads/multilingual-e5-small/user_feedback.safetensors"),
    modality: include_bytes!("../../heads/multilingual-e5-small/modality.safetensors"),
    // What it knows of words is of use with any encoder, and does as well alone.
    injection: DEFAULT.injection,
};

/// A set that has been read; a file that does not parse, which a test rules out, is a head that is not there.
struct Set {
    domain: Option<Head>,
    complexity: Option<Head>,
    fact_check: Option<Head>,
    user_feedback: Option<Head>,
    modality: Option<Head>,
    injection: Option<MixedHead>,
}

impl Set {
    fn parse(files: &Files) -> Self {
        Self {
            domain: Head::parse(files.domain).ok(),
            complexity: Head::parse(files.complexity).ok(),
            fact_check: Head::parse(files.fact_check).ok(),
            user_feedback: Head::parse(files.user_feedback).ok(),
            modality: Head::parse(files.modality).ok(),
            injection: MixedHead::parse(files.injection).ok(),
        }
    }

    fn heads(&'static self) -> Heads {
        Heads {
            domain: self.domain.as_ref(),
            complexity: self.complexity.as_ref(),
            fact_check: self.fact_check.as_ref(),
            user_feedback: self.user_feedback.as_ref(),
            modality: self.modality.as_ref(),
            injection: self.injection.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::{DEFAULT_ENCODER, MULTILINGUAL_ENCODER, digest_in};
    use crate::lexical;
    use crate::store::Catalog;

    #[test]
    fn every_set_is_whole_and_fits_the_encoder_of_its_name() {
        for name in [DEFAULT_ENCODER, MULTILINGUAL_ENCODER] {
            let digest = digest_in(&Catalog::builtin(), name).unwrap();
            let heads = for_encoder(&digest);
            let worded = [heads.fact_check, heads.user_feedback, heads.modality];
            assert_eq!(heads.domain.unwrap().encoder_digest(), digest, "{name}");
            let complexity = heads.complexity.unwrap().encoder_digest().to_owned();
            assert!([&digest, &lexical::digest(&digest)].contains(&&complexity), "{name}");
            let joined = lexical::digest(&digest);
            assert!(worded.iter().all(|head| head.unwrap().encoder_digest() == joined), "{name}");
            assert!(heads.injection.is_some(), "{name}");
            let default = of_default();
            let labels = |heads: &Heads| {
                let all =
                    [heads.domain, heads.complexity, heads.fact_check, heads.user_feedback, heads.modality];
                all.map(|head| head.unwrap().labels())
            };
            assert_eq!(labels(&heads), labels(&default), "{name}");
        }
    }

    #[test]
    fn an_unknown_encoder_has_words_alone() {
        let heads = for_encoder("sha256:unknown");
        assert!(heads.domain.is_none() && heads.user_feedback.is_none() && heads.injection.is_some());
    }
}
