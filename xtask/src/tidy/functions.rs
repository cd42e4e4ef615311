//! Functions: at most 100 lines and 7 arguments.

use super::files::Source;
use proc_macro2::Span;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const MAX_LINES: usize = 100;
const MAX_ARGUMENTS: usize = 7;

/// Functions that break a bound.
pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        Measure { path: &source.path, problems: &mut problems }.visit_file(&source.syntax);
    }
    problems
}

struct Measure<'a> {
    path: &'a Path,
    problems: &'a mut Vec<String>,
}

impl Measure<'_> {
    fn measure(&mut self, signature: &syn::Signature, whole: Span) {
        let (start, end) = (whole.start().line, whole.end().line);
        let (lines, arguments) = (end.saturating_sub(start) + 1, signature.inputs.len());
        let place =
            format!("{}:{}: `{}`", self.path.display(), signature.span().start().line, signature.ident);
        if lines > MAX_LINES {
            self.problems.push(format!("{place} has {lines} lines (at most {MAX_LINES})"));
        }
        if arguments > MAX_ARGUMENTS {
            self.problems.push(format!("{place} has {arguments} arguments (at most {MAX_ARGUMENTS})"));
        }
    }
}

impl<'ast> Visit<'ast> for Measure<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }
}
