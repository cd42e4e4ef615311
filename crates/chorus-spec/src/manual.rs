//! The manual of diagnostics: a page a code, and the list of them.
//!
//! It knows the tables of codes and runs their examples; it writes no file. **Invariant:** what a page shows being said
//! is what is said.

use crate::diagnostic::DIAGNOSTIC_CODES;
use crate::{Diagnostic, DiagnosticCode, dsl, lint, read};
use std::fmt::Write as _;

/// What stands below an example that is not whole by itself.
const REST: &str = "version: v0.3
providers:
  models:
    - { name: m, backend_refs: [{ endpoint: \"localhost:8000\" }] }
    - { name: n, backend_refs: [{ endpoint: \"localhost:8001\" }] }
";

const INTRODUCTION: &str = "\
# Diagnostics

What `chorus check` and `chorus policy check` say of a file. A diagnostic has a code, a place, one sentence, and most
have a help. An **error** stands in the way: the file is not served. A **warning** does not: something in the file has
no effect, or not the likely one. All problems are told at once.

These pages are generated from the code by `cargo xtask docs`, and a test holds them to it.
";

/// One set of codes: its heading, the codes, and how an example is read.
struct Chapter {
    heading: &'static str,
    codes: &'static [DiagnosticCode],
    language: &'static str,
    read: fn(&str) -> (String, Vec<Diagnostic>),
}

const CHAPTERS: [Chapter; 2] = [
    Chapter {
        heading: "Configuration and policy",
        codes: DIAGNOSTIC_CODES,
        language: "yaml",
        read: read_configuration,
    },
    Chapter { heading: "The policy language", codes: dsl::CODES, language: "text", read: read_policy },
];

/// The pages of the manual: path below `docs`, and text.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let mut index = INTRODUCTION.to_owned();
    let mut files = Vec::new();
    for chapter in &CHAPTERS {
        let _ = write!(index, "\n## {}\n\n| code | | says |\n|---|---|---|\n", chapter.heading);
        for code in chapter.codes {
            let said = code.example.and_then(|example| said(chapter, code, example));
            let severity = said.as_ref().map_or("error", |(found, _)| found.severity.as_str());
            let name = code.code;
            let _ = writeln!(index, "| [`{name}`](diagnostics/{name}.md) | {severity} | {} |", code.says);
            files.push((format!("diagnostics/{name}.md"), page(chapter, code, severity, said)));
        }
    }
    files.push(("diagnostics.md".to_owned(), index));
    files
}

/// What is said of an example: the diagnostic of the code itself, as it is rendered.
fn said(chapter: &Chapter, code: &DiagnosticCode, example: &str) -> Option<(Diagnostic, String)> {
    let (text, found) = (chapter.read)(example);
    let found = found.into_iter().find(|found| found.code == code.code)?;
    let rendered = found.render("example", &text);
    Some((found, rendered))
}

fn page(
    chapter: &Chapter,
    code: &DiagnosticCode,
    severity: &str,
    said: Option<(Diagnostic, String)>,
) -> String {
    let mut page = format!("# `{}`\n\n*{severity}*\n\n{}\n", code.code, code.says);
    if let (Some(example), Some((_, said))) = (code.example, said) {
        let _ = write!(page, "\n## Example\n\n```{}\n{example}```\n\n```text\n{said}```\n", chapter.language);
    }
    let _ = write!(page, "\n## What to do\n\n{}\n", code.fix);
    page
}

fn read_configuration(example: &str) -> (String, Vec<Diagnostic>) {
    let is_whole = example.starts_with("version");
    let text = if is_whole { example.to_owned() } else { format!("{example}{REST}") };
    let checked = read(&text);
    let mut found = checked.diagnostics;
    found.extend(checked.spec.iter().flat_map(lint));
    (text, found)
}

fn read_policy(example: &str) -> (String, Vec<Diagnostic>) {
    (example.to_owned(), dsl::read(example, None).diagnostics)
}
