//! Another server's vector store, by OpenAI's `POST /vector_stores/{id}/search`.
//!
//! Source: OpenAI API description, `VectorStoreSearchRequest` and `VectorStoreSearchResultsPage`.

use super::Passage;
use super::fault::RagFault;
use crate::mom::Mom;
use chorus_spec::{OpenAiSearch, RagSettings};
use chorus_upstream::{Secret, Target};
use serde_json::{Value, json};

pub(super) async fn search(
    settings: &RagSettings,
    it: &OpenAiSearch,
    mom: &Mom,
    question: &str,
) -> Result<Vec<Passage>, RagFault> {
    let misconfigured = |why: &dyn std::fmt::Display| RagFault::Misconfigured(why.to_string());
    let base = mom.env.resolve(&it.base_url).map_err(|why| misconfigured(&why))?;
    let mut target = Target::builder(&base).chat_path(&format!("/vector_stores/{}/search", it.store));
    if let Some(key) = &it.api_key {
        let key = mom.env.reveal(key).map_err(|why| misconfigured(&why))?;
        target = target.bearer(Secret::new(&key));
    }
    let mut body = json!({
        "query": question,
        "max_num_results": it.max_results.unwrap_or(settings.top_k),
        "ranking_options": {"score_threshold": settings.similarity_threshold},
    });
    if let (Some(filter), Some(fields)) = (&it.filter, body.as_object_mut()) {
        fields.insert("filters".to_owned(), filter.clone());
    }
    let answer = mom.backends.site(target)?.ask(&body, it.timeout).await?;
    read(&answer, &it.file_ids)
}

fn read(answer: &Value, file_ids: &[String]) -> Result<Vec<Passage>, RagFault> {
    let data =
        answer.get("data").and_then(Value::as_array).ok_or(RagFault::Malformed("`data` is no list"))?;
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mine = data.iter().filter(|row| file_ids.is_empty() || file_ids.contains(&text(row, "file_id")));
    let passage = |row: &Value| {
        let parts = row.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
        let parts: Vec<String> = parts.iter().map(|part| text(part, "text")).collect();
        Passage {
            text: parts.join("\n"),
            source: text(row, "filename"),
            score: row.get("score").and_then(Value::as_f64),
        }
    };
    Ok(mine.map(passage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_results_is_read() {
        let answer = json!({"object": "vector_store.search_results.page", "data": [
            {"file_id": "f1", "filename": "a.md", "score": 0.9, "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"file_id": "f2", "filename": "b.md", "score": 0.8, "content": [{"type": "text", "text": "three"}]},
        ]});
        let all = read(&answer, &[]).unwrap();
        let first = Passage { text: "one\ntwo".into(), source: "a.md".into(), score: Some(0.9) };
        assert_eq!((all.len(), &all[0]), (2, &first));
        assert_eq!(read(&answer, &["f2".to_owned()]).unwrap()[0].text, "three");
        assert!(read(&json!({"error": "x"}), &[]).is_err());
    }
}
