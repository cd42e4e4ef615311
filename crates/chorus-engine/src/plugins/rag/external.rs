//! A search over HTTP, in the words of Pinecone, Weaviate, Elasticsearch, or a template.
//!
//! Source: Pinecone API `POST /query`, Weaviate GraphQL `Get … nearVector`, Elasticsearch `POST /{index}/_search` with a
//! `match` query; the template's slots are those of the contract's engine.

use super::super::at_work::Scene;
use super::super::vector;
use super::Passage;
use super::fault::RagFault;
use chorus_spec::{ExternalSearch, RagSettings, SearchFormat};
use chorus_upstream::{Secret, Target};
use serde_json::{Value, json};

pub(super) async fn search(
    settings: &RagSettings,
    it: &ExternalSearch,
    scene: &Scene,
    question: &str,
) -> Result<Vec<Passage>, RagFault> {
    let mom = &scene.mom;
    let misconfigured = |why: &dyn std::fmt::Display| RagFault::Misconfigured(why.to_string());
    let endpoint = mom.env.resolve(&it.endpoint).map_err(|why| misconfigured(&why))?;
    let (base, path) = split(&endpoint);
    let mut target = Target::builder(base).chat_path(path);
    if let Some(key) = &it.api_key {
        let key = mom.env.reveal(key).map_err(|why| misconfigured(&why))?;
        target = target.auth(&it.auth_header, "Bearer", Secret::new(&key));
    }
    for (name, value) in &it.headers {
        target = target.header(name, &mom.env.reveal(value).map_err(|why| misconfigured(&why))?);
    }
    let body = body(settings, &it.format, scene, question).await?;
    let answer = mom.backends.site(target)?.ask(&body, it.timeout).await?;
    read(&it.format, &answer)
}

/// An address as scheme and host, and the path.
pub(super) fn split(endpoint: &str) -> (&str, &str) {
    let host = endpoint.find("://").map_or(0, |at| at + 3);
    let path = endpoint.get(host..).and_then(|rest| rest.find('/')).map(|at| host + at);
    path.map_or((endpoint, "/"), |at| endpoint.split_at(at))
}

async fn body(
    settings: &RagSettings,
    format: &SearchFormat,
    scene: &Scene,
    question: &str,
) -> Result<Value, RagFault> {
    let top_k = settings.top_k;
    Ok(match format {
        SearchFormat::Pinecone => {
            json!({"vector": vector(scene, question).await?, "topK": top_k, "includeMetadata": true})
        }
        SearchFormat::Weaviate => {
            let vector = json!(vector(scene, question).await?);
            json!({"query": format!(
                "{{ Get {{ Document(nearVector: {{ vector: {vector} }}, limit: {top_k}) \
                 {{ content _additional {{ distance }} }} }} }}"
            )})
        }
        SearchFormat::Elasticsearch => json!({"query": {"match": {"content": question}}, "size": top_k}),
        SearchFormat::Custom { template } => {
            let filled = template
                .replace("${top_k}", &top_k.to_string())
                .replace("${threshold}", &settings.similarity_threshold.to_string());
            let mut value: Value = serde_json::from_str(&filled)
                .map_err(|why| RagFault::Misconfigured(format!("the template is not JSON: {why}")))?;
            fill(&mut value, question);
            value
        }
    })
}

/// Puts the question where its slot stands, after the template was read: no question can change the template.
pub(super) fn fill(value: &mut Value, question: &str) {
    match value {
        Value::String(text) if text.contains("${user_content}") => {
            *text = text.replace("${user_content}", question);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, question)),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| fill(value, question)),
        _ => {}
    }
}

async fn vector(scene: &Scene, question: &str) -> Result<Vec<f32>, RagFault> {
    vector::of(scene, question).await.ok_or(RagFault::NoVector)
}

