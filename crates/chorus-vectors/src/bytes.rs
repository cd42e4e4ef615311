//! The form of a vector in a file: little-endian floats of four bytes.

/// The bytes of a vector.
#[must_use]
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Reads [`to_bytes`]; what is no whole number of floats is cut off.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    let (floats, _) = bytes.as_chunks::<4>();
    floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_comes_back_from_its_file() {
        let vector = [0.5_f32, -1.25, f32::MIN_POSITIVE];
        assert_eq!(from_bytes(&to_bytes(&vector)), vector);
    }
}
