//! Why a question could not be looked up.

use crate::fault::{Code, Fault};
use chorus_collab::{CallFault, FaultKind};

/// Why a question could not be looked up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RagFault {
    /// The question has no vector.
    #[error("the question cannot be encoded")]
    NoVector,
    /// There is no such vector store within the caller's reach.
    #[error("there is no vector store `{0}`")]
    NoStore(String),
    /// The store of this process cannot be used.
    #[error(transparent)]
    Store(#[from] chorus_store::RecallFault),
    /// The configuration cannot be used.
    #[error("{0}")]
    Misconfigured(String),
    /// The server gave no answer.
    #[error("{}", .0.public)]
    Call(#[from] CallFault),
    /// The server's answer cannot be read.
    #[error("the answer of the search cannot be read: {0}")]
    Malformed(&'static str),
}

impl RagFault {
    /// Its word in traces and warnings.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::NoVector => "rag_no_vector",
            Self::NoStore(_) => "rag_no_store",
            Self::Store(_) => "rag_store_failed",
            Self::Misconfigured(_) => "rag_misconfigured",
            Self::Call(fault) if fault.kind == FaultKind::Timeout => "rag_timeout",
            Self::Call(_) => "rag_unreachable",
            Self::Malformed(_) => "rag_malformed",
        }
    }

    /// The request's fault, where the route does without an answer rather than without passages.
    pub(super) fn refusal(&self) -> Fault {
        let code = match self {
            Self::NoVector => Code::NotLoaded,
            Self::NoStore(_) | Self::Misconfigured(_) => Code::Misconfigured,
            Self::Store(_) => Code::Internal,
            Self::Call(fault) if fault.kind == FaultKind::Timeout => Code::UpstreamTimeout,
            Self::Call(_) | Self::Malformed(_) => Code::UpstreamFailed,
        };
        Fault::new(code, format!("the route answers from documents only, and {}", self.public()))
    }

    /// Without the text of a store, which names a file of this machine.
    fn public(&self) -> String {
        match self {
            Self::Store(_) => "they cannot be read".to_owned(),
            other => other.to_string(),
        }
    }
}
