//! A source directory: what a person writes and reviews, read strictly and whole.
//!
//! It knows the names of files and no file system: the caller hands over the bytes. **Invariant:** a [`Source`] is handed
//! out only when no file has an error, and depends on the bytes and names of the files alone.

mod interface;
mod page;

use crate::calibration;
use crate::graph;
use crate::mom::Mom;
use crate::oci::kind_of;
use crate::path::{self, Files};
use chorus_spec::{
    Diagnostic, Document, KnowledgeBase, Place, Severity, Spec, built_in_knowledge, code, dsl,
};
pub(crate) use page::{At, Page};
use serde_json::Value;
use std::collections::BTreeSet;

/// The interface's file.
pub const INTERFACE: &str = "mom.yaml";
/// The policy's file, in one of two languages.
pub const POLICIES: [&str; 2] = ["policy.yaml", "policy.dsl"];
/// Files that may lie beside a source and are no part of it.
const BESIDE: [&str; 3] = ["binding.yaml", "runtime.yaml", "mom.lock"];
/// What stands before the name of a prompt file in a policy.
const PROMPT_FILE: &str = "file:prompts/";

/// A source that was read and checked whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The interface.
    pub mom: Mom,
    /// What decides.
    pub graph: Value,
    /// Prompts, heads, knowledge, suites and the model card, by name.
    pub assets: Files,
}

/// A problem, and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// The problem.
    pub diagnostic: Diagnostic,
}

/// What reading gave.
#[derive(Debug, Clone)]
pub struct Reading {
    /// `None` when any file has an error.
    pub source: Option<Source>,
    /// Every problem, by file and place.
    pub findings: Vec<Finding>,
}

/// Reads a source directory.
#[must_use]
pub fn read(files: &Files) -> Reading {
    let mut findings = Vec::new();
    let assets = assets(files, &mut findings);
    let mom = interface(files, &assets, &mut findings);
    let policy = policy(files, &assets, &mut findings);
    let mut graph = None;
    if let (Some(mom), Some((file, policy))) = (&mom, &policy) {
        let checked = graph::check(policy, mom);
        let add = |diagnostic| Finding { file: (*file).to_owned(), diagnostic };
        if let Some(spec) = &checked.spec {
            findings.extend(chorus_spec::lint(spec).into_iter().map(add));
            findings.extend(
                unknown_recipes(mom, spec)
                    .into_iter()
                    .map(|it| finding(INTERFACE, code::UNKNOWN_REFERENCE, it)),
            );
            findings.extend(absent_knowledge(spec, &assets).into_iter().map(add));
            let compiled = graph::of(policy);
            findings.extend(uncalibrated(mom, &compiled));
            graph = Some(compiled);
        }
        // What stands in no line of the policy follows from the interface.
        findings.extend(checked.diagnostics.into_iter().map(|it| match it.place.line {
            0 => Finding { file: INTERFACE.to_owned(), diagnostic: Diagnostic { path: String::new(), ..it } },
            _ => add(it),
        }));
    }
    findings.sort_by(|a, b| {
        (&a.file, a.diagnostic.place, &a.diagnostic.message).cmp(&(
            &b.file,
            b.diagnostic.place,
            &b.diagnostic.message,
        ))
    });
    let is_good = findings.iter().all(|it| it.diagnostic.severity != Severity::Error);
    let source = mom.zip(graph).map(|(mom, graph)| Source { mom, graph, assets }).filter(|_| is_good);
    Reading { source, findings }
}

fn finding(file: &str, code: &'static str, message: impl Into<String>) -> Finding {
    let diagnostic = Diagnostic {
        severity: Severity::Error,
        code,
        message: message.into(),
        help: None,
        place: Place { line: 1, column: 1 },
        path: String::new(),
    };
    Finding { file: file.to_owned(), diagnostic }
}

fn warning(file: &str, code: &'static str, message: impl Into<String>) -> Finding {
    let mut it = finding(file, code, message);
    it.diagnostic.severity = Severity::Warning;
    it
}

/// The files that travel, by name; what else lies there is remarked upon.
fn assets(files: &Files, findings: &mut Vec<Finding>) -> Files {
    let mut assets = Files::new();
    for (name, bytes) in files {
        let is_known =
            name == INTERFACE || POLICIES.contains(&name.as_str()) || BESIDE.contains(&name.as_str());
        match (path::check(name), kind_of(name)) {
            (Err(why), _) => findings.push(finding(name, code::BAD_VALUE, format!("the file's name {why}"))),
            (Ok(_), Some(_)) => drop(assets.insert(name.clone(), bytes.clone())),
            (Ok(_), None) if is_known => {}
            (Ok(_), None) => findings.push(warning(name, code::UNUSED, "this file is no part of the bundle")),
        }
    }
    assets
}

/// The text of a file that must be there.
fn text<'f>(files: &'f Files, name: &str, findings: &mut Vec<Finding>) -> Option<&'f str> {
    let Some(bytes) = files.get(name) else {
        findings.push(finding(name, code::MISSING_KEY, format!("there is no {name}")));
        return None;
    };
    let text = std::str::from_utf8(bytes).ok();
    if text.is_none() {
        findings.push(finding(name, code::YAML, "the file is not UTF-8"));
    }
    text
}

