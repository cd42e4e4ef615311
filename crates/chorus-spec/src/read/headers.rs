//! Names of headers. It knows their characters, not what they are for.

use super::cursor::Cursor;
use crate::diagnostic::code;

/// The name of a header that this text is; reports what cannot be one.
///
/// Source: RFC 9110 §5.6.2, the characters of a token.
pub(super) fn header_name(at: &Cursor<'_>) -> Option<String> {
    let name = at.node().text()?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        at.error(code::BAD_VALUE, format!("`{name}` cannot name a header"));
        return None;
    }
    Some(name.to_owned())
}
