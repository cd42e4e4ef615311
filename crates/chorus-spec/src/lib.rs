//! The language: a v0.3 configuration file becomes one checked [`Spec`], or all of its problems at once.
//!
//! A [`Spec`] is what the rest of the house reads: names resolved, defaults filled, references checked. It knows no
//! environment, no network and no clock: a `${NAME}` stays a [`Secret`] or a [`Template`] until somebody uses it.
//!
//! **Invariant:** whatever `Spec` is handed out has been checked whole; nothing downstream validates it again.

mod access;
mod algorithm;
mod answer_checks;
mod cache;
mod compression;
mod databases;
mod decision;
mod deployment;
mod diagnostic;
pub mod dsl;
mod family;
mod flow_state;
mod grounding;
mod ids;
mod image_gen;
mod knowledge;
mod lint;
mod looper;
pub mod looper_page;
pub mod manual;
mod memory;
mod output;
mod poll;
mod projection;
mod provider;
mod qdrant;
mod rag;
mod read;
mod redis;
mod replay;
mod response_api;
mod rule;
mod selector;
mod services;
mod signal;
mod spec;
mod tool_selection;
mod vector_store;

pub use access::{ManagementAuth, RateMatch, RateRule};
pub use algorithm::{Algorithm, FusionOverride, FusionPreset, FusionSettings, LooperKind, PanelCadence};
pub use answer_checks::{HallucinationSettings, JailbreakAction, Remark, ResponseJailbreakSettings};
pub use cache::{
    CacheBackend, CacheControls, CacheDirective, CacheEviction, CacheMode, CacheRevision, CacheScope,
    CacheServer, CacheServerKind, CacheSettings, CacheStore, Permille,
};
pub use compression::{
    CompressionControls, CompressionMode, CompressionScoring, CompressionSettings, CompressionTarget,
    CompressionTargets, RecoverySettings,
};
pub use databases::{KeptWhere, PostgresMode, PostgresServer, QdrantRecords, RecordsServer, RedisRecords};
pub use decision::{AdaptationMode, Adaptations, CandidateIteration, IterationSource, Retention};
pub use decision::{Decision, HeaderMutation, ModelRef, Plugin, RequestParams, Strategy};
pub use decision::{SystemPrompt, SystemPromptMode, ToolsMode, ToolsPlugin};
pub use deployment::{
    Access, BackendLimits, CredentialSource, FAILURE_WORDS, HealthCheck, LoadBalance, QUIRK_WORDS,
    Reliability,
};
pub use diagnostic::{DIAGNOSTIC_CODES, Diagnostic, DiagnosticCode, Severity, code};
pub use family::{Family, SignalKey};
pub use flow_state::{FlowState, FlowStore};
pub use grounding::{GroundingPolicy, GroundingReference, GroundingScorer, GroundingSettings};
pub use ids::{Digest, MicroUsd, MissingVariable, ModelId, Place, Secret, Template};
pub use image_gen::{ImageBackend, ImageGenSettings};
pub use knowledge::{KbMetric, KnowledgeBase};
pub use lint::lint;
pub use looper::{
    Aggregate, BudgetSettings, ConfidenceMethod, ConfidenceSettings, Distribution, EscalationOrder, OnError,
    Raters, RatingsSettings, RemomSettings, TokenFilter, WhenSpent, WorkflowMode, WorkflowRole,
    WorkflowSettings,
};
pub use memory::{HybridMode, MemoryCache, MemoryQuality, MemorySettings, MemoryStore, Reflection};
pub use output::{OutputContract, OutputExtract, OutputKind, OutputRender, OutputSource, ReferenceFormat};
pub use poll::{PollSettings, PollStepSettings};
pub use projection::{
    Calibration, InputSource, Mapping, MappingMethod, MappingOutput, Partition, PartitionSemantics,
    Projections, Score, ScoreInput, ValueSource,
};
pub use provider::{
    ApiFormat, Backend, Endpoint, Energy, Model, ModelCard, Pricing, ReasoningFamily, ReasoningKind,
};
pub use qdrant::QdrantPlace;
pub use rag::{
    ExternalSearch, McpSearch, OpenAiSearch, QdrantSearch, RagBackend, RagFailure, RagInjection, RagSettings,
    SearchFormat,
};
pub use read::{
    Checked, Document, MASK, built_in_knowledge, documented_loopers, looper_parameters, read, read_document,
};
pub use redis::RedisServer;
pub use replay::ReplaySettings;
pub use response_api::{ResponseApi, ResponsesPlace};
pub use rule::{Condition, NumericPredicate, OnAbsent, Test};
pub use selector::{
    AdaptationSettings, AutomixSettings, CandidateSet, EloSettings, HybridSettings, LatencyAwareSettings,
    LearnedSettings, MomentumSettings, MultiFactorSettings, OnNoCandidates, PromptSettings, RouterDcSettings,
    SelectionSettings, SelectorMethod, SelectorSettings, SessionSettings, SessionStore, ThompsonSettings,
};
pub use services::{LimitStore, TokenAlgorithm, TokenIssuer, TraceExport};
pub use signal::{
    Aggregation, AuthzSignal, ClassifierKind, ClassifierSignal, ComplexitySignal, ContextSignal,
    ConversationFeature, ConversationSignal, ConversationSource, DomainSignal, EmbeddingSignal, EventSignal,
    FactCheckSignal, FeatureKind, JailbreakMethod, JailbreakSignal, KbMatch, KbSignal, KbTarget,
    KeywordMethod, KeywordOperator, KeywordSignal, LanguageSignal, MMLU_CATEGORIES, MetadataPredicate,
    MetadataSignal, ModalitySignal, ModelScore, PII_TYPES, PiiSignal, PreferenceSignal, PrototypeScoring,
    ReaskSignal, RoleSubject, Signal, SignalKind, StructureFeature, StructureSignal, StructureSource,
    UserFeedbackSignal,
};
pub use spec::{
    DEFAULT_RECIPE, Entrypoint, Global, Identity, Listener, ModalityMethod, Recipe, Spec, Variable,
};
pub use tool_selection::{ToolFiltering, ToolSelectionMode, ToolSelectionSettings, ToolWeights};
pub use vector_store::{DocumentFormat, VectorStoreSettings};
