//! Examples to be near to, in one of two forms.
//!
//! It knows no score and no model.

use chorus_vectors::Coded;

/// Examples to be near to.
#[derive(Debug)]
pub(crate) enum Examples {
    /// Unit vectors in seven bits; nearness is their cosine.
    Coded(Coded),
    /// Numbers as they are, for features of mixed size; nearness is less the greater their distance.
    Exact {
        /// Row by row.
        values: Vec<f32>,
        /// Numbers a row.
        dimension: usize,
    },
}

impl Examples {
    pub(crate) fn coded(values: &[f32], dimension: usize) -> Self {
        Self::Coded(Coded::of(values, dimension))
    }

    pub(crate) fn exact(values: Vec<f32>, dimension: usize) -> Self {
        Self::Exact { values, dimension: dimension.max(1) }
    }

    /// How near each is; for unit vectors both ways give the cosine.
    pub(crate) fn nearness(&self, features: &[f32]) -> Vec<f32> {
        match self {
            Self::Coded(vectors) => vectors.products(features),
            Self::Exact { values, dimension } => {
                let near = |row: &[f32]| {
                    let squared: f32 = row.iter().zip(features).map(|(a, b)| (a - b) * (a - b)).sum();
                    1.0 - squared / 2.0
                };
                values.chunks_exact(*dimension).map(near).collect()
            }
        }
    }
}