fn read(format: &SearchFormat, answer: &Value) -> Result<Vec<Passage>, RagFault> {
    let list = |pointer: &str| answer.pointer(pointer).and_then(Value::as_array);
    match format {
        SearchFormat::Pinecone => {
            let rows = list("/matches").ok_or(RagFault::Malformed("`matches` is no list"))?;
            let score = |row: &Value| row.get("score").and_then(Value::as_f64);
            Ok(rows.iter().filter_map(|row| passage(row.get("metadata")?, score(row))).collect())
        }
        SearchFormat::Weaviate => {
            let rows = list("/data/Get/Document").ok_or(RagFault::Malformed("there is no `Document`"))?;
            let score = |row: &Value| row.pointer("/_additional/distance")?.as_f64().map(|it| 1.0 - it);
            Ok(rows.iter().filter_map(|row| passage(row, score(row))).collect())
        }
        SearchFormat::Elasticsearch => {
            let rows = list("/hits/hits").ok_or(RagFault::Malformed("`hits` is no list"))?;
            // Its scores have no upper bound: they order passages and pass no threshold.
            Ok(rows.iter().filter_map(|row| passage(row.get("_source")?, None)).collect())
        }
        SearchFormat::Custom { .. } => custom(answer),
    }
}

fn custom(answer: &Value) -> Result<Vec<Passage>, RagFault> {
    let found = ["results", "documents", "data"].iter().find_map(|key| answer.get(key)?.as_array());
    if let Some(rows) = found {
        let score = |row: &Value| row.get("score").and_then(Value::as_f64);
        return Ok(rows.iter().filter_map(|row| passage(row, score(row))).collect());
    }
    let whole = passage(answer, None).ok_or(RagFault::Malformed("it has neither results nor a text"))?;
    Ok(vec![whole])
}

/// A passage from an object, or from a bare text.
fn passage(row: &Value, score: Option<f64>) -> Option<Passage> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| row.get(key)?.as_str()).map(str::to_owned);
    let body = text(&["content", "text"]).or_else(|| row.as_str().map(str::to_owned))?;
    let source = text(&["source", "filename", "title", "url"]).unwrap_or_default();
    Some(Passage { text: body, source, score })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_apart() {
        assert_eq!(split("http://h:1/a/b?c=d"), ("http://h:1", "/a/b?c=d"));
        assert_eq!(split("https://h"), ("https://h", "/"));
    }

    #[test]
    fn a_question_stays_inside_its_slot() {
        let mut value = json!({"q": "find: ${user_content}", "k": [1, "${user_content}"]});
        fill(&mut value, "x\", \"admin\": \"${top_k}");
        assert_eq!(value["q"], "find: x\", \"admin\": \"${top_k}");
        assert_eq!(value.as_object().map(serde_json::Map::len), Some(2));
    }

    #[test]
    fn every_format_is_read() {
        let rows = [
            (
                SearchFormat::Pinecone,
                json!({"matches": [{"id": "1", "score": 0.8, "metadata": {"text": "a", "source": "s"}}]}),
                Some(0.8),
            ),
            (
                SearchFormat::Weaviate,
                json!({"data": {"Get": {"Document": [{"content": "a", "_additional": {"distance": 0.25}}]}}}),
                Some(0.75),
            ),
            (
                SearchFormat::Elasticsearch,
                json!({"hits": {"hits": [{"_score": 17.2, "_source": {"content": "a"}}]}}),
                None,
            ),
            (
                SearchFormat::Custom { template: String::new() },
                json!({"results": [{"content": "a", "score": 0.5}]}),
                Some(0.5),
            ),
            (SearchFormat::Custom { template: String::new() }, json!({"text": "a"}), None),
        ];
        for (format, answer, score) in rows {
            let found = read(&format, &answer).unwrap();
            assert_eq!((found[0].text.as_str(), found[0].score), ("a", score), "{format:?}");
            assert!(read(&format, &json!({"oops": 1})).is_err());
        }
    }
}
