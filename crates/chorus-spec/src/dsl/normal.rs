//! The normal form of a document's routing part, in which two files that say the same are equal.
//!
//! What the form forgets, and nothing else: the order of keys and of things that are found by name; an `AND` or `OR`
//! around one condition; keys without a value, and switches that are written out in their default position; how a
//! number was written. **Invariant:** the form of a form is itself.

use super::node::is_literal;
use crate::read::yaml::{Entry, Kind, Node};

/// Lists whose items are found by name, so that their order says nothing.
const BY_NAME: [&str; 8] =
    ["modelCards", "decisions", "recipes", "partitions", "scores", "mappings", "signals", "entrypoints"];

/// Keys of signals whose default an author may write out. Source: contract §1.4.
const DEFAULTS: [(&str, &str); 1] = [("case_sensitive", "false")];

/// The parts of a document that a policy compiles to.
const PARTS: [&str; 3] = ["routing", "entrypoints", "recipes"];

/// One place where two documents differ.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Dotted path, with names in place of numbers.
    pub path: String,
    /// What the first has there; `None` when it has nothing.
    pub left: Option<String>,
    /// What the second has there.
    pub right: Option<String>,
}

/// Where the routing parts of two documents differ in what they say; empty when they are equal.
pub(super) fn differences(left: &Node, right: &Node) -> Vec<Difference> {
    let mut found = Vec::new();
    for part in PARTS {
        let of = |root: &Node| root.entry(part).map(|it| normal(&it.value, part)).filter(|it| !is_empty(it));
        compare(of(left).as_ref(), of(right).as_ref(), part, &mut found);
    }
    found
}

fn compare(left: Option<&Form>, right: Option<&Form>, path: &str, found: &mut Vec<Difference>) {
    match (left, right) {
        (Some(Form::Map(left)), Some(Form::Map(right))) => {
            let mut keys: Vec<&String> = left.iter().chain(right).map(|(key, _)| key).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let of = |all: &'_ [(String, Form)]| all.iter().position(|(other, _)| other == key);
                let (at_left, at_right) = (of(left), of(right));
                let left = at_left.and_then(|at| left.get(at)).map(|(_, value)| value);
                let right = at_right.and_then(|at| right.get(at)).map(|(_, value)| value);
                compare(left, right, &format!("{path}.{key}"), found);
            }
        }
        (Some(Form::List(left)), Some(Form::List(right))) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                compare(Some(left), Some(right), &format!("{path}[{at}]"), found);
            }
        }
        _ if left == right => {}
        _ => {
            let shown = |it: Option<&Form>| it.map(Form::show);
            found.push(Difference { path: path.to_owned(), left: shown(left), right: shown(right) });
        }
    }
}

/// A value in normal form.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    Map(Vec<(String, Form)>),
    List(Vec<Form>),
    /// Text, and what is no number.
    Text(String),
    /// A number, in the one way in which Rust writes it.
    Number(String),
}

impl Form {
    fn show(&self) -> String {
        match self {
            Self::Map(entries) => {
                let all: Vec<String> =
                    entries.iter().map(|(key, it)| format!("{key}: {}", it.show())).collect();
                format!("{{{}}}", all.join(", "))
            }
            Self::List(items) => format!("[{}]", items.iter().map(Self::show).collect::<Vec<_>>().join(", ")),
            Self::Text(text) => format!("\"{text}\""),
            Self::Number(text) => text.clone(),
        }
    }
}

fn is_empty(form: &Form) -> bool {
    match form {
        Form::Map(entries) => entries.is_empty(),
        Form::List(items) => items.is_empty(),
        Form::Text(_) | Form::Number(_) => false,
    }
}

fn normal(node: &Node, key: &str) -> Form {
    match &node.kind {
        Kind::Map(entries) if key == "rules" || key == "composer" => {
            rule(node).unwrap_or(Form::Map(map(entries)))
        }
        Kind::Map(entries) if key == "signals" => {
            let lists = entries.iter().map(|it| (it.key.clone(), list(&it.value, "signals")));
            Form::Map(sorted(lists.filter(|(_, it)| !is_empty(it)).collect()))
        }
        Kind::Map(entries) => Form::Map(map(entries)),
        Kind::Seq(_) => list(node, key),
        Kind::Scalar { text, plain: true } if is_literal(text) => match text.parse::<f64>() {
            Ok(number) => Form::Number(number.to_string()),
            Err(_) => Form::Text(text.to_ascii_lowercase()),
        },
        Kind::Scalar { text, .. } => Form::Text(text.clone()),
    }
}

fn map(entries: &[Entry]) -> Vec<(String, Form)> {
    let kept = entries.iter().filter(|it| !it.value.is_null() && !is_default(it));
    sorted(
        kept.map(|it| (it.key.clone(), normal(&it.value, &it.key))).filter(|(_, it)| !is_empty(it)).collect(),
    )
}

fn is_default(it: &Entry) -> bool {
    DEFAULTS.iter().any(|(key, value)| it.key == *key && it.value.text() == Some(*value))
}

fn sorted(mut entries: Vec<(String, Form)>) -> Vec<(String, Form)> {
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// A list; one that is looked up by name becomes a mapping from names.
fn list(node: &Node, key: &str) -> Form {
    let Kind::Seq(items) = &node.kind else {
        return normal(node, "");
    };
    let names: Option<Vec<String>> =
        items.iter().map(|it| it.entry("name").and_then(|e| e.value.text()).map(str::to_owned)).collect();
    match names.filter(|_| BY_NAME.contains(&key)) {
        Some(names) if has_no_twins(&names) => {
            Form::Map(sorted(names.into_iter().zip(items.iter().map(|it| normal(it, ""))).collect()))
        }
        _ => Form::List(items.iter().map(|it| normal(it, "")).collect()),
    }
}

fn has_no_twins(names: &[String]) -> bool {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair.first() != pair.last())
}

/// A rule without the groups of one; `None` for the root over nothing, which is no rule.
fn rule(node: &Node) -> Option<Form> {
    let word = node.entry("operator").and_then(|it| it.value.text()).map(str::to_ascii_uppercase);
    let Some(word) = word else {
        let Kind::Map(entries) = &node.kind else { return None };
        return Some(Form::Map(map(entries)));
    };
    let parts: Vec<Form> = match node.entry("conditions").map(|it| &it.value.kind) {
        Some(Kind::Seq(items)) => items.iter().filter_map(rule).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() && word == "AND" {
        return Some(Form::Map(Vec::new()));
    }
    if parts.len() == 1 && word != "NOT" {
        return parts.into_iter().next();
    }
    let parts = ("conditions".to_owned(), Form::List(parts));
    Some(Form::Map(vec![parts, ("operator".to_owned(), Form::Text(word))]))
}
