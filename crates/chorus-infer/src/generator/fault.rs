//! Why a generator could not be loaded or could not answer.
//!
//! It knows no HTTP status; [`GenerateFault::code`] is the word that a door's table maps.

/// Why a generator could not be loaded or could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateFault {
    /// The model file cannot be read or is not what it claims to be.
    #[error("model file: {0}")]
    File(String),
    /// The file is sound, but its architecture, tokenizer or scaling is not one that the engine runs.
    #[error("model not supported: {0}")]
    Unsupported(String),
    /// The chat template is missing, broken, or refused the conversation.
    #[error("chat template: {0}")]
    Template(String),
    /// A sampling parameter is out of range.
    #[error("parameter `{0}` is out of range")]
    Params(String),
    /// The prompt does not fit; found before any work was done.
    #[error("the prompt has {prompt_tokens} tokens and the context window holds {context_window}")]
    ContextLengthExceeded {
        /// Tokens of the rendered prompt.
        prompt_tokens: usize,
        /// Tokens that the window holds, prompt and answer together.
        context_window: usize,
    },
    /// The queue is full.
    #[error("the model's queue is full")]
    Busy,
    /// The engine thread has ended.
    #[error("the engine has stopped")]
    Stopped,
    /// The computation went wrong.
    #[error("inference: {0}")]
    Inference(String),
}

impl GenerateFault {
    /// A stable word for tables, metrics and error bodies.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(_) => "model_file",
            Self::Unsupported(_) => "model_unsupported",
            Self::Template(_) => "chat_template",
            Self::Params(_) => "invalid_parameter",
            Self::ContextLengthExceeded { .. } => "context_length_exceeded",
            Self::Busy => "model_busy",
            Self::Stopped => "model_stopped",
            Self::Inference(_) => "inference_failed",
        }
    }
}
