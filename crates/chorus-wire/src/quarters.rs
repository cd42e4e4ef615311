//! What a text weighs in quarters of a token, by its bytes and its scripts. It knows neither requests nor messages.

/// Quarters of a token.
pub(crate) fn quarters(text: &str) -> u64 {
    let dense = if text.is_ascii() { 0 } else { text.chars().filter(|c| is_dense(*c)).count() };
    (text.len() + dense) as u64
}

/// Whether a character is of a script in which one is about a token: Han, Kana, Hangul.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x3041..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}
