//! The pages of the manual that are made from the table of selectors.

use crate::ALL;
use crate::doc::SelectorDoc;
use std::fmt::Write;

/// The page of one selector, as Markdown.
#[must_use]
pub fn page(doc: &SelectorDoc) -> String {
    let mut text = format!(
        "# `{}`\n\n{}\n\n## When\n\n{}\n\n```yaml\n{}```\n\n## Parameters\n\n",
        doc.kind, doc.what, doc.when, doc.example
    );
    if doc.parameters.is_empty() {
        text.push_str("None.\n");
    } else {
        let _ = writeln!(text, "| key under `algorithm.{}` | meaning | default |\n|---|---|---|", doc.kind);
        for (key, meaning, default) in doc.parameters {
            let _ = writeln!(text, "| `{key}` | {meaning} | {default} |");
        }
    }
    let _ = write!(
        text,
        "\n## Cost\n\n{}\n\n## When it fails\n\n{}\n\n## Source\n\n{}\n",
        doc.cost, doc.fails_when, doc.source
    );
    text
}

/// The table of all selectors, as Markdown.
#[must_use]
pub fn index() -> String {
    let mut text = String::from(
        "# Selectors\n\nA selector picks one of a decision's candidates: `algorithm: { type: … }`. Candidates that cannot \
         serve the request are removed before it. Where it cannot choose, `algorithm.on_error` decides: `skip` takes the \
         first candidate in the order of `static`, `fail` refuses the request. The trace, the record and \
         `chorus explain` name the selector, its scores and its reason.\n\n\
         `global.router.model_selection.method` names the selector of all decisions with several candidates that name \
         no algorithm; `static` where it is not written, where `enabled` is false, and where it is a learned selector \
         without a trained artifact.\n\n\
         How a running conversation keeps its model is in [sessions.md](sessions.md); how learned selectors are trained \
         in [training.md](training.md).\n\n| selector | what it does |\n|---|---|\n",
    );
    for doc in ALL {
        let first = doc.what.split_once(". ").map_or(doc.what, |(first, _)| first);
        let _ = writeln!(text, "| [`{0}`]({0}.md) | {1} |", doc.kind, first.trim_end_matches('.'));
    }
    text
}

/// Every page below `docs/selectors`, by its name.
#[must_use]
pub fn pages() -> Vec<(String, String)> {
    let own = ALL.iter().map(|doc| (format!("{}.md", doc.kind), page(doc)));
    std::iter::once(("README.md".to_owned(), index())).chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_pages_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/selectors");
        for (name, text) in pages() {
            let written = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert!(written == text, "docs/selectors/{name} is not up to date: run `cargo xtask docs`");
        }
    }

    #[test]
    fn every_example_is_read_and_every_parameter_is_a_key_of_the_contract() {
        for doc in ALL {
            let indented: String = doc.example.lines().map(|line| format!("      {line}\n")).collect();
            let keys = |(key, _, _): &(&str, &str, &str)| !key.is_empty();
            assert!(doc.parameters.iter().all(keys), "{}", doc.kind);
            let file = format!(
                "version: v0.3\nproviders:\n  models:\n    - {{ name: small, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n\
                 routing:\n  modelCards: [{{ name: small }}]\n  decisions:\n    - name: d\n      modelRefs: [{{ model: small }}]\n{indented}"
            );
            let checked = chorus_spec::read(&file);
            let spec = checked.spec.unwrap_or_else(|| panic!("{}: {:#?}", doc.kind, checked.diagnostics));
            assert_eq!(spec.recipes[0].decisions[0].algorithm.kind(), doc.kind);
        }
    }
}
