//! Which keys the contract has, and which of them this version runs: a walk over the whole tree, before any reader.
//!
//! The table is data (`contract.txt`); this module knows no single key. **Invariant:** every key of a file is looked
//! at exactly once here, so an unknown key is reported wherever it stands, also below what is not supported yet.

use super::cursor::Cursor;
use super::nearest::suggest;
use super::yaml::{Kind, Node};
use crate::diagnostic::code;
use crate::{Place, Severity};
use std::collections::BTreeMap;
use std::sync::LazyLock;

static CONTRACT: LazyLock<BTreeMap<&'static str, Shape>> =
    LazyLock::new(|| table(include_str!("contract.txt")));

/// One mapping of the contract.
struct Shape {
    /// Keys are only checked for being known.
    quiet: bool,
    keys: Vec<Key>,
}

struct Key {
    name: &'static str,
    mark: Mark,
    value: Value,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Read,
    Unsupported,
    NotNeeded,
    Accepted,
}

/// What stands under a key; the text is a shape's name.
enum Value {
    Plain,
    Anything,
    One(&'static str),
    List(&'static str),
    Named(&'static str),
}

fn table(text: &'static str) -> BTreeMap<&'static str, Shape> {
    text.lines()
        .filter_map(|line| line.split_once(": ").filter(|_| !line.starts_with('#')))
        .map(shape)
        .collect()
}

fn shape((name, keys): (&'static str, &'static str)) -> (&'static str, Shape) {
    let shape = Shape { quiet: name.starts_with('~'), keys: keys.split_whitespace().map(key).collect() };
    (name.trim_start_matches('~'), shape)
}

fn key(text: &'static str) -> Key {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let mark = match name.chars().next() {
        Some('~') => Mark::Unsupported,
        Some('-') => Mark::NotNeeded,
        Some('.') => Mark::Accepted,
        _ => Mark::Read,
    };
    let value = match (value, value.strip_suffix("[]"), value.strip_suffix("{}")) {
        ("", ..) => Value::Plain,
        ("*", ..) => Value::Anything,
        (_, Some(of), _) => Value::List(of),
        (_, _, Some(of)) => Value::Named(of),
        (of, ..) => Value::One(of),
    };
    Key { name: name.trim_start_matches(['~', '-', '.']), mark, value }
}

/// The keys of a mapping that this version reads, in the table's order.
pub(super) fn read_keys(shape: &str) -> Vec<&'static str> {
    let keys = CONTRACT.get(shape).into_iter().flat_map(|shape| &shape.keys);
    keys.filter(|key| key.mark == Mark::Read).map(|key| key.name).collect()
}

/// Reports every key that the contract does not have, or that this version does not run.
pub(super) fn check(root: &Cursor<'_>) {
    walk(root, "Config", false);
}

fn walk(at: &Cursor<'_>, name: &str, quiet: bool) {
    let Some(shape) = CONTRACT.get(name) else { return };
    if at.node().is_null() {
        return;
    }
    if !matches!(at.node().kind, Kind::Map(_)) {
        at.error(code::WRONG_TYPE, format!("expected a mapping, found {}", at.node().shape()));
        return;
    }
    let quiet = quiet || shape.quiet;
    for (written, place, value) in at.entries() {
        let Some(key) = shape.keys.iter().find(|k| k.name == written) else {
            unknown(&value, place, written, shape);
            continue;
        };
        if !quiet {
            remark(&value, place, key);
        }
        descend(at, &value, key, quiet || key.mark != Mark::Read);
    }
}

fn unknown(value: &Cursor<'_>, place: Place, written: &str, shape: &Shape) {
    let known: Vec<&str> = shape.keys.iter().map(|k| k.name).collect();
    let message = format!("the contract has no key `{written}` here");
    value.say(Severity::Error, code::UNKNOWN_KEY, place, message, suggest(written, &known, ""));
}

fn remark(value: &Cursor<'_>, place: Place, key: &Key) {
    match key.mark {
        Mark::Unsupported if !is_idle(value.node()) => {
            let message = format!("`{}` is known, not supported yet", key.name);
            value.say(Severity::Warning, code::NOT_SUPPORTED_YET, place, message, None);
        }
        Mark::NotNeeded if !is_idle(value.node()) => {
            let message = format!(
                "`{}` is not needed here: this engine runs in one process with its own models",
                key.name
            );
            value.say(Severity::Warning, code::NOT_NEEDED, place, message, None);
        }
        _ => {}
    }
}

fn descend(at: &Cursor<'_>, value: &Cursor<'_>, key: &Key, quiet: bool) {
    if value.node().is_null() {
        return;
    }
    match key.value {
        Value::Plain | Value::Anything => {}
        Value::One(of) => match of.split_once("{type}") {
            Some((prefix, _)) => {
                let kind = at.node().entry("type").and_then(|e| e.value.text()).unwrap_or_default();
                walk(value, &format!("{prefix}{}", plugin_kind(kind)), quiet);
            }
            None => walk(value, of, quiet),
        },
        Value::List(of) => {
            if !matches!(value.node().kind, Kind::Seq(_)) {
                value.error(code::WRONG_TYPE, format!("expected a list, found {}", value.node().shape()));
            }
            value.elements().iter().for_each(|item| walk(item, of, quiet));
        }
        Value::Named(of) => {
            if !matches!(value.node().kind, Kind::Map(_)) {
                value.error(code::WRONG_TYPE, format!("expected a mapping, found {}", value.node().shape()));
            }
            value.entries().iter().for_each(|(_, _, item)| walk(item, of, quiet));
        }
    }
}

/// The one spelling of a plugin's type; the cache has four.
pub(super) fn plugin_kind(written: &str) -> &str {
    match written {
        "semantic-cache" | "semantic_cache" | "response-cache" => "response_cache",
        other => other,
    }
}

/// Whether a plugin of that type is in the contract.
pub(super) fn knows_plugin(kind: &str) -> bool {
    CONTRACT.contains_key(format!("plugin_{kind}").as_str())
}

/// Every plugin type of the contract.
pub(super) fn plugin_kinds() -> Vec<&'static str> {
    CONTRACT.keys().filter_map(|name| name.strip_prefix("plugin_")).collect()
}

/// Whether a value asks for nothing: null, `false`, zero, empty, switched off.
fn is_idle(node: &Node) -> bool {
    let says = |key: &str, words: &[&str]| {
        node.entry(key)
            .and_then(|e| e.value.text())
            .is_some_and(|text| words.contains(&text.to_lowercase().as_str()))
    };
    match &node.kind {
        Kind::Map(entries) => {
            entries.is_empty()
                || says("enabled", &["false", "no", "off"])
                || says("mode", &["bypass", "disabled"])
        }
        Kind::Seq(items) => items.is_empty(),
        Kind::Scalar { text, .. } => {
            node.is_null() || text == "false" || text.parse::<f64>().is_ok_and(|number| number == 0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_that_the_table_names_is_in_the_table() {
        assert!(CONTRACT.len() > 150, "{}", CONTRACT.len());
        for (name, shape) in CONTRACT.iter() {
            for key in &shape.keys {
                if let Value::One(of) | Value::List(of) | Value::Named(of) = key.value {
                    assert!(
                        of.contains("{type}") || CONTRACT.contains_key(of),
                        "{name}.{} names {of}",
                        key.name
                    );
                }
                let twins = shape.keys.iter().filter(|other| other.name == key.name).count();
                assert_eq!(twins, 1, "{name}.{} stands twice", key.name);
            }
        }
    }

    #[test]
    fn all_fourteen_plugins_are_known() {
        assert_eq!(plugin_kinds().len(), 14, "{:?}", plugin_kinds());
    }

    #[test]
    fn every_plugin_has_a_page_that_names_each_of_its_keys() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugins");
        for kind in plugin_kinds() {
            let page = std::fs::read_to_string(docs.join(format!("{kind}.md"))).unwrap_or_default();
            for heading in ["## When\n", "## Parameters\n", "## Cost\n", "## When it fails\n", "## Source\n"]
            {
                assert!(page.contains(heading), "docs/plugins/{kind}.md lacks {heading}");
            }
            for key in read_keys(&format!("plugin_{kind}")).into_iter().filter(|key| *key != "enabled") {
                assert!(page.contains(key), "docs/plugins/{kind}.md does not name `{key}`");
            }
        }
    }
}
