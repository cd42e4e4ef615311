//! A stored file becomes passages that can be found: its text is cut, and each passage gets a vector.
//!
//! It knows files of this process and the shared encoder, no door. **Invariant:** whatever happens, the file of the vector
//! store says how it ended.

use crate::fault::{Code, Fault};
use crate::mom::Mom;
use chorus_recall::chunks;
use chorus_spec::{DocumentFormat, VectorStoreSettings};
use chorus_store::documents::{AttachedFile, NewPassage, Question};
use chorus_store::{DocumentLimits, RecallFault, Whose};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Passages that the encoder reads in one go, between which other requests get their turn.
const BATCH: usize = 8;

/// The bounds of this configuration's files and vector stores.
#[must_use]
pub fn limits(settings: &VectorStoreSettings) -> DocumentLimits {
    DocumentLimits {
        max_file_bytes: settings.max_file_bytes,
        max_passages: settings.max_chunks_per_store as u64,
        ..DocumentLimits::default()
    }
}

/// Why a file of that name cannot be read, as a sentence; `None` where it can.
#[must_use]
pub fn unreadable(settings: &VectorStoreSettings, name: &str, content: &[u8]) -> Option<String> {
    let format = format_of(name);
    if !settings.formats.contains(&format) {
        return Some("files of this kind are not taken here (supported_formats)".to_owned());
    }
    let is_text = std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0'));
    (!is_text).then(|| "only text in UTF-8 can be read: turn the document into text first".to_owned())
}

/// What the end of its name says that a file is.
fn format_of(name: &str) -> DocumentFormat {
    let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match end.as_str() {
        "md" | "markdown" => DocumentFormat::Markdown,
        "json" | "jsonl" => DocumentFormat::Json,
        "csv" | "tsv" => DocumentFormat::Csv,
        _ => DocumentFormat::Text,
    }
}

/// Reads a file into the vector store that it was attached to.
pub async fn ingest(mom: Arc<Mom>, whose: Whose, it: AttachedFile) {
    let encoder = mom.classifiers.encoder().map(|(digest, _)| digest.to_owned()).unwrap_or_default();
    let limits = limits(&mom.spec.global.vector_store);
    let documents = &mom.shelf.store.documents;
    let outcome = passages(&mom, whose, &it).await;
    let settled = documents.settle(&it.store, &it.file, &encoder, outcome, limits).await;
    let failed = match settled {
        Ok(()) => return,
        Err(RecallFault::Bound { .. }) => {
            "the vector store would hold too many passages (max_entries_per_store)"
        }
        Err(fault) => {
            tracing::error!(%fault, file = it.file, "the passages of a file cannot be kept");
            "the passages cannot be kept; the log of the server says why"
        }
    };
    if let Err(fault) = documents.settle(&it.store, &it.file, &encoder, Err(failed.to_owned()), limits).await
    {
        tracing::error!(%fault, file = it.file, "a file cannot be marked as failed");
    }
}

async fn passages(mom: &Mom, whose: Whose, it: &AttachedFile) -> Result<Vec<NewPassage>, String> {
    let documents = &mom.shelf.store.documents;
    let content = documents.content(whose, &it.file).await.map_err(|fault| {
        tracing::error!(%fault, file = it.file, "a file cannot be read");
        "the file cannot be read; the log of the server says why".to_owned()
    })?;
    let content = content.ok_or("the file is gone")?;
    let text = String::from_utf8(content).map_err(|_| "the file is no text in UTF-8")?;
    let texts: Vec<String> = chunks(&text, &it.rule).into_iter().map(str::to_owned).collect();
    if texts.len() > mom.spec.global.vector_store.max_chunks_per_store {
        return Err("the file alone has too many passages (max_entries_per_store)".to_owned());
    }
    let mut read = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        let vectors = mom.classifiers.embed(batch.to_vec()).await.map_err(|fault| fault.public)?;
        let rows = batch.iter().cloned().zip(vectors);
        read.extend(rows.map(|(text, vector)| NewPassage { text, vector }));
    }
    Ok(read)
}

/// A passage that was found in a vector store.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPassage {
    /// The file.
    pub file: String,
    /// The file's name.
    pub name: String,
    /// What it says.
    pub text: String,
    /// The file's attributes, a JSON object.
    pub attributes: String,
    /// How near it is, in 0..=1, on the scale of configuration files.
    pub score: f64,
}

/// The passages of a vector store that are nearest to a question, of these files where any are named; `None` where there
/// is no such store within reach.
///
/// # Errors
/// [`Code::NotLoaded`] without an encoder, [`Code::StoreUnavailable`] without the server that keeps passages.
pub async fn find(
    mom: &Mom,
    whose: Whose,
    store: &str,
    question: &str,
    most: usize,
    files: Option<BTreeSet<String>>,
) -> Result<Option<Vec<FoundPassage>>, Fault> {
    let vector = mom.classifiers.embed(vec![question.to_owned()]).await?.pop().unwrap_or_default();
    let encoder = mom.classifiers.encoder().map(|(digest, _)| digest.to_owned()).unwrap_or_default();
    let wanted = Question { store: store.to_owned(), encoder, vector, most, files };
    let hits = mom.shelf.store.documents.search(whose, wanted).await.map_err(|fault| {
        tracing::error!(%fault, "a vector store cannot be searched");
        let is_served = mom.spec.global.vector_store.server.is_some();
        let code = if is_served { Code::StoreUnavailable } else { Code::Internal };
        Fault::new(code, "the vector store cannot be searched; the log of the server says why")
    })?;
    let scale = &mom.selection.calibration;
    let found = |hit: chorus_store::documents::Hit| FoundPassage {
        file: hit.file,
        name: hit.name,
        text: hit.text,
        attributes: hit.attributes,
        score: scale.apply(hit.cosine).clamp(0.0, 1.0),
    };
    Ok(hits.map(|hits| hits.into_iter().map(found).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_and_nothing_else() {
        let all = VectorStoreSettings::default();
        assert_eq!(unreadable(&all, "a.txt", "Grüße".as_bytes()), None);
        assert_eq!(unreadable(&all, "main.rs", b"fn main() {}"), None);
        assert!(unreadable(&all, "a.pdf", b"%PDF-1.7\0\xff").is_some());
        assert!(unreadable(&all, "a.txt", b"\0").is_some());
        let only = VectorStoreSettings { formats: vec![DocumentFormat::Markdown], ..all };
        assert_eq!(unreadable(&only, "a.MD", b"# x"), None);
        assert!(unreadable(&only, "a.csv", b"x").is_some());
    }
}
