//! Paths of URLs. It knows no URL.

/// A text as one segment of a path. Source: RFC 3986, section 2.3 (unreserved characters).
pub(crate) fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}
