//! Output contracts: what a route promises about the form of its answer.
//!
//! Plain data of the file; it knows neither answers nor how they are made to comply. Source: contract v0.3 §1.6.

/// What an answer must look like (`output_contract_spec`).
#[derive(Debug, Clone, PartialEq)]
pub struct OutputContract {
    /// The form.
    pub kind: OutputKind,
    /// How the value is written for the client; as it is when absent.
    pub render: Option<OutputRender>,
    /// How the value is found in what a model wrote.
    pub extract: OutputExtract,
    /// Fields in the order in which they are written; the value's own order when empty.
    pub field_order: Vec<String>,
    /// What stands in for fields that the value lacks.
    pub defaults: Vec<(String, String)>,
    /// Whether a value that breaks the contract is sent back once to be mended.
    pub repair: bool,
    /// What is answered when the contract stays broken; what the model wrote, marked, when absent.
    pub fallback: Option<String>,
    /// Whether the candidate that the answer points at is answered in its place
    /// (`postprocess: dereference_selected_reference`).
    pub dereference: bool,
}

/// The form of a contract's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputKind {
    /// One of these texts; at least two.
    Choice(Vec<String>),
    /// A JSON object of a named schema (`terminal_action_v1`).
    StructuredJson {
        /// The schema's name.
        schema_ref: String,
    },
    /// A pointer at one of the candidates' answers.
    ReferenceSelection {
        /// Where the candidates come from.
        source: String,
        /// How a pointer is written.
        id_format: ReferenceFormat,
    },
}

/// How a pointer at an answer is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceFormat {
    /// From 0.
    #[default]
    Index,
    /// From 1, as people count.
    ReferenceNumber,
}

/// How a contract's value is written for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputRender {
    /// As it is.
    Value,
    /// Within a text, at `{{choice}}`.
    Template(String),
}

/// How a contract's value is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputExtract {
    /// Whether a JSON object is looked for in the text, rather than the whole text taken.
    pub json_object: bool,
    /// Where it is looked for, in order.
    pub sources: Vec<OutputSource>,
}

impl Default for OutputExtract {
    fn default() -> Self {
        Self { json_object: false, sources: vec![OutputSource::Content] }
    }
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// Its text.
    Content,
    /// Its reasoning.
    ReasoningContent,
    /// The answers of the candidates behind it.
    CandidateResponses,
}
