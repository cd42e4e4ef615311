//! The `context_compression` plugin: which parts of a request are shortened, to what length, and how.
//!
//! It knows settings, not texts. **Invariant:** where a target and a least length are both written, the target is smaller.

use std::time::Duration;

/// How one route shortens requests.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressionSettings {
    /// Whether requests below the trigger are shortened too.
    pub always: bool,
    /// Tokens of a request from which it is shortened; `None` is derived from the model's window.
    pub trigger_tokens: Option<u64>,
    /// Tokens that a shortened request should have; `None` is derived from the model's window.
    pub target_tokens: Option<u64>,
    /// Tokens kept free for the answer; `None` is what the request asks for.
    pub reserve_output_tokens: Option<u64>,
    /// What is done with each kind of part.
    pub targets: CompressionTargets,
    /// By what passages are ranked.
    pub scoring: CompressionScoring,
    /// Where the originals of recoverable parts wait.
    pub recovery: RecoverySettings,
    /// What a request may ask for; `None` ignores its header.
    pub controls: Option<CompressionControls>,
    /// Whether a request that cannot be shortened enough is refused.
    pub fail_closed: bool,
}

/// What is done with each kind of part.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CompressionTargets {
    /// Results of tool calls.
    pub tool_outputs: CompressionTarget,
    /// Earlier turns of user and assistant.
    pub history: CompressionTarget,
    /// What was looked up (`rag`).
    pub rag: CompressionTarget,
    /// What is remembered (`memory`).
    pub memory: CompressionTarget,
}

/// What is done with one kind of part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionTarget {
    /// Whether and how it is shortened.
    pub mode: CompressionMode,
    /// Tokens below which a part stays; default 2,000.
    pub min_tokens: u64,
    /// Tokens to which it is shortened; default 1,000.
    pub target_tokens: u64,
}

/// Whether and how a part is shortened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CompressionMode {
    /// It stays.
    #[default]
    Preserve,
    /// Its most relevant passages stay.
    Extractive,
    /// The same, and the model can ask for the original.
    Recoverable,
}

/// By what passages are ranked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CompressionScoring {
    /// By words.
    #[default]
    Bm25,
    /// By meaning.
    Embedding,
    /// By both.
    Hybrid,
}

/// Where the originals of recoverable parts wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverySettings {
    /// Whether there is such a place.
    pub enabled: bool,
    /// How long they wait; default 900 s.
    pub ttl: Duration,
    /// Most bytes of one request; default 10 MiB.
    pub max_bytes_per_request: usize,
    /// Most bytes of all; default 256 MiB.
    pub max_total_bytes: usize,
    /// Most times that a model may ask within one request; default 8.
    pub max_retrievals: usize,
}

/// What a request may ask for in its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionControls {
    /// The header, in lower case; `x-vsr-compression-control` by default.
    pub header: String,
    /// Whether it may ask to be left as it is.
    pub bypass: bool,
    /// Whether it may name another target.
    pub target: bool,
    /// The largest one; default 16,000.
    pub max_target_tokens: u64,
}

impl Default for CompressionSettings {
    fn default() -> Self {
        let targets = CompressionTargets {
            tool_outputs: CompressionTarget {
                mode: CompressionMode::Extractive,
                ..CompressionTarget::default()
            },
            ..CompressionTargets::default()
        };
        Self {
            always: false,
            trigger_tokens: None,
            target_tokens: None,
            reserve_output_tokens: None,
            targets,
            scoring: CompressionScoring::default(),
            recovery: RecoverySettings::default(),
            controls: None,
            fail_closed: false,
        }
    }
}

impl Default for CompressionTarget {
    fn default() -> Self {
        Self { mode: CompressionMode::Preserve, min_tokens: 2000, target_tokens: 1000 }
    }
}

impl Default for RecoverySettings {
    fn default() -> Self {
        Self {
            enabled: false,
            ttl: Duration::from_secs(900),
            max_bytes_per_request: 10 << 20,
            max_total_bytes: 256 << 20,
            max_retrievals: 8,
        }
    }
}

impl Default for CompressionControls {
    fn default() -> Self {
        Self {
            header: "x-vsr-compression-control".to_owned(),
            bypass: true,
            target: true,
            max_target_tokens: 16_000,
        }
    }
}
