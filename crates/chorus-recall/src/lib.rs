//! What a model is shown besides the conversation, and how much of the conversation: passages are cut, found, ranked,
//! weighed by age, and shortened.
//!
//! Everything here is a function of its arguments: vectors, times and limits come from outside. It knows no store, no
//! encoder, no request and no policy.
//!
//! **Invariant:** the same arguments give the same bytes.

pub mod bm25;
pub mod chunk;
pub mod filter;
pub mod rank;
pub mod reflect;
pub mod shorten;
pub mod statements;
pub mod terms;
pub mod tools;

pub use bm25::Bm25;
pub use chunk::{ChunkRule, chunks};
pub use filter::Filter;
pub use shorten::{Draft, Shortened};
pub use terms::terms;
