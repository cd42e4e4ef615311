//! Which files a search may look at, by their attributes.
//!
//! It knows attributes as a JSON object, and no file. Source: OpenAI API description, `ComparisonFilter` and
//! `CompoundFilter`.

use serde_json::Value;
use std::cmp::Ordering;

/// Filters inside filters (`max_filter_depth`).
const DEPTH_MOST: usize = 8;

/// A filter over attributes.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of them hold.
    And(Vec<Self>),
    /// One of them holds.
    Or(Vec<Self>),
    /// One attribute compares so with a value.
    Compare {
        /// The attribute.
        key: String,
        /// How.
        by: Comparison,
        /// With what.
        value: Value,
    },
}

/// How an attribute is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal, or not there.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// One of a list.
    In,
    /// None of a list, or not there.
    Nin,
}

const WORDS: [(&str, Comparison); 8] = [
    ("eq", Comparison::Eq),
    ("ne", Comparison::Ne),
    ("gt", Comparison::Gt),
    ("gte", Comparison::Gte),
    ("lt", Comparison::Lt),
    ("lte", Comparison::Lte),
    ("in", Comparison::In),
    ("nin", Comparison::Nin),
];

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn read(value: &Value) -> Result<Self, String> {
        Self::read_at(value, 0)
    }

    fn read_at(value: &Value, depth: usize) -> Result<Self, String> {
        if depth >= DEPTH_MOST {
            return Err(format!(
                "filters stand inside each other at most {DEPTH_MOST} times (max_filter_depth)"
            ));
        }
        let word = value.get("type").and_then(Value::as_str).ok_or("a filter has no `type`")?;
        if word == "and" || word == "or" {
            let all = value.get("filters").and_then(Value::as_array).ok_or("`filters` is no list")?;
            let all = all.iter().map(|it| Self::read_at(it, depth + 1)).collect::<Result<_, _>>()?;
            return Ok(if word == "and" { Self::And(all) } else { Self::Or(all) });
        }
        let by = WORDS.iter().find(|(name, _)| *name == word).map(|(_, by)| *by);
        let by = by.ok_or_else(|| format!("there is no filter of the type `{word}`"))?;
        let key = value.get("key").and_then(Value::as_str).ok_or("a filter has no `key`")?.to_owned();
        let value = value.get("value").ok_or("a filter has no `value`")?.clone();
        Ok(Self::Compare { key, by, value })
    }

    /// Whether these attributes pass.
    #[must_use]
    pub fn admits(&self, attributes: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|it| it.admits(attributes)),
            Self::Or(all) => all.iter().any(|it| it.admits(attributes)),
            Self::Compare { key, by, value } => compares(attributes.get(key), *by, value),
        }
    }
}

fn compares(have: Option<&Value>, by: Comparison, value: &Value) -> bool {
    let is = |value: &Value| have.is_some_and(|have| order(have, value) == Some(Ordering::Equal));
    let is_among = || value.as_array().is_some_and(|all| all.iter().any(is));
    let order = have.and_then(|have| order(have, value));
    match by {
        Comparison::Eq => is(value),
        Comparison::Ne => !is(value),
        Comparison::In => is_among(),
        Comparison::Nin => !is_among(),
        Comparison::Gt => order == Some(Ordering::Greater),
        Comparison::Gte => order.is_some_and(Ordering::is_ge),
        Comparison::Lt => order == Some(Ordering::Less),
        Comparison::Lte => order.is_some_and(Ordering::is_le),
    }
}

/// The order of two values of one kind; `None` for values of two kinds.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_comparison() {
        let attributes = json!({"year": 2024, "author": "ada", "public": true});
        for (filter, want) in [
            (json!({"type": "eq", "key": "author", "value": "ada"}), true),
            (json!({"type": "eq", "key": "year", "value": 2024.0}), true),
            (json!({"type": "ne", "key": "none", "value": 1}), true),
            (json!({"type": "gt", "key": "year", "value": 2024}), false),
            (json!({"type": "gte", "key": "year", "value": 2024}), true),
            (json!({"type": "lt", "key": "author", "value": 3}), false),
            (json!({"type": "lte", "key": "author", "value": "bob"}), true),
            (json!({"type": "in", "key": "author", "value": ["bob", "ada"]}), true),
            (json!({"type": "nin", "key": "author", "value": ["bob"]}), true),
            (
                json!({"type": "and", "filters": [
                {"type": "eq", "key": "public", "value": true}, {"type": "eq", "key": "author", "value": "bob"}]}),
                false,
            ),
            (
                json!({"type": "or", "filters": [
                {"type": "eq", "key": "public", "value": true}, {"type": "eq", "key": "author", "value": "bob"}]}),
                true,
            ),
        ] {
            assert_eq!(Filter::read(&filter).unwrap().admits(&attributes), want, "{filter}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let deep = (0..20).fold(
            json!({"type": "eq", "key": "a", "value": 1}),
            |it, _| json!({"type": "and", "filters": [it]}),
        );
        for wrong in
            [json!({}), json!({"type": "like", "key": "a", "value": 1}), json!({"type": "and"}), deep]
        {
            assert!(Filter::read(&wrong).is_err());
        }
    }
}
