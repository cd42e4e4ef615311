//! Selectors: algorithms that pick one of a decision's candidates, one file each, over plain data.
//!
//! A selector is prepared once from its settings and, where it is learned, from an artifact; then it chooses for each
//! request. It knows no request, no encoder, no clock and no price table: vectors, statistics, prices and the seed are
//! in the [`SelectionAsk`]. Beside the selectors stand the rules that keep a running conversation on its model
//! ([`session`]) and the statistics of live calls ([`live`]).
//!
//! **Invariant:** the same settings and the same ask give the same [`Choice`], byte for byte, and the pick is one of
//! the candidates.

pub mod adaptation;
mod ask;
pub mod automix;
mod choice;
mod doc;
pub mod elo;
pub mod hybrid;
pub mod latency_aware;
pub mod learned;
pub mod live;
pub mod manual;
pub mod momentum;
pub mod multi_factor;
mod prepare;
pub mod prompt;
pub mod router_dc;
mod scale;
mod selector;
pub mod session;
pub mod static_order;
pub mod thompson;

pub use ask::{Candidate, LiveFigures, Needs, SelectionAsk};
pub use choice::{Choice, Score};
pub use doc::SelectorDoc;
pub use learned::{ArtifactFault, EncoderIdentity};
pub use prepare::{Supply, prepare};
pub use selector::Selector;

/// Every selector, in the order of the contract, then those that it hides: the source of docs, `--help` and console
/// text.
pub const ALL: &[SelectorDoc] = &[
    static_order::DOC,
    router_dc::DOC,
    hybrid::DOC,
    latency_aware::DOC,
    multi_factor::DOC,
    automix::DOC,
    prompt::DOC,
    learned::knn::DOC,
    learned::kmeans::DOC,
    learned::svm::DOC,
    learned::mlp::DOC,
    elo::DOC,
    thompson::DOC,
];
