//! The input items of a response, page by page.

use crate::kept::Refused;
use chorus_store::KeptResponse;
use serde::Deserialize;
use serde_json::{Value, json};

/// Which page; the protocol's words and defaults.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    limit: Option<usize>,
    #[serde(default)]
    order: Order,
    after: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    #[default]
    Desc,
}

/// The page as JSON.
///
/// # Errors
/// A limit outside 1..=100, or an unknown `after`.
pub(super) fn page(kept: &KeptResponse, wanted: &Wanted) -> Result<Vec<u8>, Refused> {
    let limit = wanted.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(Refused::bad("limit", "`limit` must be a whole number from 1 to 100"));
    }
    let items: Vec<Value> = serde_json::from_str(&kept.input).unwrap_or_default();
    let digits = kept.id.trim_start_matches("resp_");
    let mut items: Vec<Value> =
        items.into_iter().enumerate().map(|(n, item)| told(item, digits, n)).collect();
    if wanted.order == Order::Desc {
        items.reverse();
    }
    if let Some(after) = &wanted.after {
        let at = items.iter().position(|item| item.get("id").and_then(Value::as_str) == Some(after));
        let at = at.ok_or_else(|| Refused::bad("after", "`after` names no item of this response"))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id = |item: Option<&Value>| item.and_then(|item| item.get("id").cloned());
    let page = json!({
        "object": "list", "data": items, "first_id": id(items.first()), "last_id": id(items.last()),
        "has_more": has_more,
    });
    Ok(page.to_string().into_bytes())
}

/// An item as the protocol lists it: with a name and a type, and a message's content in parts.
fn told(mut item: Value, digits: &str, at: usize) -> Value {
    let Some(fields) = item.as_object_mut() else { return item };
    fields.entry("type").or_insert_with(|| json!("message"));
    fields.entry("id").or_insert_with(|| json!(format!("item_{digits}{at:04x}")));
    if let Some(Value::String(text)) = fields.get("content") {
        let kind = if fields.get("role") == Some(&json!("assistant")) { "output_text" } else { "input_text" };
        let part = json!({"type": kind, "text": text});
        fields.insert("content".to_owned(), json!([part]));
    }
    item
}
