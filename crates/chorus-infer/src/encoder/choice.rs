//! Which encoder a configuration means, and how it is opened from a store.
//!
//! It knows names and files of encoders, no tensor. Invariant: every name that [`encoder_for`] gives is a model of the
//! built-in catalog that [`open`] can open.

use std::path::{Path, PathBuf};

use super::{E5_PREFIX, EncodeFault, MiniLm, Precision};
use crate::store::{Catalog, ModelEntry, ModelStore};

/// The encoder of a configuration that names none: small, fast, English.
pub const DEFAULT_ENCODER: &str = "all-minilm-l6-v2";
/// The encoder for policies and prompts in many languages.
pub const MULTILINGUAL_ENCODER: &str = "multilingual-e5-small";
/// The same, in its makers' precision.
const MULTILINGUAL_FLOAT: &str = "multilingual-e5-small-f32";

/// The catalog's encoder for what a configuration calls its embedding model: a `model_type`, or a path whose last part
/// is a model's name.
///
/// What names the E5 family, or asks for `multilingual`, gets it. Every other encoder (`mmbert`, `qwen3`, `gemma`,
/// `multimodal`, `bert` and unknown names) is stood in for by [`DEFAULT_ENCODER`]: its thresholds keep their meaning by
/// the calibration of similarities, and a configuration written for it loads without a change.
#[must_use]
pub fn encoder_for(model: &str) -> &'static str {
    let name = model.trim().trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
    match name.replace('_', "-").as_str() {
        "multilingual-e5-small-f32" => MULTILINGUAL_FLOAT,
        "multilingual" | "e5" | "e5-small" => MULTILINGUAL_ENCODER,
        other if other.starts_with("multilingual-e5") => MULTILINGUAL_ENCODER,
        _ => DEFAULT_ENCODER,
    }
}

/// Opens an encoder that a store holds; the converted form is kept beside its files.
///
/// # Errors
/// [`EncodeFault`] when a file is absent or damaged, or the name is no encoder's.
pub fn open(store: &ModelStore, name: &str) -> Result<MiniLm, EncodeFault> {
    let file = |file: &str| -> Result<PathBuf, EncodeFault> {
        let absent = || EncodeFault(format!("{name} is not in the model store (no {file})"));
        store.path(name, file).ok_or_else(absent)
    };
    let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    match name {
        MULTILINGUAL_ENCODER => {
            let packed = file("e5-small-q4.bin")?;
            MiniLm::load_packed_e5(&packed, &folder(&packed), Precision::Int8)
        }
        MULTILINGUAL_FLOAT | DEFAULT_ENCODER => {
            let (weights, tokenizer) = (file("model.safetensors")?, file("tokenizer.json")?);
            let load = if name == DEFAULT_ENCODER { MiniLm::load } else { MiniLm::load_e5 };
            load(&weights, &tokenizer, &folder(&weights))
        }
        other => Err(EncodeFault(format!("no encoder is named `{other}`"))),
    }
}

/// The digest that an encoder of a catalog has once it is open, told without its files.
#[must_use]
pub fn digest_in(catalog: &Catalog, name: &str) -> Option<String> {
    let model: &ModelEntry = catalog.get(name)?;
    let prefix = if name == DEFAULT_ENCODER { "" } else { E5_PREFIX };
    let files =
        model.files.iter().map(|file| hex::decode(&file.sha256)).collect::<Result<Vec<_>, _>>().ok()?;
    Some(format!("sha256:{}", super::identity(&files, Precision::Int8, prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Catalog, ModelKind};

    #[test]
    fn every_name_leads_to_an_encoder_of_the_catalog() {
        let catalog = Catalog::builtin();
        for (name, want) in [
            ("", DEFAULT_ENCODER),
            ("mmbert", DEFAULT_ENCODER),
            ("qwen3", DEFAULT_ENCODER),
            ("gemma", DEFAULT_ENCODER),
            ("models/all-MiniLM-L12-v2", DEFAULT_ENCODER),
            ("E5", MULTILINGUAL_ENCODER),
            ("multilingual", MULTILINGUAL_ENCODER),
            ("intfloat/multilingual-e5-small", MULTILINGUAL_ENCODER),
            ("models/multilingual_e5_base/", MULTILINGUAL_ENCODER),
            ("multilingual-e5-small-f32", MULTILINGUAL_FLOAT),
        ] {
            assert_eq!(encoder_for(name), want, "{name}");
            assert_eq!(catalog.get(want).map(|model| model.kind), Some(ModelKind::Encoder));
        }
    }

    #[test]
    fn an_empty_store_and_an_unknown_name_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStore::open(folder.path().to_owned(), Catalog::builtin());
        for name in [DEFAULT_ENCODER, MULTILINGUAL_ENCODER, MULTILINGUAL_FLOAT] {
            assert!(open(&store, name).unwrap_err().0.contains("is not in the model store"), "{name}");
        }
        assert!(open(&store, "smollm2-135m-instruct").unwrap_err().0.contains("no encoder"));
    }
}
