//! The reader: the text of a v0.3 file becomes one checked [`Spec`], or all of its problems at once.
//!
//! The order is: a located tree; every key against the contract; what is declared by name; what refers to it. Each
//! section has a reader of its own below this module. It knows no file system, environment or clock.
//!
//! **Invariant:** a `Spec` is handed out only when no reader reported an error, so what fails at start fails here.

mod access;
mod algorithms;
mod answer_checks;
mod budgets;
mod cache;
mod compression;
mod contract;
mod credential;
mod cursor;
mod databases;
mod decisions;
mod deployment;
mod document;
mod envelope;
mod flow_state;
mod globals;
mod guard;
mod headers;
mod host;
mod house;
mod image_gen;
mod iterations;
mod knowledge;
mod learned;
mod loopers;
mod measures;
mod memory;
mod names;
pub(crate) mod nearest;
mod order;
mod outputs;
mod parameters;
mod patterns;
mod plugins;
mod poll;
mod projections;
mod prototypes;
mod providers;
mod qdrant;
mod quantity;
mod rag;
mod recipes;
mod redis;
pub(crate) mod report;
mod response_api;
mod rules;
mod selection;
mod selectors;
mod services;
mod session_store;
mod signals;
mod textual;
mod tool_selection;
mod vector_store;
mod workflows;
pub(crate) mod yaml;

use crate::diagnostic::code;
use crate::{Diagnostic, Digest, Spec};
use cursor::Cursor;
use names::Answerers;
use report::Report;

pub use document::{Document, MASK};
pub use knowledge::built_in_knowledge;
pub use parameters::{documented_loopers, looper_parameters};

/// The version that is read.
const VERSION: &str = "v0.3";

/// What reading gave: a checked [`Spec`], or the errors that stand against it; warnings either way.
#[derive(Debug, Clone)]
pub struct Checked {
    /// `None` when there is any error.
    pub spec: Option<Spec>,
    /// Every problem of the file, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a v0.3 file.
///
/// Reading never stops at the first problem, except where the text is not YAML at all.
#[must_use]
pub fn read(text: &str) -> Checked {
    let report = Report::default();
    let spec = yaml::parse(text, &report).map(|tree| {
        let root = Cursor::root(&tree, &report);
        contract::check(&root);
        spec(&root, Digest::of(text.as_bytes()))
    });
    let spec = spec.filter(|_| !report.has_errors());
    Checked { spec, diagnostics: report.into_sorted() }
}

/// Reads a document that was put together from parts; what was added to it has no place.
#[must_use]
pub fn read_document(document: &Document) -> Checked {
    read_tree(document.root(), Digest::of(document.to_yaml().as_bytes()))
}

/// Reads a document that another front end made; its nodes know where they were written.
pub(crate) fn read_tree(tree: &yaml::Node, digest: Digest) -> Checked {
    let report = Report::default();
    let root = Cursor::root(tree, &report);
    contract::check(&root);
    let spec = Some(spec(&root, digest)).filter(|_| !report.has_errors());
    Checked { spec, diagnostics: report.into_sorted() }
}

fn spec(root: &Cursor<'_>, digest: Digest) -> Spec {
    check_version(root);
    let global = globals::read(root);
    let house = house::House {
        memory: global.memory.clone(),
        tools: tool_selection::integration(root),
        vectors: global.vector_store.server.clone(),
        memories: global.memory.server.clone(),
    };
    let mut reserved = globals::reserve(root, &global);
    let entrypoints = recipes::entrypoints(root, &mut reserved);
    let declared = providers::read(root, &reserved);
    let answerers = Answerers {
        models: &declared.models,
        refused: &declared.refused,
        reserved: &reserved,
        has_default: declared.default_model.is_some(),
        selection: &global.selection,
        house: &house,
    };
    let recipes = recipes::read(root, globals::strategy(root), &answerers, &global.knowledge_bases);
    Spec {
        digest,
        listeners: globals::listeners(root),
        default_model: declared.default_model,
        default_reasoning_effort: declared.default_reasoning_effort,
        reasoning_families: declared.reasoning_families,
        recipes,
        entrypoints,
        global,
        models: declared.models,
    }
}

fn check_version(root: &Cursor<'_>) {
    let help = format!("write `version: {VERSION}` at the top");
    match root.get("version").map(|at| (at.text(), at)) {
        None => root.error_help(code::MISSING_KEY, "`version` is missing", help),
        Some((Some(version), at)) if version != VERSION => {
            at.error_help(code::BAD_VALUE, format!("this reader takes {VERSION}, not `{version}`"), help);
        }
        Some(_) => {}
    }
}
