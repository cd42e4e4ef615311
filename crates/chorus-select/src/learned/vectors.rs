//! Many vectors in seven bits a number, and their dot products with one vector.
//!
//! It knows no meaning of a vector. Sums are whole numbers, so that every processor gives the same result.
//! **Invariant:** a dot product is within 1% of the product of both lengths of the exact one (a test measures it).

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
#[derive(Debug, Clone)]
pub(crate) struct Vectors {
    blocks: Vec<[u8; STEP]>,
    scales: Vec<f32>,
    blocks_per_row: usize,
}

impl Vectors {
    /// Vectors of that length, one after the other; a rest that fills no vector is left out.
    pub(crate) fn of(values: &[f32], dimension: usize) -> Self {
        let blocks_per_row = dimension.div_ceil(STEP).max(1);
        let rows = values.len().checked_div(dimension).unwrap_or(0);
        let mut it = Self {
            blocks: Vec::with_capacity(rows * blocks_per_row),
            scales: Vec::with_capacity(rows),
            blocks_per_row,
        };
        if dimension > 0 {
            values.chunks_exact(dimension).for_each(|row| it.push(row));
        }
        it
    }

    fn push(&mut self, row: &[f32]) {
        let scale = scale_of(row, STORED_MOST);
        self.scales.push(scale);
        for chunk in row.chunks(STEP) {
            let mut block = [OFFSET; STEP];
            for (code, value) in block.iter_mut().zip(chunk) {
                // In 1..=127 by the choice of the scale.
                *code = (code_of(*value, scale, STORED_MOST) + f32::from(OFFSET)) as u8;
            }
            self.blocks.push(block);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// The dot product of each with that vector, in order.
    pub(crate) fn dot(&self, asked: &[f32]) -> Vec<f32> {
        let scale = scale_of(asked, ASKED_MOST);
        let mut codes = vec![[0i8; STEP]; self.blocks_per_row];
        for (block, chunk) in codes.iter_mut().zip(asked.chunks(STEP)) {
            for (code, value) in block.iter_mut().zip(chunk) {
                *code = code_of(*value, scale, ASKED_MOST) as i8;
            }
        }
        let sum: i32 = codes.iter().flatten().map(|code| i32::from(*code)).sum();
        let offset = sum * i32::from(OFFSET);
        let rows = self.blocks.chunks_exact(self.blocks_per_row).zip(&self.scales);
        let mut out = Vec::with_capacity(self.len());
        products(rows.len(), &self.blocks, self.blocks_per_row, &codes, &mut out);
        out.iter().zip(&self.scales).map(|(sum, own)| (sum - offset) as f32 * own * scale).collect()
    }
}

/// Examples to be near to.
#[derive(Debug)]
pub(crate) enum Examples {
    /// Unit vectors in seven bits; nearness is their cosine.
    Coded(Vectors),
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
        Self::Coded(Vectors::of(values, dimension))
    }

    pub(crate) fn exact(values: Vec<f32>, dimension: usize) -> Self {
        Self::Exact { values, dimension: dimension.max(1) }
    }

    /// How near each is; for unit vectors both ways give the cosine.
    pub(crate) fn nearness(&self, features: &[f32]) -> Vec<f32> {
        match self {
            Self::Coded(vectors) => vectors.dot(features),
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

fn scale_of(values: &[f32], most: f32) -> f32 {
    let greatest = values.iter().fold(0.0f32, |greatest, value| greatest.max(value.abs()));
    if greatest > 0.0 { greatest / most } else { 1.0 }
}

fn code_of(value: f32, scale: f32, most: f32) -> f32 {
    (value / scale).round().clamp(-most, most)
}

/// Whole-number products of every row with the codes.
fn products(rows: usize, blocks: &[[u8; STEP]], width: usize, codes: &[[i8; STEP]], out: &mut Vec<i32>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        simd.vectorize(avx2::Rows { simd, blocks, width, codes, out });
        return;
    }
    out.reserve(rows);
    Arch::new().dispatch(|| {
        for row in blocks.chunks_exact(width) {
            let product = |(stored, asked): (&[u8; STEP], &[i8; STEP])| -> i32 {
                stored.iter().zip(asked).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
            };
            out.push(row.iter().zip(codes).map(product).sum());
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
    pub(super) struct Rows<'a> {
        pub(super) simd: V3,
        pub(super) blocks: &'a [[u8; STEP]],
        pub(super) width: usize,
        pub(super) codes: &'a [[i8; STEP]],
        pub(super) out: &'a mut Vec<i32>,
    }

    impl NullaryFnOnce for Rows<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd, blocks, width, codes, out } = self;
            let ones = simd.avx._mm256_set1_epi16(1);
            for row in blocks.chunks_exact(width) {
                let mut sum = simd.avx._mm256_setzero_si256();
                for (stored, asked) in row.iter().zip(codes) {
                    // Two products of at most 127 · 127 each fit sixteen bits.
                    let pairs = simd.avx2._mm256_maddubs_epi16(cast(*stored), cast(*asked));
                    sum = simd.avx2._mm256_add_epi32(sum, simd.avx2._mm256_madd_epi16(pairs, ones));
                }
                let lanes: [i32; 8] = cast(sum);
                out.push(lanes.iter().sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(seed: usize, dimension: usize) -> Vec<f32> {
        let raw: Vec<f32> = (0..dimension).map(|at| ((seed * 97 + at * at) as f32 * 0.37).sin()).collect();
        let length = raw.iter().map(|it| it * it).sum::<f32>().sqrt();
        raw.iter().map(|it| it / length).collect()
    }

    #[test]
    fn products_are_near_the_exact_ones_at_any_length() {
        for dimension in [1, 31, 32, 33, 384] {
            let rows: Vec<Vec<f32>> = (1..21).map(|seed| unit(seed, dimension)).collect();
            let asked = unit(1_000, dimension);
            let vectors = Vectors::of(&rows.concat(), dimension);
            assert_eq!(vectors.len(), 20);
            for (row, got) in rows.iter().zip(vectors.dot(&asked)) {
                let exact: f32 = row.iter().zip(&asked).map(|(a, b)| a * b).sum();
                assert!((exact - got).abs() < 0.01, "{dimension}: {got} for {exact}");
            }
        }
    }

    #[test]
    fn extreme_and_empty_vectors_are_sound() {
        let vectors = Vectors::of(&[1.0; 64], 64);
        assert!((vectors.dot(&[-1.0; 64])[0] + 64.0).abs() < 0.1);
        assert_eq!(Vectors::of(&[0.0; 4], 4).dot(&[0.0; 4]), [0.0]);
        assert_eq!(Vectors::of(&[], 4).dot(&[1.0; 4]), [0.0; 0]);
        assert_eq!(Vectors::of(&[1.0], 0).len(), 0);
    }
}
