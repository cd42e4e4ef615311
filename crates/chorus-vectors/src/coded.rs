//! Many vectors in seven bits a number, and their dot products with one vector.
//!
//! A byte a number is a quarter of the memory, and going through many is bound by memory. **Invariant:** a product is within
//! .005 of the product of both lengths of the exact one (a test measures it), and row `n` is the vector that was pushed as, or
//! moved to, `n`.

use pulp::Arch;

/// Numbers that are multiplied in one step.
const STEP: usize = 32;

/// Greatest code of a stored number: seven bits, so that two products fit sixteen.
const STORED_MOST: f32 = 63.0;

/// What is added to a stored code, so that it has no sign.
const OFFSET: u8 = 64;

/// Greatest code of the vector that is compared.
const ASKED_MOST: f32 = 127.0;

/// Vectors of one length.
#[derive(Debug, Clone, Default)]
pub struct Coded {
    width: usize,
    blocks: Vec<[u8; STEP]>,
    /// What one step of a row's codes is worth.
    scales: Vec<f32>,
}

impl Coded {
    /// None yet, of that length.
    #[must_use]
    pub fn of_width(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Vectors of that length, one after the other; a rest that fills no vector is left out.
    #[must_use]
    pub fn of(values: &[f32], width: usize) -> Self {
        let mut it = Self::of_width(width);
        if let Some(rows) = values.len().checked_div(width) {
            it.blocks.reserve_exact(rows * it.blocks_a_row());
            it.scales.reserve_exact(rows);
            values.chunks_exact(width).for_each(|row| it.push(row));
        }
        it
    }

    /// The length of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Adds a vector at the end: what is longer than the others is cut off, what is shorter ends in zeros.
    pub fn push(&mut self, vector: &[f32]) {
        let scale = scale_of(vector, STORED_MOST);
        let mut numbers = vector.iter().take(self.width);
        for _ in 0..self.blocks_a_row() {
            let mut block = [OFFSET; STEP];
            for (code, value) in block.iter_mut().zip(numbers.by_ref().take(STEP)) {
                // In 1..=127 by the choice of the scale.
                *code = (code_of(*value, scale, STORED_MOST) + f32::from(OFFSET)) as u8;
            }
            self.blocks.push(block);
        }
        self.scales.push(scale);
    }

    /// Takes a vector out; the last one moves to its place. One that is not there is none to take.
    pub fn swap_remove(&mut self, row: usize) {
        let Some(last) = self.len().checked_sub(1).filter(|last| row <= *last) else { return };
        let blocks = self.blocks_a_row();
        self.blocks.copy_within(last * blocks.., row * blocks);
        self.blocks.truncate(last * blocks);
        self.scales.swap_remove(row);
    }

    /// The dot product of each with that vector, in order; what it is longer is left out, what it lacks counts as zero.
    #[must_use]
    pub fn products(&self, asked: &[f32]) -> Vec<f32> {
        let blocks = self.blocks_a_row();
        let scale = scale_of(asked, ASKED_MOST);
        let mut codes = vec![[0i8; STEP]; blocks];
        for (block, chunk) in codes.iter_mut().zip(asked.chunks(STEP)) {
            for (code, value) in block.iter_mut().zip(chunk) {
                *code = code_of(*value, scale, ASKED_MOST) as i8;
            }
        }
        let sum: i32 = codes.iter().flatten().map(|code| i32::from(*code)).sum();
        let offset = sum * i32::from(OFFSET);
        let mut sums = Vec::with_capacity(self.len());
        whole_products(&self.blocks, &codes, |sum| sums.push(sum));
        sums.iter().zip(&self.scales).map(|(sum, own)| (sum - offset) as f32 * own * scale).collect()
    }

    /// The rows whose cosine with a unit vector is at least so much, with it; in their order. A vector of another length is
    /// like none.
    #[must_use]
    pub fn alike(&self, asked: &[f32], least: f64) -> Vec<(usize, f64)> {
        if asked.len() != self.width || self.width == 0 {
            return Vec::new();
        }
        let products = self.products(asked).into_iter().map(|it| f64::from(it).min(1.0)).enumerate();
        products.filter(|(_, cosine)| *cosine >= least).collect()
    }

    fn blocks_a_row(&self) -> usize {
        self.width.div_ceil(STEP).max(1)
    }
}

/// What one step is worth; nothing where a number is infinite, so that such a vector is like none.
fn scale_of(values: &[f32], most: f32) -> f32 {
    let greatest = values.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs()));
    if greatest.is_finite() { greatest / most } else { 0.0 }
}

/// What is no number, and everything in a vector of zeros, is a zero.
fn code_of(value: f32, scale: f32, most: f32) -> f32 {
    let code = (value / scale).round().clamp(-most, most);
    if code.is_nan() { 0.0 } else { code }
}

