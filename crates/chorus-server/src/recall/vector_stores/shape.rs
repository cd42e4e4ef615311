//! Vector stores, their files and what was found, in OpenAI's words.

use chorus_engine::ingest::FoundPassage;
use chorus_store::documents::{AttachedFile, Progress, VectorStore};
use serde_json::{Value, json};

pub(super) fn store(store: &VectorStore, files: &[AttachedFile]) -> Value {
    let count = |word: &str| files.iter().filter(|file| file.progress.as_str() == word).count();
    let in_progress = count("in_progress");
    json!({
        "id": store.id, "object": "vector_store", "created_at": store.created_at, "name": store.name,
        "usage_bytes": store.bytes, "status": if in_progress > 0 { "in_progress" } else { "completed" },
        "file_counts": {
            "in_progress": in_progress, "completed": count("completed"), "failed": count("failed"),
            "cancelled": 0, "total": files.len(),
        },
        "expires_after": null, "expires_at": null, "last_active_at": store.created_at,
        "metadata": object(&store.metadata),
    })
}

pub(super) fn file(file: &AttachedFile) -> Value {
    let error = match &file.progress {
        Progress::Failed(why) => json!({"code": "server_error", "message": why}),
        Progress::InProgress | Progress::Completed => Value::Null,
    };
    let sizes = json!({
        "max_chunk_size_tokens": file.rule.max_tokens, "chunk_overlap_tokens": file.rule.overlap_tokens,
    });
    json!({
        "id": file.file, "object": "vector_store.file", "usage_bytes": file.bytes, "created_at": file.created_at,
        "vector_store_id": file.store, "status": file.progress.as_str(), "last_error": error,
        "chunking_strategy": {"type": "static", "static": sizes}, "attributes": object(&file.attributes),
    })
}

pub(super) fn hit(it: &FoundPassage) -> Value {
    json!({
        "file_id": it.file, "filename": it.name, "score": it.score, "attributes": object(&it.attributes),
        "content": [{"type": "text", "text": it.text}],
    })
}

/// What was kept as a JSON object.
fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({}))
}
