//! Papers: every test that ARCHITECTURE.md names for an invariant exists.

use super::files::Source;
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::{self, Visit};

const PAPER: &str = "ARCHITECTURE.md";

/// Named tests that no source has.
pub(crate) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(PAPER)).with_context(|| format!("cannot read {PAPER}"))?;
    let mut functions = Functions(BTreeSet::new());
    sources.iter().for_each(|source| functions.visit_file(&source.syntax));
    let section = text.split("\n## ").find(|section| section.starts_with("Invariants")).unwrap_or_default();
    let missing = section
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| is_test_name(word) && !functions.0.contains(*word));
    Ok(missing.map(|word| format!("{PAPER}: no test is named `{word}`")).collect())
}

/// Snake case with at least two underscores: a sentence, as tests are named here.
fn is_test_name(word: &str) -> bool {
    let plain = word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    plain && word.matches('_').count() >= 2
}

struct Functions(BTreeSet<String>);

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.0.insert(item.sig.ident.to_string());
        visit::visit_item_fn(self, item);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        // Properties are functions inside `proptest!`.
        let mut tokens = item.tokens.clone().into_iter().peekable();
        while let Some(token) = tokens.next() {
            if let (proc_macro2::TokenTree::Ident(word), Some(proc_macro2::TokenTree::Ident(name))) =
                (&token, tokens.peek())
                && word == "fn"
            {
                self.0.insert(name.to_string());
            }
        }
    }
}
