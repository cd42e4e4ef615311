//! Floats → signed bytes with one scale a row.
//!
//! It knows no graph and no file. Invariant: `level × scale` differs from the float by at most half a scale.

/// A matrix as signed bytes: `value ≈ level × scale of its row`.
pub(super) struct Rows {
    /// Levels, row by row.
    pub(super) levels: Vec<i8>,
    /// One scale a row.
    pub(super) scales: Vec<f32>,
}

/// Rounds each row of `width` values to levels in `-limit..=limit`, symmetric about zero.
pub(super) fn rows(values: &[f32], width: usize, limit: i8) -> Rows {
    let mut levels = Vec::with_capacity(values.len());
    let mut scales = Vec::with_capacity(values.len() / width.max(1));
    let limit = f32::from(limit);
    for row in values.chunks(width.max(1)) {
        let largest = row.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { largest / limit } else { 1.0 };
        levels.extend(row.iter().map(|value| (value / scale).round().clamp(-limit, limit) as i8));
        scales.push(scale);
    }
    Rows { levels, scales }
}

/// Turns a row-major matrix of `width` columns on its side.
pub(super) fn transpose<T: Copy>(values: &[T], width: usize) -> Vec<T> {
    (0..width).flat_map(|column| values.iter().skip(column).step_by(width.max(1)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_at_most_half_a_scale_from_its_value() {
        let values: Vec<f32> = (0..60).map(|place| ((place * 37 % 61) as f32 - 30.0) / 7.0).collect();
        let quantised = rows(&values, 20, 63);
        assert_eq!(quantised.scales.len(), 3);
        for (place, value) in values.iter().enumerate() {
            let scale = quantised.scales[place / 20];
            let restored = f32::from(quantised.levels[place]) * scale;
            assert!((restored - value).abs() <= scale / 2.0 + 1e-6, "{value} became {restored}");
        }
    }

    #[test]
    fn a_row_of_zeros_stays_zero() {
        let quantised = rows(&[0.0; 4], 4, 127);
        assert_eq!((quantised.levels, quantised.scales), (vec![0; 4], vec![1.0]));
    }

    #[test]
    fn transposing_twice_gives_the_matrix_back() {
        let matrix = [1, 2, 3, 4, 5, 6];
        assert_eq!(transpose(&matrix, 3), vec![1, 4, 2, 5, 3, 6]);
        assert_eq!(transpose(&transpose(&matrix, 3), 2), matrix);
    }
}
