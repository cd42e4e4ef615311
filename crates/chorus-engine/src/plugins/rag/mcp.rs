//! A tool of an MCP server, over streamable HTTP.
//!
//! Source: Model Context Protocol 2025-06-18, lifecycle, transports and `tools/call`.

use super::Passage;
use super::external::{fill, split};
use super::fault::RagFault;
use crate::mom::Mom;
use chorus_spec::{McpSearch, RagSettings};
use chorus_upstream::Target;
use serde_json::{Map, Value, json};

/// The revision that is spoken.
const REVISION: &str = "2025-06-18";

pub(super) async fn search(
    settings: &RagSettings,
    it: &McpSearch,
    mom: &Mom,
    question: &str,
) -> Result<Vec<Passage>, RagFault> {
    let endpoint = mom.env.resolve(&it.endpoint).map_err(|why| RagFault::Misconfigured(why.to_string()))?;
    let (base, path) = split(&endpoint);
    let server = mom.backends.site(Target::builder(base).chat_path(path))?;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": REVISION, "capabilities": {},
        "clientInfo": {"name": "chorus", "version": env!("CARGO_PKG_VERSION")},
    }});
    let mut session = server.converse(REVISION, it.timeout);
    session.ask(&hello).await?;
    session.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    let params = json!({"name": it.tool, "arguments": arguments(settings, it, question)});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    read(&session.ask(&call).await?)
}

fn arguments(settings: &RagSettings, it: &McpSearch, question: &str) -> Value {
    if it.arguments.is_empty() {
        return json!({"query": question});
    }
    let filled: Map<String, Value> = it
        .arguments
        .iter()
        .map(|(key, value)| {
            let value = match value.as_str() {
                Some("${top_k}") => json!(settings.top_k),
                Some("${threshold}") => json!(settings.similarity_threshold),
                _ => value.clone(),
            };
            (key.clone(), value)
        })
        .collect();
    let mut value = Value::Object(filled);
    fill(&mut value, question);
    value
}

/// Each text of the result is a passage.
fn read(answer: &Value) -> Result<Vec<Passage>, RagFault> {
    let result = answer.get("result").ok_or(RagFault::Malformed("the server refused the call"))?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(RagFault::Malformed("the tool failed"));
    }
    let parts = result.get("content").and_then(Value::as_array);
    let parts = parts.ok_or(RagFault::Malformed("`content` is no list"))?;
    let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    let passage = |text: String| Passage { text, source: String::new(), score: None };
    Ok(parts.iter().filter_map(text).map(passage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_result_are_passages_and_an_error_is_none() {
        let content = json!([{"type": "text", "text": "one"}, {"type": "image", "data": ""}, {"type": "text", "text": "two"}]);
        let found = read(&json!({"jsonrpc": "2.0", "id": 2, "result": {"content": content}})).unwrap();
        assert_eq!(found.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        assert!(read(&json!({"result": {"content": content, "isError": true}})).is_err());
        assert!(read(&json!({"error": {"code": -32602, "message": "no"}})).is_err());
    }
}
