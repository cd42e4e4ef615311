//! Vectors as they are, and the nearest of them.

/// Lanes that are summed apart, so that the compiler can use wide registers.
const LANES: usize = 16;

/// The dot product; of the shorter length where lengths differ.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let shorter = a.len().min(b.len());
    let (left, left_rest) = a.get(..shorter).unwrap_or_default().as_chunks::<LANES>();
    let (right, right_rest) = b.get(..shorter).unwrap_or_default().as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (x, y) in left.iter().zip(right) {
        lanes.iter_mut().zip(x.iter().zip(y)).for_each(|(lane, (x, y))| *lane += x * y);
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Vectors in one stretch of memory, each with a number of the caller's.
#[derive(Debug, Default, Clone)]
pub struct Exact {
    width: usize,
    keys: Vec<i64>,
    values: Vec<f32>,
}

impl Exact {
    /// An empty one, for vectors of that length.
    #[must_use]
    pub fn of_width(width: usize) -> Self {
        Self { width, keys: Vec::new(), values: Vec::new() }
    }

    /// Adds a vector; one of another length is left out, and `false` says so.
    pub fn push(&mut self, key: i64, vector: &[f32]) -> bool {
        if vector.len() != self.width || self.width == 0 {
            return false;
        }
        self.keys.push(key);
        self.values.extend_from_slice(vector);
        true
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The `most` nearest of those that `wanted` lets through, nearest first; of equals the smaller key is first.
    #[must_use]
    pub fn nearest(&self, query: &[f32], most: usize, wanted: &dyn Fn(i64) -> bool) -> Vec<(i64, f32)> {
        if query.len() != self.width || self.width == 0 {
            return Vec::new();
        }
        let rows = self.keys.iter().zip(self.values.chunks_exact(self.width));
        let mut all: Vec<(i64, f32)> =
            rows.filter(|(key, _)| wanted(**key)).map(|(key, row)| (*key, dot(row, query))).collect();
        let order = |a: &(i64, f32), b: &(i64, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if all.len() > most && most > 0 {
            all.select_nth_unstable_by(most - 1, order);
        }
        all.truncate(most);
        all.sort_by(order);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dot_product_is_the_sum_of_products() {
        let a: Vec<f32> = (0..37).map(|n| n as f32).collect();
        let b: Vec<f32> = (0..37).map(|n| (n % 3) as f32).collect();
        let plain: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
        assert!((dot(&a, &b) - plain).abs() < 1e-3);
        assert_eq!((dot(&a, &[]), dot(&a[..17], &b[..20])), (0.0, dot(&a[..17], &b[..17])));
    }

    #[test]
    fn the_nearest_come_first_and_equals_in_order() {
        let mut it = Exact::of_width(2);
        for (key, vector) in [(7, [0.0, 1.0]), (3, [1.0, 0.0]), (5, [1.0, 0.0]), (9, [0.6, 0.8])] {
            assert!(it.push(key, &vector));
        }
        assert!(!it.push(1, &[1.0]), "another length");
        let keys = |most, wanted: &dyn Fn(i64) -> bool| {
            it.nearest(&[1.0, 0.0], most, wanted).iter().map(|(key, _)| *key).collect::<Vec<_>>()
        };
        assert_eq!(keys(3, &|_| true), [3, 5, 9]);
        assert_eq!(keys(9, &|key| key > 3), [5, 9, 7]);
        assert!(it.nearest(&[1.0], 3, &|_| true).is_empty());
    }
}
