//! How example sentences become prototypes: one block of the contract, in several places.
//!
//! **Invariant:** a key that is not written keeps what it was, so that an override never mixes two sets of defaults.

use super::cursor::Cursor;
use crate::PrototypeScoring;
use crate::diagnostic::code;

/// Reads `prototype_scoring` of a block over what `it` holds.
pub(super) fn read(parent: &Cursor<'_>, it: &mut PrototypeScoring) {
    let Some(at) = parent.get("prototype_scoring") else {
        return;
    };
    if at.boolean("enabled") == Some(false) {
        at.warn(
            code::NOT_SUPPORTED_YET,
            "examples without prototypes are known, not supported yet: prototypes stay on",
        );
    }
    let size =
        |key: &str, default: usize| at.count(key).and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    *it = PrototypeScoring {
        cluster_similarity_threshold: at
            .float_in("cluster_similarity_threshold", 0.0, 1.0)
            .unwrap_or(it.cluster_similarity_threshold),
        max_prototypes: size("max_prototypes", it.max_prototypes),
        best_weight: at.float_in("best_weight", 0.0, 1.0).unwrap_or(it.best_weight),
        top_m: size("top_m", it.top_m),
    };
}
