//! A record in two parts, what was said apart from the rest, so that the one can go without the other.
//!
//! **Invariant:** both parts together are the record.

use crate::{RunRecord, StoreFault};

/// A record without its content, and the content or nothing, each as JSON.
pub(super) fn apart(record: &mut RunRecord) -> Result<(String, String), StoreFault> {
    let content = record.content.take();
    let bare = serde_json::to_string(record);
    record.content = content;
    let content = record.content.as_ref().map(serde_json::to_string).transpose()?;
    Ok((bare?, content.unwrap_or_default()))
}

/// The record of those parts.
pub(super) fn whole(record: &str, content: &str) -> Result<RunRecord, StoreFault> {
    let mut record: RunRecord = serde_json::from_str(record)?;
    if !content.is_empty() {
        record.content = Some(serde_json::from_str(content)?);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;

    #[test]
    fn a_record_is_whole_again() {
        let content = Content { prompt: "é\n".to_owned(), ..Content::default() };
        for content in [None, Some(content)] {
            let mut record = RunRecord { content, ..RunRecord::default() };
            let (bare, apart) = apart(&mut record).unwrap();
            assert!(!bare.contains("\"content\""));
            assert_eq!(whole(&bare, &apart).unwrap(), record);
        }
    }
}
