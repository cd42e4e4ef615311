//! Weights as rows of 8-bit blocks, and their product with activations.
//!
//! A block is 32 numbers with one scale (the values of GGUF's Q8_0, scales widened to 32 bits and kept apart).
//! Activations are cut into the same blocks of 16-bit numbers, so that almost nothing is lost on their side. It knows
//! no model. Invariant: a product's value depends on its row and its column alone, bit for bit; how many of them are
//! computed together, and on which thread, only changes the speed.
//!
//! Source: the block layout is that of ggml, `block_q8_0`.

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Result};
use half::f16;
use rayon::prelude::*;

/// Numbers in a block.
pub(super) const BLOCK: usize = 32;
/// Bytes of a stored block: a 16-bit scale and 32 values.
const STORED_BLOCK_BYTES: usize = 34;
/// Rows whose blocks lie side by side: a pass over them reads memory as one stream.
const GROUP: usize = 4;
/// Rows of weights that one thread takes at a time when there is a single column; a multiple of the group.
const ROWS_PER_TASK: usize = 64;
/// Columns that pass over the weights together, small enough for the first cache levels.
const COLUMNS_PER_TASK: usize = 16;

/// Halves of a block of weights.
type WeightBlock = [[i8; 16]; 2];
/// Halves of a block of activations.
type ActivationBlock = [[i16; 16]; 2];

/// The blocks of a group of rows at one place.
#[derive(Debug, Clone, Copy, Default)]
struct GroupBlock {
    scales: [f32; GROUP],
    values: [WeightBlock; GROUP],
}

/// A matrix of weights, group of rows by group of rows; the last group is filled up with zeros.
#[derive(Debug)]
pub(super) struct Q8Matrix {
    rows: usize,
    blocks_per_row: usize,
    blocks: Vec<GroupBlock>,
}

/// Activations ready to be multiplied: one row of blocks a column of the product.
#[derive(Debug, Default)]
pub(super) struct Activations {
    blocks_per_row: usize,
    blocks: Vec<ActivationBlock>,
    scales: Vec<f32>,
}

impl Q8Matrix {
    /// Stacks tensors with equally long rows, in order, into one matrix. Each must be of rank 2.
    pub(super) fn stack(tensors: &[QTensor]) -> Result<Self> {
        let mut matrix = Self { rows: 0, blocks_per_row: 0, blocks: Vec::new() };
        for tensor in tensors {
            let (rows, columns) = tensor.shape().dims2()?;
            let blocks_per_row = columns / BLOCK;
            if columns % BLOCK != 0 || (matrix.rows > 0 && blocks_per_row != matrix.blocks_per_row) {
                candle_core::bail!("rows of {columns} weights do not fit");
            }
            let first = matrix.rows * blocks_per_row;
            matrix.rows += rows;
            matrix.blocks_per_row = blocks_per_row;
            matrix.blocks.resize(matrix.rows.div_ceil(GROUP) * blocks_per_row, GroupBlock::default());
            if tensor.dtype() == GgmlDType::Q8_0 {
                let bytes = tensor.data()?;
                let (stored, _) = bytes.as_chunks::<STORED_BLOCK_BYTES>();
                matrix.place(first, stored.iter().map(from_stored));
            } else {
                let values = tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?;
                let (plain, _) = values.as_chunks::<BLOCK>();
                matrix.place(first, plain.iter().map(from_plain));
            }
        }
        Ok(matrix)
    }

    /// Puts blocks, in the order of plain rows, where they belong; `first` counts blocks of plain rows.
    fn place(&mut self, first: usize, blocks: impl Iterator<Item = (f32, WeightBlock)>) {
        for (index, (scale, values)) in (first..).zip(blocks) {
            let (row, place) = (index / self.blocks_per_row, index % self.blocks_per_row);
            let Some(group) = self.blocks.get_mut(row / GROUP * self.blocks_per_row + place) else {
                return;
            };
            let lanes = group.scales.iter_mut().zip(&mut group.values);
            if let Some((to_scale, to_values)) = lanes.into_iter().nth(row % GROUP) {
                (*to_scale, *to_values) = (scale, values);
            }
        }
    }

    /// Rows, which is the length of a product.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row.
    pub(super) fn columns(&self) -> usize {
        self.blocks_per_row * BLOCK
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<GroupBlock>()
    }

