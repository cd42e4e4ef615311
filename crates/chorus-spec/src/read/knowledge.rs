//! Knowledge bases: the declarations of `model_catalog.kbs`, and those that every file has.
//!
//! It knows declarations, not manifests: which labels have exemplars is found out where the manifest is loaded.
//! **Invariant:** a metric compares two groups that its knowledge base declares.

use super::cursor::Cursor;
use super::names::unique;
use super::nearest::suggest;
use super::report::Report;
use super::{prototypes, yaml};
use crate::diagnostic::code;
use crate::{KbMetric, KnowledgeBase, PrototypeScoring};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The manifest's name when none is written (contract §1.9).
const MANIFEST: &str = "labels.json";

static BUILT_IN: LazyLock<Vec<KnowledgeBase>> = LazyLock::new(|| {
    let report = Report::default();
    let tree = yaml::parse(include_str!("knowledge.yaml"), &report);
    tree.map(|tree| declared(&Cursor::root(&tree, &report))).unwrap_or_default()
});

/// The knowledge bases of the contract, which a file has without declaring them: `privacy_kb` and `mmlu_kb`.
#[must_use]
pub fn built_in_knowledge() -> Vec<KnowledgeBase> {
    BUILT_IN.clone()
}

/// Reads `kbs` of a `model_catalog`; a declared one replaces a built-in one of its name.
pub(super) fn read(catalog: Option<&Cursor<'_>>) -> Vec<KnowledgeBase> {
    let declared = catalog.map(declared).unwrap_or_default();
    let mut all = built_in_knowledge();
    all.retain(|it| declared.iter().all(|other| other.name != it.name));
    all.extend(declared);
    all
}

fn declared(catalog: &Cursor<'_>) -> Vec<KnowledgeBase> {
    let mut seen = BTreeSet::new();
    let read = |at: &Cursor<'_>| {
        let name = at.required("name")?;
        let is_new = unique(&mut seen, at, "knowledge base", &name);
        base(at, name).filter(|_| is_new)
    };
    catalog.items("kbs").iter().filter_map(read).collect()
}

fn base(at: &Cursor<'_>, name: String) -> Option<KnowledgeBase> {
    let source = at.needed("source");
    let threshold = at.needed("threshold").and_then(|_| at.float_in("threshold", 0.0, 1.0));
    let groups = groups(at);
    let metrics = metrics(at, &groups);
    let mut scoring = PrototypeScoring::default();
    prototypes::read(at, &mut scoring);
    let source = source?;
    Some(KnowledgeBase {
        name,
        path: source.required("path")?,
        manifest: source.string("manifest").unwrap_or_else(|| MANIFEST.to_owned()),
        threshold: threshold?,
        label_thresholds: label_thresholds(at),
        groups,
        metrics,
        prototypes: scoring,
        place: at.place(),
    })
}

fn label_thresholds(at: &Cursor<'_>) -> Vec<(String, f64)> {
    let Some(map) = at.get("label_thresholds") else {
        return Vec::new();
    };
    let entry = |(label, _, _): (&str, _, _)| Some((label.to_owned(), map.float_in(label, 0.0, 1.0)?));
    map.entries().into_iter().filter_map(entry).collect()
}

fn groups(at: &Cursor<'_>) -> Vec<(String, Vec<String>)> {
    let Some(map) = at.get("groups") else {
        return Vec::new();
    };
    map.entries().into_iter().map(|(name, _, _)| (name.to_owned(), map.some_strings(name))).collect()
}

fn metrics(at: &Cursor<'_>, groups: &[(String, Vec<String>)]) -> Vec<KbMetric> {
    let known: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let group = |item: &Cursor<'_>, key: &str| {
        let name = item.required(key)?;
        if known.contains(&name.as_str()) {
            return Some(name);
        }
        let named = item.get(key).unwrap_or_else(|| item.clone());
        let help = suggest(&name, &known, "declare it under `groups`");
        named.error_help(code::UNKNOWN_REFERENCE, format!("this base has no group `{name}`"), help);
        None
    };
    let mut seen = BTreeSet::new();
    let read = |item: &Cursor<'_>| {
        let name = item.required("name")?;
        item.word("type", &[("group_margin", ())]);
        let (positive, negative) = (group(item, "positive_group"), group(item, "negative_group"));
        let is_new = unique(&mut seen, item, "metric", &name);
        Some(KbMetric { name, positive: positive?, negative: negative? }).filter(|_| is_new)
    };
    at.items("metrics").iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_bases_read_without_a_word() {
        let report = Report::default();
        let tree = yaml::parse(include_str!("knowledge.yaml"), &report).expect("YAML");
        let bases = declared(&Cursor::root(&tree, &report));
        assert!(report.into_sorted().is_empty());
        let shown: Vec<_> = bases.iter().map(|it| (it.name.as_str(), it.threshold)).collect();
        assert_eq!(shown, [("privacy_kb", 0.55), ("mmlu_kb", 0.25)]);
        let privacy = &bases[0];
        assert_eq!(privacy.label_thresholds, [("prompt_injection".to_owned(), 0.7)]);
        let labels = |name: &str| {
            let group = privacy.groups.iter().find(|(group, _)| group == name);
            group.map(|(_, labels)| labels.iter().map(String::as_str).collect::<BTreeSet<_>>()).expect(name)
        };
        let union = |a: &str, b: &str| &labels(a) | &labels(b);
        assert_eq!(labels("private"), union("security_containment", "privacy_policy"));
        assert_eq!(labels("public"), union("frontier_reasoning", "local_standard"));
        assert_eq!(bases[1].groups.iter().map(|(_, labels)| labels.len()).sum::<usize>(), 14);
    }
}
