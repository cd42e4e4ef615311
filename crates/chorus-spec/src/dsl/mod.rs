//! The policy language: the routing part of a v0.3 file as text that a person writes.
//!
//! A policy is parsed into a tree that keeps comments ([`format`] prints it), compiled into the routing part of a
//! [`Document`] whose every value still stands at its words, laid over a base that says where models can be called, and
//! read by the one reader of the contract. So what a field may hold is checked in one place, and reported at the line of
//! the policy. [`decompile`] goes the other way. It knows no file system, environment or clock.
//!
//! **Invariant:** a policy has the meaning of the document that it compiles to, and no other.

mod ast;
mod base;
mod case;
pub mod code;
mod compile;
mod cursor;
mod decision;
mod decompile;
mod expression;
mod field;
mod inline;
mod layout;
mod node;
mod normal;
mod parse;
mod print;
mod route;
mod token;
mod words;

use crate::read::report::Report;
use crate::read::{self, Document};
use crate::{Diagnostic, Digest, Severity, Spec};

pub use case::TestCase;
pub use code::CODES;
pub use normal::Difference;

/// What reading a policy gave.
#[derive(Debug, Clone)]
pub struct Reading {
    /// `None` when there is any error, in either text.
    pub spec: Option<Spec>,
    /// The whole document: the policy over its base. Whole only when there is no error.
    pub document: Document,
    /// The cases of its `TEST` blocks, in order.
    pub tests: Vec<TestCase>,
    /// Problems of the policy, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Problems of the base, by place.
    pub base_diagnostics: Vec<Diagnostic>,
}

impl Reading {
    /// Whether either text has an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let all = self.diagnostics.iter().chain(&self.base_diagnostics);
        all.into_iter().any(|it| it.severity == Severity::Error)
    }

    /// What is wrong with the policy as a whole although each of its parts is right: findings of the policy, and of its
    /// base. Empty while there are errors.
    #[must_use]
    pub fn lint(&self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        by_text(self.spec.as_ref().map(crate::lint).unwrap_or_default())
    }
}

/// Divides findings about what was read into those of the policy and those of its base, each at its place there.
#[must_use]
pub fn by_text(found: Vec<Diagnostic>) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let (mut policy, mut base) = (Vec::new(), Vec::new());
    for it in found {
        match base::of_base(it) {
            Ok(it) => base.push(it),
            Err(it) => policy.push(it),
        }
    }
    (policy, base)
}

/// Reads a policy: parses, compiles, lays it over the base, and checks the whole.
///
/// `base` is the text of a v0.3 file that holds what a policy does not say: providers, listeners, `global`. Without one
/// every `MODEL` block stands for a model that can be called nowhere: enough to check and explain a policy, not to serve
/// it.
#[must_use]
pub fn read(policy: &str, base: Option<&str>) -> Reading {
    let report = Report::default();
    let parsed = parse::parse(policy, &report);
    let lowered = compile::compile(&parsed.file, &report);
    let has_lost = report.has_errors();
    let mut base_diagnostics = Vec::new();
    let root = match base.map(Document::parse) {
        None => base::unbound(lowered.root),
        Some(Ok(base)) => base::lay_over(lowered.root, base.root()),
        Some(Err(faults)) => {
            base_diagnostics = faults;
            base::unbound(lowered.root)
        }
    };
    let document = Document::of_node(root);
    let digest = Digest::of(document.to_yaml().as_bytes());
    let checked = read::read_tree(document.root(), digest);
    let mut diagnostics = report.into_sorted();
    for found in checked.diagnostics {
        match base::of_base(found) {
            Ok(of_base) => base_diagnostics.push(of_base),
            Err(found) if base.is_none() && found.path.starts_with("providers") => {}
            Err(found) if has_lost && may_follow(&found, parsed.lost_blocks) => {}
            Err(found) => diagnostics.push(found),
        }
    }
    // What is wrong in a template is found at every route that names it; it is said once.
    diagnostics.sort_by(|a, b| (a.place, a.code, &a.message).cmp(&(b.place, b.code, &b.message)));
    diagnostics.dedup_by(|a, b| (a.place, a.code, &a.message) == (b.place, b.code, &b.message));
    let spec = if has_lost { None } else { checked.spec };
    let mut reading = Reading { spec, document, tests: lowered.tests, diagnostics, base_diagnostics };
    if reading.has_errors() {
        reading.spec = None;
    }
    reading
}

/// Whether a finding may only follow from text that was not understood.
fn may_follow(found: &Diagnostic, lost_blocks: bool) -> bool {
    use crate::code::{BAD_RULE, DUPLICATE_KEY, MISSING_KEY, UNKNOWN_REFERENCE};
    let of_names = lost_blocks && found.code == UNKNOWN_REFERENCE;
    of_names
        || found.severity == Severity::Warning
        || [MISSING_KEY, BAD_RULE, DUPLICATE_KEY].contains(&found.code)
}

/// Compiles a policy without a base and without checking what its fields hold.
///
/// # Errors
/// What is wrong with the text.
pub fn compile(policy: &str) -> Result<Document, Vec<Diagnostic>> {
    let report = Report::default();
    let parsed = parse::parse(policy, &report);
    let lowered = compile::compile(&parsed.file, &report);
    if report.has_errors() { Err(report.into_sorted()) } else { Ok(Document::of_node(lowered.root)) }
}

/// Lays a compiled policy over the document that says where its models can be called.
///
/// `routing` is replaced, and `entrypoints` and `recipes` where the policy has any. What a policy has left out stays:
/// model cards if it declares none, and of a decision of the same name the keys that have no clause (`adaptations`,
/// output contracts, annotations).
#[must_use]
pub fn lay_over(policy: &Document, base: &Document) -> Document {
    Document::of_node(base::merged(policy.root().clone(), base.root()))
}

/// Prints a policy in the one way in which policies are written. Comments stay.
///
/// # Errors
/// What is wrong with the text; a text that does not parse is not printed.
pub fn format(policy: &str) -> Result<String, Vec<Diagnostic>> {
    let report = Report::default();
    let parsed = parse::parse(policy, &report);
    if report.has_errors() { Err(report.into_sorted()) } else { Ok(print::print(&parsed.file)) }
}

/// Policy text that compiles to the document's routing part.
#[must_use]
pub fn decompile(document: &Document) -> Decompiled {
    let (file, left_out) = decompile::decompile(document.root());
    Decompiled { text: print::print(&file), left_out }
}

/// What decompiling gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decompiled {
    /// The policy.
    pub text: String,
    /// Keys of the routing part that no block can hold; none in a document that the reader takes.
    pub left_out: Vec<String>,
}

/// Where the routing parts of two documents differ in what they say: order, default positions and grouping of one
/// condition set aside.
#[must_use]
pub fn differences(left: &Document, right: &Document) -> Vec<Difference> {
    normal::differences(left.root(), right.root())
}
