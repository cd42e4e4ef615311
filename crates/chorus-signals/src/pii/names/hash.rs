//! The hash by which words and features are found again, whatever their case.

use chorus_infer::fnv;

/// The hash of the lower-case form.
pub(super) fn hash(text: &str) -> u64 {
    if text.is_ascii() {
        fnv::of(text.bytes().map(|byte| byte.to_ascii_lowercase()))
    } else {
        fnv::of(text.to_lowercase().bytes())
    }
}
