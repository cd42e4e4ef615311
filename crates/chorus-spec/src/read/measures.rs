//! Words and bounds that several algorithms share.

use super::cursor::Cursor;
use crate::OnError;
use crate::diagnostic::code;
use std::time::Duration;

/// The words of `on_error`.
pub(super) const ON_ERROR: [(&str, OnError); 2] = [("skip", OnError::Skip), ("fail", OnError::Fail)];

/// Greatest sampling temperature of the chat completions API.
pub(super) const TEMPERATURE_MOST: f64 = 2.0;

/// A size; a written 0 is "not set".
pub(super) fn size(at: &Cursor<'_>, key: &str) -> Option<usize> {
    at.count(key).and_then(|count| usize::try_from(count).ok())
}

/// A text of the author's own, with a remark upon each placeholder that it lacks.
pub(super) fn template(at: &Cursor<'_>, key: &str, placeholders: &[&str]) -> Option<String> {
    let text = at.string(key).filter(|text| !text.trim().is_empty())?;
    let holder = at.get(key)?;
    for placeholder in placeholders.iter().filter(|placeholder| !text.contains(**placeholder)) {
        holder.warn(code::TEMPLATE_PLACEHOLDER, format!("`{key}` lacks `{placeholder}`"));
    }
    Some(text)
}

/// A time in whole seconds; 0 is "not set".
pub(super) fn seconds(at: &Cursor<'_>, key: &str) -> Option<Duration> {
    at.count(key).map(Duration::from_secs)
}
