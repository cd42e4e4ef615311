//! The small operations between the matrix products, over plain slices.
//!
//! Each is a loop that the compiler turns into vector instructions; [`wide`] lets it use what the processor has.

/// Numbers that a loop keeps in flight.
const LANES: usize = 32;

/// Runs a computation compiled for the processor's vector instructions.
#[inline]
pub(super) fn wide<T>(computation: impl FnOnce() -> T) -> T {
    pulp::Arch::new().dispatch(computation)
}

/// Sum of products; both slices are equally long.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// `out += scale × values`.
#[inline(always)]
pub(super) fn add_scaled(out: &mut [f32], scale: f32, values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += scale * value;
    }
}

/// `out += values`.
#[inline(always)]
pub(super) fn add(out: &mut [f32], values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += value;
    }
}

/// Root-mean-square normalisation of each row, times the weights.
///
/// Source: Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4.
pub(super) fn rms_norm(rows: &[f32], weights: &[f32], epsilon: f32, out: &mut [f32]) {
    wide(
        #[inline(always)]
        || {
            let width = weights.len();
            for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
                let scale = (dot(row, row) / width as f32 + epsilon).sqrt().recip();
                for ((out, value), weight) in out.iter_mut().zip(row).zip(weights) {
                    *out = value * scale * weight;
                }
            }
        },
    );
}

/// `SiLU(gate) × up` for rows that hold the gate's numbers first and the other half after them.
///
/// Source: Shazeer 2020, "GLU Variants Improve Transformer", SwiGLU.
pub(super) fn gated(row: &[f32], out: &mut [f32]) {
    let (gate, up) = row.split_at(row.len() / 2);
    wide(
        #[inline(always)]
        || {
            for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
                *out = gate / (1.0 + exp(-gate)) * up;
            }
        },
    );
}

/// `eˣ` within 2·10⁻⁷ of its value, in a form that vectorises.
///
/// Source: Cephes `expf`: split off the power of two, then a polynomial over ±ln 2 / 2.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    // Adding and taking away 1.5·2²³ rounds to a whole number without a library call.
    const ROUND: f32 = 12_582_912.0;
    let power = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = x - power * HIGH - power * LOW;
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
        sum = sum * r + coefficient;
    }
    let value = sum * r * r + r + 1.0;
    value * f32::from_bits(((power as i32 + 127) << 23).cast_unsigned())
}

/// Turns scores into probabilities in place.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().fold(f32::NEG_INFINITY, |most, score| most.max(*score));
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = exp(*score - most);
        total += *score;
    }
    let inverse = f32::recip(total);
    for score in scores.iter_mut() {
        *score *= inverse;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_over_its_range() {
        for step in -8600..8700 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let got = f64::from(exp(x));
            assert!((got / exact - 1.0).abs() < 2e-6, "e^{x} is {exact}, not {got}");
        }
        assert!(exp(-1000.0) < 1e-37);
    }

    #[test]
    fn softmax_sums_to_one_and_keeps_the_order() {
        let mut scores = [1.0, 3.0, 2.0, -50.0];
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(scores[1] > scores[2] && scores[2] > scores[0] && scores[0] > scores[3]);
    }

    #[test]
    fn norm_gives_unit_mean_square() {
        let row = [3.0, -4.0, 0.0, 5.0];
        let mut out = [0.0; 4];
        rms_norm(&row, &[1.0; 4], 0.0, &mut out);
        let mean_square: f32 = out.iter().map(|x| x * x).sum::<f32>() / 4.0;
        assert!((mean_square - 1.0).abs() < 1e-5);
    }

    #[test]
    fn dot_takes_the_rest_into_account() {
        let a: Vec<f32> = (0..37).map(|i| i as f32).collect();
        assert_eq!(dot(&a, &[1.0; 37]), 666.0);
    }
}
