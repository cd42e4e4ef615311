//! The manual of projections: up to date, complete, and its examples load.
//!
//! It knows the repository's files and the reader of configurations. Invariant: it writes nothing.

use chorus_policy::manual::{PAGES, file_of, files};
use std::collections::BTreeSet;
use std::path::Path;

const CONTRACT: &str = include_str!("../../chorus-spec/src/read/contract.txt");

#[test]
fn the_pages_are_what_the_code_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (path, text) in files() {
        let written = std::fs::read_to_string(docs.join(&path)).unwrap_or_default();
        assert!(written == text, "docs/{path} is not up to date: run `cargo xtask docs`");
        assert!(!text.contains("```json\n\n") && !text.contains("```json\nnull"), "docs/{path} has no trace");
    }
}

#[test]
fn every_example_loads() {
    for page in PAGES {
        let checked = chorus_spec::read(&file_of(&page));
        assert!(
            checked.spec.is_some() && checked.diagnostics.is_empty(),
            "{}: {:#?}",
            page.name,
            checked.diagnostics
        );
    }
}

#[test]
fn every_key_of_the_contract_has_its_row() {
    for (page, shapes) in PAGES.iter().zip([
        &["Partition"][..],
        &["Score", "ScoreInput"],
        &["Mapping", "Calibration", "MappingOutput"],
    ]) {
        let written: BTreeSet<&str> =
            page.keys.iter().filter_map(|(path, ..)| path.rsplit('.').next()).collect();
        let known = shapes.iter().flat_map(|shape| {
            let line = CONTRACT.lines().find_map(|line| line.strip_prefix(&format!("{shape}: "))).unwrap();
            line.split_whitespace().filter(|key| !key.contains(':'))
        });
        assert_eq!(written, known.collect(), "{}", page.name);
    }
}
