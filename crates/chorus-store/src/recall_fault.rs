//! Why memories and documents are not kept, or not found.

use crate::database::Unusable;

/// Why what can be recalled is not kept, or not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecallFault {
    /// A bound would be passed.
    #[error("{what} would be more than {limit} ({bound})")]
    Bound {
        /// What would be too much, such as "the file's bytes".
        what: &'static str,
        /// The bound's name.
        bound: &'static str,
        /// Its value.
        limit: u64,
    },
    /// The store cannot be used.
    #[error("the store of memories and files cannot be used: {0}")]
    Io(String),
}

impl From<Unusable> for RecallFault {
    fn from(Unusable(why): Unusable) -> Self {
        Self::Io(why)
    }
}

impl From<rusqlite::Error> for RecallFault {
    fn from(error: rusqlite::Error) -> Self {
        Unusable::from(error).into()
    }
}
