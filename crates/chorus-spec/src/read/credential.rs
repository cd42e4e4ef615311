//! Credentials in a file: by reference, or written out and warned of.

use super::cursor::Cursor;
use crate::Secret;
use crate::diagnostic::code;

/// The credential under the key; warns where it is written out.
pub(super) fn secret(at: &Cursor<'_>, key: &str) -> Option<Secret> {
    let named = at.get(key)?;
    let text = named.text().filter(|text| !text.is_empty())?;
    if !(text.starts_with("${") && text.ends_with('}')) {
        let help = "write `${NAME}` and set that environment variable".to_owned();
        named.warn_help(code::LITERAL_SECRET, "a credential is written into the file", help);
    }
    Some(Secret::new(text))
}
