//! A document as YAML text: block style, two spaces, one way to write each value.

use super::super::yaml::{Entry, Kind, Node};
use std::fmt::Write as _;

/// Words that mean something else than themselves to one YAML reader or another.
const RESERVED: [&str; 11] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

/// The whole document.
pub(super) fn yaml(root: &Node) -> String {
    let mut out = String::new();
    match &root.kind {
        Kind::Map(entries) if !entries.is_empty() => map(entries, 0, &mut out),
        Kind::Seq(items) if !items.is_empty() => seq(items, 0, &mut out),
        _ => {
            inline(root, 0, &mut out);
        }
    }
    out
}

/// A value in block style, without the end of its last line: to stand behind a dash, or below a key.
pub(super) fn block(node: &Node) -> String {
    let mut out = yaml(node);
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// A key with its value in block style, without the end of its last line.
pub(super) fn entry(key: &str, value: &Node) -> String {
    let mut out = String::new();
    one(key, value, 0, &mut out);
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// Whether a value takes lines of its own below its key.
pub(super) fn is_deep(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(entries) => !entries.is_empty(),
        Kind::Seq(items) => !items.is_empty(),
        Kind::Scalar { .. } => false,
    }
}

/// A value on one line, in braces and brackets.
pub(super) fn flow(node: &Node) -> String {
    let mut out = String::new();
    match &node.kind {
        Kind::Map(entries) => {
            let pair = |it: &Entry| {
                let mut pair = String::new();
                quoted(&it.key, &mut pair);
                format!("{pair}: {}", flow(&it.value))
            };
            out = format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "));
        }
        Kind::Seq(items) => out = format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Scalar { .. } if node.is_null() => out.push_str("null"),
        Kind::Scalar { text, plain: true } if !text.contains(['\n', ',', '[', ']', '{', '}', ':', '#']) => {
            out.push_str(text);
        }
        Kind::Scalar { text, .. } => quoted(text, &mut out),
    }
    out
}

fn map(entries: &[Entry], depth: usize, out: &mut String) {
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            indent(depth, out);
        }
        one(&entry.key, &entry.value, depth, out);
    }
}

fn one(key: &str, value: &Node, depth: usize, out: &mut String) {
    quoted(key, out);
    out.push(':');
    match &value.kind {
        Kind::Map(inner) if !inner.is_empty() => {
            out.push('\n');
            indent(depth + 1, out);
            map(inner, depth + 1, out);
        }
        Kind::Seq(inner) if !inner.is_empty() => {
            out.push('\n');
            indent(depth + 1, out);
            seq(inner, depth + 1, out);
        }
        _ => {
            out.push(' ');
            inline(value, depth + 1, out);
        }
    }
}

/// Items whose first line continues the one of their dash.
fn seq(items: &[Node], depth: usize, out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            indent(depth, out);
        }
        out.push_str("- ");
        match &item.kind {
            Kind::Map(inner) if !inner.is_empty() => map(inner, depth + 1, out),
            Kind::Seq(inner) if !inner.is_empty() => seq(inner, depth + 1, out),
            _ => inline(item, depth + 1, out),
        }
    }
}

/// What fits behind a key or a dash, and the end of the line.
fn inline(node: &Node, depth: usize, out: &mut String) {
    match &node.kind {
        Kind::Map(_) => out.push_str("{}"),
        Kind::Seq(_) => out.push_str("[]"),
        Kind::Scalar { .. } if node.is_null() => out.push_str("null"),
        Kind::Scalar { text, plain: true } if !text.contains('\n') => out.push_str(text),
        Kind::Scalar { text, .. } if is_block(text) => return literal(text, depth, out),
        Kind::Scalar { text, .. } => quoted(text, out),
    }
    out.push('\n');
}

/// Several lines that a literal block holds as they are.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && body.lines().next().is_some_and(|first| !first.starts_with([' ', '\t']) && !first.is_empty())
        && text.chars().all(|c| {
            c == '\n' || (!c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}'))
        })
}

fn literal(text: &str, depth: usize, out: &mut String) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    out.push_str(if body.len() == text.len() { "|-\n" } else { "|\n" });
    for line in body.split('\n') {
        if !line.is_empty() {
            indent(depth, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Whether text can be nothing but text, also where it stands bare.
pub(super) fn is_word(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(word)
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

/// Text that can be nothing but text stands bare; all other text in double quotes.
fn quoted(text: &str, out: &mut String) {
    if is_word(text) {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn it_looks_as_a_person_would_write_it() {
        let value = json!({
            "version": "v0.3", "empty": {}, "none": [], "port": 8080,
            "models": [{"name": "a", "refs": [{"url": "http://h:1/v1"}, []]}, "b c"],
            "prompt": "One.\n\n  Two: three\n", "tail": "x\ny", "odd key": null,
        });
        let want = "version: v0.3\nempty: {}\nnone: []\nport: 8080\nmodels:\n  - name: a\n    refs:\n      - url: \
                    \"http://h:1/v1\"\n      - []\n  - \"b c\"\nprompt: |\n  One.\n\n    Two: three\ntail: |-\n  x\n  \
                    y\n\"odd key\": null\n";
        assert_eq!(Document::of_json(&value).to_yaml(), want);
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[a-z]{0,4}",
            any::<String>(),
            "[ \\n\\t:#|>\"'&*!%@`{}\\[\\],?-]{0,8}",
            "[a-z \\n]{0,12}",
            Just("no".to_owned()),
            Just("1e3".to_owned()),
            Just("~".to_owned()),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in values()) {
            let written = Document::of_json(&value).to_yaml();
            let read = Document::parse(&written);
            prop_assert!(read.is_ok(), "{:?} in {written:?}", read.unwrap_err());
            prop_assert_eq!(read.unwrap().to_json(), value, "{}", written);
        }
    }
}