/// The interface of a bundle's config blob, read as strictly as a person's.
pub(crate) fn interface_of(config: &str) -> Result<Mom, Vec<Diagnostic>> {
    let page = Page::open(config)?;
    let mom = interface::read(&page.root());
    let found = page.into_found();
    mom.filter(|_| found.is_empty()).ok_or(found)
}

fn interface(files: &Files, assets: &Files, findings: &mut Vec<Finding>) -> Option<Mom> {
    let text = text(files, INTERFACE, findings)?;
    let in_file = |diagnostic| Finding { file: INTERFACE.to_owned(), diagnostic };
    let page = match Page::open(text) {
        Ok(page) => page,
        Err(faults) => {
            findings.extend(faults.into_iter().map(in_file));
            return None;
        }
    };
    let mom = interface::read(&page.root());
    for (at, suite) in mom.iter().flat_map(|mom| &mom.suites).enumerate() {
        if !assets.contains_key(&suite.file) {
            let message = format!("suite {at} `{}` has no file {}", suite.name, suite.file);
            findings.push(finding(INTERFACE, code::UNKNOWN_REFERENCE, message));
        }
    }
    for problem in mom.iter().flat_map(calibration::problems) {
        findings.push(finding(INTERFACE, code::BAD_VALUE, problem));
    }
    findings.extend(page.into_found().into_iter().map(in_file));
    mom
}

/// The policy as a document, with the prompts that it names put in their places.
fn policy(files: &Files, assets: &Files, findings: &mut Vec<Finding>) -> Option<(&'static str, Document)> {
    let present: Vec<&'static str> = POLICIES.into_iter().filter(|name| files.contains_key(*name)).collect();
    let name = match present.as_slice() {
        [name] => *name,
        [] => {
            findings.push(finding(
                "policy.yaml",
                code::MISSING_KEY,
                "there is no policy.yaml and no policy.dsl",
            ));
            return None;
        }
        _ => {
            findings.push(finding(
                "policy.dsl",
                code::DUPLICATE_NAME,
                "there is a policy.yaml as well; keep one",
            ));
            return None;
        }
    };
    let text = text(files, name, findings)?;
    let parsed = if name == "policy.dsl" { dsl::compile(text) } else { Document::parse(text) };
    let mut document = match parsed {
        Ok(document) => document,
        Err(faults) => {
            findings
                .extend(faults.into_iter().map(|diagnostic| Finding { file: name.to_owned(), diagnostic }));
            return None;
        }
    };
    let mut absent = BTreeSet::new();
    document.replace_texts(&mut |text| {
        let file = text.starts_with(PROMPT_FILE).then(|| text.strip_prefix("file:"))??;
        let prompt = assets.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok());
        if prompt.is_none() {
            absent.insert(file.to_owned());
        }
        prompt.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    });
    let message = |file| format!("the policy names {file}, which is not there or not UTF-8");
    findings.extend(absent.into_iter().map(|file| finding(name, code::UNKNOWN_REFERENCE, message(file))));
    Some((name, document))
}

/// Calibrations that vouch for no cascade of their point.
fn uncalibrated(mom: &Mom, graph: &Value) -> Vec<Finding> {
    let claimed = |point: &str| mom.provenance.contains_key(&calibration::Calibration::key(point));
    let vain = calibration::footings(mom, graph)
        .into_iter()
        .filter(|(point, footing)| *footing == calibration::Footing::SafeSide && claimed(point));
    vain.map(|(point, _)| {
        let safe = calibration::SAFE;
        let text = format!("the calibration of `{point}` names another threshold than the policy; it is served at {safe} or above");
        warning(INTERFACE, code::UNUSED, text)
    })
    .collect()
}

fn unknown_recipes(mom: &Mom, spec: &Spec) -> Vec<String> {
    let unknown = mom.operating_points.iter().filter(|it| spec.recipe(&it.recipe).is_none());
    unknown
        .map(|it| format!("the operating point `{}` runs `{}`, which is no recipe", it.name, it.recipe))
        .collect()
}

/// Knowledge bases that the engine does not have built in and that do not travel.
fn absent_knowledge(spec: &Spec, assets: &Files) -> Vec<Diagnostic> {
    let built_in = built_in_knowledge();
    let is_built_in =
        |it: &KnowledgeBase| built_in.iter().any(|known| known.name == it.name && known.path == it.path);
    let manifest = |it: &KnowledgeBase| format!("{}/{}", it.path.trim_end_matches('/'), it.manifest);
    let absent = spec
        .global
        .knowledge_bases
        .iter()
        .filter(|it| !is_built_in(it) && !assets.contains_key(&manifest(it)));
    absent
        .map(|it| Diagnostic {
            severity: Severity::Warning,
            code: code::UNPREPARED,
            message: format!(
                "the knowledge base `{}` does not travel with the bundle: no {}",
                it.name,
                manifest(it)
            ),
            help: Some("put it below knowledge/ and name that folder".to_owned()),
            place: it.place,
            path: String::new(),
        })
        .collect()
}