/// Whole-number products of every row with the codes.
fn whole_products(blocks: &[[u8; STEP]], codes: &[[i8; STEP]], mut found: impl FnMut(i32)) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        simd.vectorize(avx2::Rows { simd, blocks, codes, found });
        return;
    }
    Arch::new().dispatch(|| {
        for row in blocks.chunks_exact(codes.len()) {
            let product = |(stored, asked): (&[u8; STEP], &[i8; STEP])| -> i32 {
                stored.iter().zip(asked).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
            };
            found(row.iter().zip(codes).map(product).sum());
        }
    });
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same arithmetic, 32 numbers at a time.

    use super::STEP;
    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, cast};

    /// Rows to be multiplied with AVX2.
    pub(super) struct Rows<'a, F> {
        pub(super) simd: V3,
        pub(super) blocks: &'a [[u8; STEP]],
        pub(super) codes: &'a [[i8; STEP]],
        pub(super) found: F,
    }

    impl<F: FnMut(i32)> NullaryFnOnce for Rows<'_, F> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd, blocks, codes, mut found } = self;
            let ones = simd.avx._mm256_set1_epi16(1);
            for row in blocks.chunks_exact(codes.len()) {
                let mut sum = simd.avx._mm256_setzero_si256();
                for (stored, asked) in row.iter().zip(codes) {
                    // Two products of at most 127 · 127 each fit sixteen bits.
                    let pairs = simd.avx2._mm256_maddubs_epi16(cast(*stored), cast(*asked));
                    sum = simd.avx2._mm256_add_epi32(sum, simd.avx2._mm256_madd_epi16(pairs, ones));
                }
                let lanes: [i32; 8] = cast(sum);
                found(lanes.iter().sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(seed: usize, width: usize) -> Vec<f32> {
        let raw: Vec<f32> = (0..width).map(|at| ((seed * 97 + at * at) as f32 * 0.37).sin()).collect();
        let length = raw.iter().map(|it| it * it).sum::<f32>().sqrt();
        raw.iter().map(|it| it / length).collect()
    }

    fn exact(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn products_are_near_the_exact_ones_at_any_length() {
        for (width, most) in [(1, 0.01), (31, 0.01), (32, 0.01), (33, 0.01), (384, 0.005)] {
            let rows: Vec<Vec<f32>> = (1..51).map(|seed| unit(seed, width)).collect();
            let coded = Coded::of(&rows.concat(), width);
            assert_eq!((coded.len(), coded.width()), (50, width));
            for asked in rows.iter().chain([&unit(1_000, width)]) {
                for (row, got) in rows.iter().zip(coded.products(asked)) {
                    let error = (exact(row, asked) - got).abs();
                    assert!(error < most, "{width}: {error}");
                }
            }
        }
    }

    #[test]
    fn only_rows_that_are_alike_enough_are_found_and_a_cosine_is_at_most_one() {
        let rows: Vec<Vec<f32>> = (0..3).map(|seed| unit(seed, 384)).collect();
        let coded = Coded::of(&rows.concat(), 384);
        let found = coded.alike(&rows[1], 0.99);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [1]);
        assert!(found.iter().all(|it| it.1 <= 1.0));
        assert_eq!(coded.alike(&rows[1][..32], -1.0), [], "another length");
    }

    #[test]
    fn a_row_that_is_taken_out_is_replaced_by_the_last() {
        let mut coded = Coded::of_width(384);
        (0..3).for_each(|seed| coded.push(&unit(seed, 384)));
        coded.swap_remove(0);
        assert_eq!(coded.len(), 2);
        assert_eq!(coded.alike(&unit(2, 384), 0.99).first().map(|it| it.0), Some(0));
        assert_eq!(coded.alike(&unit(1, 384), 0.99).first().map(|it| it.0), Some(1));
        coded.swap_remove(2);
        assert_eq!(coded.len(), 2, "there is none");
        coded.swap_remove(1);
        coded.swap_remove(0);
        assert!(coded.is_empty() && coded.alike(&unit(1, 384), 0.0).is_empty());
    }

    #[test]
    fn extreme_and_empty_vectors_are_sound() {
        assert!((Coded::of(&[1.0; 64], 64).products(&[-1.0; 64])[0] + 64.0).abs() < 0.1);
        assert_eq!(Coded::of(&[0.0; 4], 4).products(&[0.0; 4]), [0.0]);
        assert_eq!(Coded::of(&[], 4).products(&[1.0; 4]), [0.0; 0]);
        assert_eq!(Coded::of(&[1.0], 0).len(), 0);
        for odd in [[f32::NAN, 0.0], [f32::INFINITY, 1.0], [f32::NAN, f32::NEG_INFINITY]] {
            assert_eq!(Coded::of(&odd, 2).alike(&[1.0, 0.0], -1.0), [(0, 0.0)], "{odd:?}");
            assert_eq!(Coded::of(&[1.0, 0.0], 2).alike(&odd, -1.0), [(0, 0.0)], "{odd:?}");
        }
    }
}
