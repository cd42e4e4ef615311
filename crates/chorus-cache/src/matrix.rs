//! Unit vectors as bytes, row by row, and how alike each is to another.
//!
//! A byte a number is a quarter of the memory, and the scan is bound by memory; the error of a similarity stays below
//! .005 (tested). **Invariant:** row `n` is the vector that was pushed as, or moved to, `n`.

use pulp::Arch;

/// The largest byte that stands for a number.
const FULL: f32 = 127.0;

/// Unit vectors of one length.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    dimension: usize,
    bytes: Vec<i8>,
    /// What one step of a row's bytes is worth.
    steps: Vec<f32>,
}

impl Matrix {
    /// Rows of that length.
    pub(crate) fn of(dimension: usize) -> Self {
        Self { dimension, bytes: Vec::new(), steps: Vec::new() }
    }

    /// The length of a row.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Rows.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Adds a row at the end; the vector must have the length of a row.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        let (bytes, step) = in_bytes(vector);
        self.bytes.extend(bytes);
        self.steps.push(step);
    }

    /// Takes a row out; the last one moves to its place.
    pub(crate) fn swap_remove(&mut self, row: usize) {
        let last = self.len().saturating_sub(1);
        let (from, to) = (last * self.dimension, row * self.dimension);
        self.bytes.copy_within(from..from + self.dimension, to);
        self.bytes.truncate(from);
        self.steps.swap_remove(row);
    }

    /// The rows whose similarity to a unit vector is at least so much, with it; in the order of rows.
    pub(crate) fn alike(&self, vector: &[f32], least: f64) -> Vec<(usize, f64)> {
        let (query, step) = in_bytes(vector);
        let mut found = Vec::new();
        if self.dimension == 0 || vector.len() != self.dimension {
            return found;
        }
        Arch::new().dispatch(|| {
            for (row, (bytes, own)) in self.bytes.chunks_exact(self.dimension).zip(&self.steps).enumerate() {
                let similarity = f64::from(dot(bytes, &query)) * f64::from(own * step);
                if similarity >= least {
                    found.push((row, similarity.min(1.0)));
                }
            }
        });
        found
    }
}

/// The vector in whole steps, and what one step is worth.
fn in_bytes(vector: &[f32]) -> (Vec<i8>, f32) {
    let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    if most <= 0.0 || !most.is_finite() {
        return (vec![0; vector.len()], 0.0);
    }
    #[expect(clippy::cast_possible_truncation, reason = "within -127..=127")]
    let bytes = vector.iter().map(|value| (value / most * FULL).round() as i8).collect();
    (bytes, most / FULL)
}

/// Whole numbers below 127² · length: no overflow below a length of 130,000.
#[inline(always)]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(i16::from(*x) * i16::from(*y))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(seed: u32) -> Vec<f32> {
        let mut state = u64::from(seed) * 2_654_435_761 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as f32 / (1u64 << 31) as f32) - 0.5
        };
        let raw: Vec<f32> = (0..384).map(|_| next()).collect();
        let length = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
        raw.iter().map(|v| v / length).collect()
    }

    #[test]
    fn similarities_are_near_the_exact_ones() {
        let mut matrix = Matrix::of(384);
        (0..50).for_each(|seed| matrix.push(&unit(seed)));
        for seed in 0..50 {
            let query = unit(seed);
            for (row, similarity) in matrix.alike(&query, -1.0) {
                let exact: f32 = unit(row as u32).iter().zip(&query).map(|(a, b)| a * b).sum();
                assert!((similarity - f64::from(exact)).abs() < 0.005, "{similarity} {exact}");
            }
        }
    }

    #[test]
    fn a_row_that_is_taken_out_is_replaced_by_the_last() {
        let mut matrix = Matrix::of(384);
        (0..3).for_each(|seed| matrix.push(&unit(seed)));
        matrix.swap_remove(0);
        assert_eq!(matrix.len(), 2);
        assert_eq!(matrix.alike(&unit(2), 0.99).first().map(|it| it.0), Some(0));
        assert_eq!(matrix.alike(&unit(1), 0.99).first().map(|it| it.0), Some(1));
        matrix.swap_remove(1);
        matrix.swap_remove(0);
        assert_eq!((matrix.len(), matrix.alike(&unit(1), 0.0).len()), (0, 0));
    }
}
