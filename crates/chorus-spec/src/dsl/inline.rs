//! What stands on one line: names, texts, values, options, conditions.
//!
//! It knows no block and no line break. **Invariant:** what is written parses to what was written from.

use super::ast::*;
use super::token::is_word;

/// ` (key = value, …)`, or nothing.
pub(super) fn options(all: &[Field]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let all: Vec<String> = all.iter().map(|it| format!("{} = {}", name(&it.key), flat(&it.value))).collect();
    format!(" ({})", all.join(", "))
}

/// A value on one line, without its comments.
pub(super) fn flat(it: &Value) -> String {
    match it {
        Value::One(word) => scalar(word),
        Value::List(_, items) => flat_list(items),
        Value::Map(_, body) => flat_fields(body),
    }
}

/// `family("name", key: value)`.
fn leaf(it: &Leaf) -> String {
    let options = it.options.iter().map(|it| format!(", {}: {}", name(&it.key), flat(&it.value)));
    format!("{}({}{})", name(&it.family), quote(&it.name.text), options.collect::<String>())
}

/// A value's word as written: bare or in quotes.
pub(super) fn scalar(word: &Word) -> String {
    if word.quoted || !is_bare(&word.text) { quote(&word.text) } else { word.text.clone() }
}

/// A name: bare where the characters allow it.
pub(super) fn name(word: &Word) -> String {
    if is_bare(&word.text) { word.text.clone() } else { quote(&word.text) }
}

fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word)
}

/// Text in quotes.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A model with its options.
pub(super) fn candidate(it: &Candidate) -> String {
    format!("{}{}", quote(&it.model.text), options(&it.options))
}

/// `[a, b]`.
fn flat_list(items: &Body<Value>) -> String {
    let items: Vec<String> = items.iter().map(flat).collect();
    format!("[{}]", items.join(", "))
}

/// `{ key: value, … }`.
fn flat_fields(body: &Fields) -> String {
    let fields: Vec<String> =
        body.iter().map(|it| format!("{}: {}", name(&it.key), flat(&it.value))).collect();
    if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
}

/// A rule on one line.
pub(super) fn flat_expression(it: &Expression) -> String {
    let join = |parts: &[Expression], word: &str| parts.iter().map(grouped).collect::<Vec<_>>().join(word);
    match it {
        Expression::Leaf(it) => leaf(it),
        Expression::Not(_, inner) => format!("NOT {}", grouped(inner)),
        Expression::And(_, parts) => join(parts, " AND "),
        Expression::Or(_, parts) => join(parts, " OR "),
    }
}

/// An operand on one line. An `AND` inside an `OR` binds tighter already; parentheses say so all the same.
pub(super) fn grouped(it: &Expression) -> String {
    match it {
        Expression::And(..) | Expression::Or(..) => format!("({})", flat_expression(it)),
        _ => flat_expression(it),
    }
}