    /// Writes one row as plain numbers.
    pub(super) fn copy_row(&self, row: usize, out: &mut [f32]) {
        for (group, out) in self.group(row / GROUP).iter().zip(out.chunks_exact_mut(BLOCK)) {
            let lanes = group.scales.iter().zip(&group.values);
            for (scale, values) in lanes.skip(row % GROUP).take(1) {
                for (to, from) in out.iter_mut().zip(values.as_flattened()) {
                    *to = f32::from(*from) * scale;
                }
            }
        }
    }

    /// Multiplies every column of activations: `out` holds `rows` numbers a column.
    pub(super) fn multiply(&self, activations: &Activations, out: &mut [f32]) {
        let level = Level::detect();
        if activations.columns() == 1 {
            out.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(task, out)| {
                let first_group = task * ROWS_PER_TASK / GROUP;
                level.run(Pass { matrix: self, first_group, activations, first_column: 0, out });
            });
        } else {
            out.par_chunks_mut(COLUMNS_PER_TASK * self.rows).enumerate().for_each(|(task, out)| {
                let first_column = task * COLUMNS_PER_TASK;
                level.run(Pass { matrix: self, first_group: 0, activations, first_column, out });
            });
        }
    }

    #[inline(always)]
    fn group(&self, group: usize) -> &[GroupBlock] {
        let range = group * self.blocks_per_row..(group + 1) * self.blocks_per_row;
        self.blocks.get(range).unwrap_or_default()
    }
}

/// A block as GGUF stores it.
fn from_stored([scale_low, scale_high, values @ ..]: &[u8; STORED_BLOCK_BYTES]) -> (f32, WeightBlock) {
    let mut block = [[0; 16]; 2];
    for (to, from) in block.as_flattened_mut().iter_mut().zip(values) {
        *to = from.cast_signed();
    }
    (f16::from_le_bytes([*scale_low, *scale_high]).to_f32(), block)
}

/// A block of plain numbers.
fn from_plain(values: &[f32; BLOCK]) -> (f32, WeightBlock) {
    let scale = largest(values) / f32::from(i8::MAX);
    let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
    let mut block = [[0; 16]; 2];
    for (to, from) in block.as_flattened_mut().iter_mut().zip(values) {
        *to = (from * inverse).round() as i8;
    }
    (scale, block)
}

impl Activations {
    /// Takes rows of `length` numbers each; `length` is a multiple of the block.
    pub(super) fn set(&mut self, rows: &[f32], length: usize) {
        self.blocks_per_row = length / BLOCK;
        self.blocks.clear();
        self.scales.clear();
        let (blocks, _) = rows.as_chunks::<BLOCK>();
        for values in blocks {
            let scale = largest(values) / f32::from(i16::MAX);
            let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
            let mut block = [[0; 16]; 2];
            for (to, from) in block.as_flattened_mut().iter_mut().zip(values) {
                *to = (from * inverse).round_ties_even() as i16;
            }
            self.blocks.push(block);
            self.scales.push(scale);
        }
    }

    fn columns(&self) -> usize {
        self.blocks.len().checked_div(self.blocks_per_row).unwrap_or(0)
    }

    #[inline(always)]
    fn column(&self, column: usize) -> Column<'_> {
        let range = column * self.blocks_per_row..(column + 1) * self.blocks_per_row;
        Column {
            blocks: self.blocks.get(range.clone()).unwrap_or_default(),
            scales: self.scales.get(range).unwrap_or_default(),
        }
    }
}

fn largest(values: &[f32; BLOCK]) -> f32 {
    values.iter().fold(0.0, |most, value| most.max(value.abs()))
}

/// One column's blocks with their scales; both slices are equally long.
#[derive(Clone, Copy)]
struct Column<'a> {
    blocks: &'a [ActivationBlock],
    scales: &'a [f32],
}

/// A rectangle of the product: rows from a group on and columns from one on, as many as `out` has room for.
struct Pass<'a> {
    matrix: &'a Q8Matrix,
    first_group: usize,
    activations: &'a Activations,
    first_column: usize,
    out: &'a mut [f32],
}

