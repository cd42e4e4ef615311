//! In-process models: an encoder, linear heads over it, a generator, and the store that their files come from.
//!
//! It knows tensors, tokenizers and model files; it knows no request, no policy and no HTTP door.

pub mod encoder;
pub mod fnv;
pub mod generator;
pub mod heads;
pub mod lexical;
pub mod mixed;
pub mod store;

pub use encoder::{EncodeFault, TextEncoder};
pub use generator::{
    ChatTurn, Finish, GenerateEvent, GenerateFault, GenerateRequest, GenerateStream, Generator,
    GeneratorOptions, ModelInfo, SamplingParams, TokenLogprob, Usage,
};
pub use heads::{Head, HeadFault};
pub use mixed::MixedHead;
pub use store::{
    Catalog, ModelKind, ModelStore, Progress, PullFault, Quiet, Source, StoreEntry, StoreOptions,
};
