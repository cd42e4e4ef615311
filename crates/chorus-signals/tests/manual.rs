//! The manual of signals: up to date, complete, and its examples load.
//!
//! It knows the repository's files and the reader of configurations. Invariant: it writes nothing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

use chorus_signals::manual::{PAGES, files};
use chorus_spec::Severity;
use std::collections::BTreeSet;
use std::path::Path;

const CONTRACT: &str = include_str!("../../chorus-spec/src/read/contract.txt");

#[test]
fn the_pages_are_what_the_code_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (path, text) in files() {
        let written = std::fs::read_to_string(docs.join(&path)).unwrap_or_default();
        assert!(written == text, "docs/{path} is not up to date: run `cargo xtask docs`");
    }
    for page in std::fs::read_dir(docs.join("signals")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        assert!(
            files().iter().any(|(path, _)| *path == format!("signals/{name}")),
            "docs/signals/{name} is of no family"
        );
    }
}

#[test]
fn every_example_loads_and_is_of_its_family() {
    for page in PAGES {
        let rules: String = page.example.lines().map(|line| format!("    {line}\n")).collect();
        let file = format!(
            "version: v0.3\nproviders:\n  defaults: {{ default_model: m }}\n  models:\n    - name: m\n      \
             backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}]\nrouting:\n  modelCards: [{{ name: m }}]\n  signals:\n{rules}"
        );
        let checked = chorus_spec::read(&file);
        let wrong: Vec<_> = checked
            .diagnostics
            .iter()
            .filter(|it| {
                it.severity == Severity::Error || ["unknown-key", "never-matches"].contains(&it.code)
            })
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", page.family);
        let signals = &checked.spec.unwrap().recipes[0].signals;
        assert!(
            !signals.is_empty() && signals.iter().all(|it| it.family() == page.family),
            "{}",
            page.family
        );
    }
}

#[test]
fn every_key_that_is_read_has_its_row() {
    for page in PAGES {
        let written: BTreeSet<&str> =
            page.keys.iter().filter_map(|key| key.path.split(['.', '[']).next()).collect();
        let read: BTreeSet<&str> = keys_of(&type_of(page.container));
        assert_eq!(written, read, "{}", page.family);
    }
}

/// The name of the mapping that a container lists, by the contract's table.
fn type_of(container: &str) -> String {
    let signals = CONTRACT.lines().find(|line| line.starts_with("Signals:")).unwrap();
    let entry = signals.split_whitespace().find_map(|word| word.strip_prefix(&format!("{container}:")));
    entry.unwrap_or_else(|| panic!("the contract lists no `{container}`")).trim_end_matches("[]").to_owned()
}

/// The keys of that mapping that mean something, but for `name` and `description`.
fn keys_of(name: &str) -> BTreeSet<&'static str> {
    let line = CONTRACT.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap();
    let keys = line.split_whitespace().filter(|word| !word.starts_with(['~', '.', '-']));
    keys.filter_map(|word| word.split(':').next())
        .filter(|key| !["name", "description"].contains(key))
        .collect()
}
