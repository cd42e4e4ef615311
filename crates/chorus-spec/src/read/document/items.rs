//! Single parts of a document: an item of a list by its `name`, a value by its key, with everything else as it was written.
//!
//! It knows no key but `name`. **Invariant:** afterwards a list has at most one item of that name where it had at most one
//! before.

use super::{Document, entry, scalar};
use crate::read::yaml::{Kind, Node};

impl Document {
    /// Puts an item into the list at these keys: in the place of the one of that name, or at the end. Mappings and the
    /// list are made where they are missing; `item` should hold the name.
    pub fn put_item(&mut self, keys: &[&str], name: &str, item: &Self) {
        within(&mut self.0, keys, |list| {
            if !matches!(list.kind, Kind::Seq(_)) {
                list.kind = Kind::Seq(Vec::new());
            }
            let Kind::Seq(items) = &mut list.kind else { return };
            match items.iter_mut().find(|it| is_named(it, name)) {
                Some(known) => *known = item.0.clone(),
                None => items.push(item.0.clone()),
            }
        });
    }

    /// Takes the item of that name out of the list at these keys; says whether there was one.
    pub fn remove_item(&mut self, keys: &[&str], name: &str) -> bool {
        let mut found = false;
        within(&mut self.0, keys, |list| {
            if let Kind::Seq(items) = &mut list.kind {
                let before = items.len();
                items.retain(|it| !is_named(it, name));
                found = items.len() < before;
            }
        });
        found
    }

    /// Puts a value in the place of what stands at these keys, whole.
    pub fn put(&mut self, keys: &[&str], value: &Self) {
        within(&mut self.0, keys, |at| *at = value.0.clone());
    }

    /// What stands at these keys.
    #[must_use]
    pub fn part(&self, keys: &[&str]) -> Option<Self> {
        let part = keys.iter().try_fold(&self.0, |at, key| at.entry(key).map(|it| &it.value));
        part.cloned().map(Self)
    }

    /// Whether the list at these keys has an item of that name.
    #[must_use]
    pub fn has_item(&self, keys: &[&str], name: &str) -> bool {
        let list = self.part(keys).map(|list| list.0.kind);
        matches!(list, Some(Kind::Seq(items)) if items.iter().any(|it| is_named(it, name)))
    }
}

fn is_named(item: &Node, name: &str) -> bool {
    item.entry("name").and_then(|it| it.value.text()) == Some(name)
}

/// Changes what stands at these keys; mappings on the way are made where they are missing.
fn within(at: &mut Node, keys: &[&str], change: impl FnOnce(&mut Node)) {
    let Some((key, rest)) = keys.split_first() else {
        change(at);
        return;
    };
    if !matches!(at.kind, Kind::Map(_)) {
        at.kind = Kind::Map(Vec::new());
    }
    let Kind::Map(entries) = &mut at.kind else { return };
    if !entries.iter().any(|it| it.key == *key) {
        entries.push(entry(key, scalar("null", true)));
    }
    if let Some(it) = entries.iter_mut().find(|it| it.key == *key) {
        within(&mut it.value, rest, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_item_changes_and_the_rest_leaves_as_it_came() {
        let text = "recipes:\n  - {name: a, level: 0.30}\n  - {name: b, words: [no, 1e3]}\n";
        let mut document = Document::parse(text).expect("YAML");
        let part = |text: &str| Document::parse(text).expect("YAML");
        document.put_item(&["recipes"], "a", &part("{name: a, level: 1e2}"));
        document.put_item(&["recipes"], "c", &part("{name: c}"));
        document.put_item(&["global", "kbs"], "k", &part("{name: k}"));
        document.put(&["routing"], &part("{decisions: []}"));
        let shown = document.to_yaml();
        assert!(shown.contains("1e3") && shown.contains("1e2") && !shown.contains("0.30"), "{shown}");
        let json = document.to_json();
        let names: Vec<&str> =
            json["recipes"].as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!((names, &json["global"]["kbs"][0]["name"]), (vec!["a", "b", "c"], &json!("k")));
        assert!(document.has_item(&["recipes"], "b") && !document.has_item(&["routing"], "b"));
        assert!(document.remove_item(&["recipes"], "b") && !document.remove_item(&["recipes"], "b"));
        assert_eq!(document.to_json()["recipes"].as_array().map(Vec::len), Some(2));
    }
}