impl Pass<'_> {
    /// Fills `out` tile by tile. Every tile does the same arithmetic for each of its elements.
    #[inline(always)]
    fn fill(self, kernel: impl Kernel) {
        if self.activations.columns() == 1 {
            let column = self.activations.column(self.first_column);
            for (group, out) in (self.first_group..).zip(self.out.chunks_mut(GROUP)) {
                let [sums] = kernel.tile(self.matrix.group(group), [column]);
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = sum;
                }
            }
            return;
        }
        let columns = self.out.chunks_exact_mut(self.matrix.rows);
        let mut columns: Vec<_> = columns.map(|column| column.chunks_mut(GROUP)).collect();
        for group in 0..self.matrix.rows.div_ceil(GROUP) {
            let weights = self.matrix.group(group);
            for (index, pair) in columns.chunks_mut(2).enumerate() {
                let first = self.first_column + index * 2;
                let sums = if pair.len() == 2 {
                    kernel.tile(weights, [first, first + 1].map(|column| self.activations.column(column)))
                } else {
                    let [sums] = kernel.tile(weights, [self.activations.column(first)]);
                    [sums; 2]
                };
                for (outs, sums) in pair.iter_mut().zip(sums) {
                    for (out, sum) in outs.next().unwrap_or_default().iter_mut().zip(sums) {
                        *out = sum;
                    }
                }
            }
        }
    }
}

/// Products of a group of rows with some columns: one list a column.
trait Kernel: Copy {
    fn tile<const C: usize>(self, group: &[GroupBlock], columns: [Column<'_>; C]) -> [[f32; GROUP]; C];
}

/// Adds eight partial sums pairwise.
#[inline(always)]
fn fold([a, b, c, d, e, f, g, h]: [f32; 8]) -> f32 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// What the processor offers.
#[derive(Clone, Copy)]
enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    Portable,
}

impl Level {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Self::Avx2(simd);
        }
        Self::Portable
    }

    fn run(self, pass: Pass<'_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(avx2::Vectorised { simd, pass }),
            Self::Portable => pass.fill(Portable),
        }
    }
}

#[derive(Clone, Copy)]
struct Portable;

impl Kernel for Portable {
    #[inline(always)]
    fn tile<const C: usize>(self, group: &[GroupBlock], columns: [Column<'_>; C]) -> [[f32; GROUP]; C] {
        columns.map(|column| {
            let mut sums = [[0.0f32; 8]; GROUP];
            for (weights, (values, value_scale)) in group.iter().zip(column.blocks.iter().zip(column.scales))
            {
                let rows = weights.values.iter().zip(weights.scales);
                for (sums, (weights, scale)) in sums.iter_mut().zip(rows) {
                    add_block(sums, weights, values, scale * value_scale);
                }
            }
            sums.map(fold)
        })
    }
}

/// Adds one block's products to eight partial sums.
#[inline(always)]
fn add_block(sums: &mut [f32; 8], weights: &WeightBlock, values: &ActivationBlock, scale: f32) {
    let mut lanes = [0i32; 8];
    for (weights, values) in weights.iter().zip(values) {
        let pairs = weights.as_chunks::<2>().0.iter().zip(values.as_chunks::<2>().0);
        for (lane, ([w0, w1], [v0, v1])) in lanes.iter_mut().zip(pairs) {
            *lane += i32::from(*w0) * i32::from(*v0) + i32::from(*w1) * i32::from(*v1);
        }
    }
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        *sum += lane as f32 * scale;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same arithmetic, eight lanes at a time.

    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, cast, f32x8};

    use super::{Column, GROUP, GroupBlock, Kernel, Pass, fold};

