//! The binding of a bundle: of a file, or the one to this process.

use anyhow::Context;
use chorus_bundle::Mom;
use chorus_bundle::binding::{self, Binding};
use chorus_infer::store::{Catalog, ModelKind};
use chorus_spec::Diagnostic;
use std::fs;
use std::path::Path;

/// The binding of a file, or the one to this process.
pub(super) fn read_binding(mom: &Mom, file: Option<&Path>) -> anyhow::Result<(String, Binding)> {
    let text = match file {
        Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
        None => embedded(mom),
    };
    let name = file.map_or_else(|| "the binding to this process".to_owned(), |it| it.display().to_string());
    let binding = binding::read(&text, mom).map_err(|found| told(&name, &found))?;
    Ok((text, binding))
}

/// Every component whose weights this program's catalog has runs in this process.
fn embedded(mom: &Mom) -> String {
    let catalog = Catalog::builtin();
    let is_known = |name: &str| catalog.get(name).is_some_and(|it| it.kind == ModelKind::Generator);
    binding::embedded(mom, &is_known)
}

/// Every problem of a file, on one line each.
pub(super) fn told(file: &str, found: &[Diagnostic]) -> anyhow::Error {
    let line = |it: &Diagnostic| format!("line {}: {}: {}", it.place.line, it.path, it.message);
    let all: Vec<String> = found.iter().map(line).collect();
    anyhow::anyhow!("{file} does not hold: {}", all.join("; "))
}
