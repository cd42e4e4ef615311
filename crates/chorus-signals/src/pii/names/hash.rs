//! The hash by which words and features are found again: the same on every machine.

/// Where FNV-1a begins.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits, of the lower-case form. Source: Fowler, Noll and Vo, draft-eastlake-fnv.
pub(super) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    if text.is_ascii() {
        text.bytes().fold(BASIS, |hash, byte| step(hash, byte.to_ascii_lowercase()))
    } else {
        text.to_lowercase().bytes().fold(BASIS, step)
    }
}
