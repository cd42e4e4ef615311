//! `global.stores.vector_store`: files and vector stores of this process.
//!
//! Source: contract §1.9.

use super::cursor::Cursor;
use super::memory::{foreign, server};
use crate::diagnostic::code;
use crate::{DocumentFormat, VectorStoreSettings};

/// Backends that the contract names and this version does not run.
const FOREIGN: [&str; 3] = ["milvus", "llama_stack", "valkey"];
/// What names of collections begin with unless the file says otherwise.
const COLLECTION_PREFIX: &str = "vllm-sr_";
/// Largest file that may be allowed: 512 MB, as the API that is spoken.
const MEGABYTES_MOST: i64 = 512;

const FORMATS: [(&str, DocumentFormat); 8] = [
    ("txt", DocumentFormat::Text),
    ("text", DocumentFormat::Text),
    ("md", DocumentFormat::Markdown),
    ("markdown", DocumentFormat::Markdown),
    ("json", DocumentFormat::Json),
    ("jsonl", DocumentFormat::Json),
    ("csv", DocumentFormat::Csv),
    ("tsv", DocumentFormat::Csv),
];

/// Reads it.
pub(super) fn read(root: &Cursor<'_>) -> VectorStoreSettings {
    let defaults = VectorStoreSettings::default();
    let Some(at) = root.dig(&["global", "stores", "vector_store"]) else { return defaults };
    let enabled = at.boolean("enabled").unwrap_or(false);
    let server =
        if enabled { server(&at, "backend_type", ("collection_prefix", COLLECTION_PREFIX)) } else { None };
    if enabled {
        if server.is_none() {
            foreign(&at, "backend_type", &FOREIGN);
        }
        foreign(&at, "metadata_store", &["postgres"]);
    }
    let megabytes = at.integer_in("max_file_size_mb", 0, MEGABYTES_MOST).filter(|n| *n > 0);
    let entries = at.get("memory").and_then(|it| it.count("max_entries_per_store"));
    VectorStoreSettings {
        enabled,
        max_file_bytes: megabytes
            .and_then(|n| usize::try_from(n).ok())
            .map_or(defaults.max_file_bytes, |n| n << 20),
        max_chunks_per_store: entries
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(defaults.max_chunks_per_store),
        formats: formats(&at).unwrap_or(defaults.formats),
        server,
    }
}

fn formats(at: &Cursor<'_>) -> Option<Vec<DocumentFormat>> {
    let mut formats = Vec::new();
    for item in at.items("supported_formats") {
        let word = item.node().text().map(|text| text.trim().trim_start_matches('.').to_ascii_lowercase());
        let found = FORMATS.iter().find(|(name, _)| word.as_deref() == Some(*name));
        match found {
            Some((_, format)) if !formats.contains(format) => formats.push(*format),
            Some(_) => {}
            None => {
                let known: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
                let help = format!("text is read from {}", known.join(", "));
                item.error_help(code::BAD_VALUE, "files of this kind cannot be read", help);
            }
        }
    }
    (!formats.is_empty()).then_some(formats)
}
