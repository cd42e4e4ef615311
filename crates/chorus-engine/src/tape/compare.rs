//! What differs between two run records, but for their names and for how long things took.
//!
//! It knows the form of a record as JSON and nothing of what a field means. **Invariant:** two records without a
//! difference say the same of everything that was asked, found, decided, called, spent and answered.

use chorus_store::RunRecord;
use serde::Serialize;
use serde_json::Value;

/// Fields that name a run or say when it was.
const NAMES: [&str; 3] = ["id", "started_at_ms", "content"];

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Where, such as `calls[1].usage.total_tokens`.
    pub path: String,
    /// What it was; `null` where there was nothing.
    pub was: Value,
    /// What it is.
    pub is: Value,
}

/// Every field that differs, in order of path.
#[must_use]
pub fn differences(was: &RunRecord, is: &RunRecord) -> Vec<Difference> {
    let plain = |record: &RunRecord| {
        let mut value = serde_json::to_value(record).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|key, _| !NAMES.contains(&key.as_str()));
        }
        // Who was asked to run it is no part of what was done.
        if let Some(traces) = value.get_mut("traces").and_then(Value::as_object_mut) {
            traces.remove("rollout");
        }
        // A map of nothing is left out where it is written.
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, value| value.as_object().is_none_or(|it| !it.is_empty()));
        }
        value
    };
    let mut found = Vec::new();
    compare("", &plain(was), &plain(is), &mut found);
    found
}

/// How long something took: a field of that kind says nothing of what was done.
fn is_time(key: &str) -> bool {
    key.ends_with("_ms") || key.ends_with("_us") || key == "millis"
}

fn compare(path: &str, was: &Value, is: &Value, found: &mut Vec<Difference>) {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys.into_iter().filter(|key| !is_time(key)) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                let item = |all: &[Value]| all.get(at).cloned().unwrap_or_default();
                compare(&format!("{path}[{at}]"), &item(a), &item(b), found);
            }
        }
        (was, is) if was != is => {
            found.push(Difference { path: path.to_owned(), was: was.clone(), is: is.clone() });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_store::CallRecord;
    use serde_json::json;

    #[test]
    fn names_and_times_are_no_difference_and_anything_else_is() {
        let call = |tokens, latency_ms| {
            let mut call = CallRecord { latency_ms, ..CallRecord::default() };
            call.usage.total_tokens = tokens;
            call
        };
        let was = RunRecord { duration_ms: 5, calls: vec![call(7, 1)], ..RunRecord::default() };
        let same = RunRecord { duration_ms: 9, calls: vec![call(7, 2)], ..RunRecord::default() };
        assert_eq!(differences(&was, &same), []);
        let other = RunRecord { decision: Some("d".into()), calls: vec![call(8, 1)], ..RunRecord::default() };
        let found: Vec<(String, Value)> =
            differences(&was, &other).into_iter().map(|it| (it.path, it.is)).collect();
        assert_eq!(
            found,
            [("calls[0].usage.total_tokens".to_owned(), json!(8)), ("decision".to_owned(), json!("d")),]
        );
    }
}
