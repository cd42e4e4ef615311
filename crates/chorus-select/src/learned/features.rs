//! What a predictor reads: the request's vector, and for the contract's artifacts its category behind it.

/// Categories of the contract's artifacts, in the order of their one-hot part. Source: vllm-project/semantic-router,
/// `pkg/modelselection/features.go`.
pub const CATEGORIES: [&str; 14] = [
    "math",
    "physics",
    "chemistry",
    "biology",
    "computer science",
    "history",
    "economics",
    "business",
    "law",
    "health",
    "psychology",
    "philosophy",
    "other",
    "unknown",
];

/// How a request becomes features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// Length of the request's vector.
    vector: usize,
    /// Whether its category follows.
    category: bool,
}

impl Features {
    /// The vector alone.
    pub(crate) fn plain(vector: usize) -> Self {
        Self { vector, category: false }
    }

    /// The contract's: of that whole length.
    pub(crate) fn with_category(length: usize) -> Self {
        Self { vector: length.saturating_sub(CATEGORIES.len()), category: true }
    }

    pub(crate) fn vector_length(self) -> usize {
        self.vector
    }

    /// `None` for a vector of another length. A category that the contract does not have counts as `other`.
    pub(crate) fn of(self, query: &[f32], category: Option<&str>) -> Option<Vec<f32>> {
        if query.len() != self.vector {
            return None;
        }
        let mut features = query.to_vec();
        if self.category {
            let named = CATEGORIES.iter().position(|it| Some(*it) == category);
            let other = CATEGORIES.iter().position(|it| *it == "other");
            let hot = named.or(other);
            features.extend((0..CATEGORIES.len()).map(|at| if Some(at) == hot { 1.0 } else { 0.0 }));
        }
        Some(features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_category_follows_the_vector_where_the_contract_wants_it() {
        assert_eq!(Features::plain(2).of(&[0.5, 0.5], Some("law")), Some(vec![0.5, 0.5]));
        let with = Features::with_category(16);
        assert_eq!(with.vector_length(), 2);
        let features = with.of(&[0.5, 0.5], Some("law")).unwrap();
        assert_eq!((features.len(), features[2 + 8]), (16, 1.0));
        let unknown = with.of(&[0.5, 0.5], Some("engineering")).unwrap();
        assert_eq!(unknown[2 + 12], 1.0);
        assert_eq!(with.of(&[0.5], None), None);
    }
}
