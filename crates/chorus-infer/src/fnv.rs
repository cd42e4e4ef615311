//! FNV-1a in 64 bits: the hash by which words and features find their places, the same on every machine.
//!
//! It knows units, not what they stand for: bytes, characters, or whole numbers. **Invariant:** it never changes; trained heads
//! are bound to the places that it gives.
//!
//! Source: Fowler, Noll and Vo, draft-eastlake-fnv (§5, parameters of 64 bits). Units wider than a byte are taken whole.

/// The hash of nothing.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

const PRIME: u64 = 0x0100_0000_01b3;

/// The hash of what was hashed before and one more unit.
#[must_use]
pub fn add(hash: u64, unit: impl Into<u64>) -> u64 {
    (hash ^ unit.into()).wrapping_mul(PRIME)
}

/// The hash of these units.
#[must_use]
pub fn of<U: Into<u64>>(units: impl IntoIterator<Item = U>) -> u64 {
    units.into_iter().fold(BASIS, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_hash_as_published() {
        // Source: the test vectors of draft-eastlake-fnv, appendix.
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(of(text.bytes()), hash, "{text}");
        }
    }
}