    /// A pass to be compiled for AVX2 and FMA.
    pub(super) struct Vectorised<'a> {
        pub(super) simd: V3,
        pub(super) pass: Pass<'a>,
    }

    impl NullaryFnOnce for Vectorised<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.pass.fill(Avx2(self.simd));
        }
    }

    #[derive(Clone, Copy)]
    struct Avx2(V3);

    impl Kernel for Avx2 {
        #[inline(always)]
        #[expect(
            clippy::indexing_slicing,
            clippy::needless_range_loop,
            reason = "rows and columns are counted together; slices are cut to one length, so no check remains"
        )]
        fn tile<const C: usize>(self, group: &[GroupBlock], columns: [Column<'_>; C]) -> [[f32; GROUP]; C] {
            let Self(simd) = self;
            let length = group.len();
            let columns = columns
                .map(|column| Column { blocks: &column.blocks[..length], scales: &column.scales[..length] });
            let mut sums = [[simd.splat_f32x8(0.0); GROUP]; C];
            for (block, weights) in group.iter().enumerate() {
                for row in 0..GROUP {
                    let [low, high] = weights.values[row];
                    let low = simd.avx2._mm256_cvtepi8_epi16(cast(low));
                    let high = simd.avx2._mm256_cvtepi8_epi16(cast(high));
                    for c in 0..C {
                        let [value_low, value_high] = columns[c].blocks[block];
                        let low = simd.avx2._mm256_madd_epi16(low, cast(value_low));
                        let high = simd.avx2._mm256_madd_epi16(high, cast(value_high));
                        let lanes = simd.avx._mm256_cvtepi32_ps(simd.avx2._mm256_add_epi32(low, high));
                        let scale = simd.splat_f32x8(weights.scales[row] * columns[c].scales[block]);
                        sums[c][row] = simd.mul_add_f32x8(cast::<_, f32x8>(lanes), scale, sums[c][row]);
                    }
                }
            }
            sums.map(|sums| sums.map(|sums| fold(cast(sums))))
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Tensor;

    use super::*;

    fn wave(count: usize, step: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * step).sin()).collect()
    }

    fn matrix(rows: usize, columns: usize) -> (Q8Matrix, Vec<f32>) {
        let values = wave(rows * columns, 0.37);
        let tensor = Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap();
        let stored = QTensor::quantize(&tensor, GgmlDType::Q8_0).unwrap();
        let plain = stored.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        (Q8Matrix::stack(&[stored]).unwrap(), plain)
    }

    #[test]
    fn products_equal_plain_arithmetic() {
        let (rows, columns) = (70, 96);
        let (matrix, plain) = matrix(rows, columns);
        let inputs = wave(columns * 5, 0.11);
        let mut activations = Activations::default();
        activations.set(&inputs, columns);
        let mut out = vec![0.0; rows * 5];
        matrix.multiply(&activations, &mut out);
        for (column, input) in inputs.chunks(columns).enumerate() {
            for (row, weights) in plain.chunks(columns).enumerate() {
                let exact: f32 = weights.iter().zip(input).map(|(a, b)| a * b).sum();
                let got = out[column * rows + row];
                assert!((exact - got).abs() < 1e-3, "row {row}, column {column}: {got} for {exact}");
            }
        }
    }

    #[test]
    fn a_product_does_not_depend_on_its_neighbours() {
        let (rows, columns) = (67, 160);
        let (matrix, _) = matrix(rows, columns);
        let inputs = wave(columns * 23, 0.07);
        let mut activations = Activations::default();
        activations.set(&inputs, columns);
        let mut together = vec![0.0; rows * 23];
        matrix.multiply(&activations, &mut together);
        for (input, together) in inputs.chunks(columns).zip(together.chunks(rows)) {
            activations.set(input, columns);
            let mut alone = vec![0.0; rows];
            matrix.multiply(&activations, &mut alone);
            assert_eq!(alone, together);
        }
    }

    #[test]
    fn the_portable_kernel_agrees_with_the_fast_one() {
        let (matrix, _) = matrix(8, 64);
        let mut activations = Activations::default();
        activations.set(&wave(64, 0.5), 64);
        let mut fast = vec![0.0; 8];
        matrix.multiply(&activations, &mut fast);
        for (group, fast) in fast.chunks(GROUP).enumerate() {
            let [portable] = Portable.tile(matrix.group(group), [activations.column(0)]);
            for (portable, fast) in portable.iter().zip(fast) {
                assert!((portable - fast).abs() < 1e-4, "{portable} against {fast}");
            }
        }
    }

    #[test]
    fn rows_read_back_and_other_layouts_are_taken_over() {
        let values = wave(4 * 32, 0.3);
        let tensor = Tensor::from_vec(values.clone(), (4, 32), &Device::Cpu).unwrap();
        for layout in [GgmlDType::F32, GgmlDType::Q8_0, GgmlDType::Q5_0] {
            let matrix = Q8Matrix::stack(&[QTensor::quantize(&tensor, layout).unwrap()]).unwrap();
            let mut row = [0.0; 32];
            matrix.copy_row(2, &mut row);
            let tolerance = if layout == GgmlDType::Q5_0 { 0.07 } else { 0.01 };
            for (got, expected) in row.iter().zip(&values[64..96]) {
                assert!((got - expected).abs() < tolerance, "{layout:?}: {got} for {expected}");
            }
        }
    }
}
