//! `chorus import --from FILE DIR`: a v0.3 configuration becomes a source, a binding and settings of the runtime.
//!
//! It knows files; the splitting is `chorus_bundle::import`. **Invariant:** nothing is written before the routes have been
//! compared.

use super::disk;
use crate::terminal::{note, say};
use anyhow::{Context, bail};
use chorus_bundle::import::{ImportFault, Imported, split};
use chorus_bundle::{Bundle, binding, mount, verify};
use chorus_spec::{Document, Spec};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Splits one file and writes what it became.
pub(super) fn run(from: &Path, dir: &Path, family: Option<&str>) -> anyhow::Result<ExitCode> {
    let name = dir.file_name().context("the directory needs a name")?.to_string_lossy();
    if dir.exists() {
        bail!("{} is there already", dir.display());
    }
    let text = fs::read_to_string(from).with_context(|| format!("cannot read {}", from.display()))?;
    let imported = take(&text, family.unwrap_or(&name), &from.display().to_string())?;
    let bundle = same_routes(&text, &imported)?;
    for (name, bytes) in &imported.files {
        disk::put(&dir.join(name), bytes)?;
    }
    say(&format!("{} → {}: the routes are the same\n{}", from.display(), dir.display(), bundle.digest));
    note(
        "mom.yaml states the licence NOASSERTION and version 0.1.0, and binding.yaml who is trusted: see to them",
    );
    Ok(ExitCode::SUCCESS)
}

fn take(text: &str, family: &str, file: &str) -> anyhow::Result<Imported> {
    split(text, family).map_err(|fault| {
        match &fault {
            ImportFault::Config(found) => found.iter().for_each(|it| note(&it.render(file, text))),
            ImportFault::Source(found) => {
                found.iter().for_each(|it| note(&format!("{}: {}", it.file, it.diagnostic.message)));
            }
            ImportFault::Different => {}
        }
        fault.into()
    })
}

/// Builds the source, binds it, and compares the checked routes with those of the file.
fn same_routes(text: &str, imported: &Imported) -> anyhow::Result<Bundle> {
    let bundle = Bundle::build(imported.source.clone())?;
    if let Err(faults) = verify::read(&bundle.layout()?) {
        bail!("the bundle does not verify: {}", faults.first().map(ToString::to_string).unwrap_or_default());
    }
    let file = imported.files.get("binding.yaml").map(|bytes| String::from_utf8_lossy(bytes));
    let told = |found: Vec<chorus_spec::Diagnostic>| {
        let first = found.into_iter().next().map(|it| format!("{}: {}", it.path, it.message));
        anyhow::anyhow!("the binding does not hold: {}", first.unwrap_or_default())
    };
    let binding = binding::read(&file.unwrap_or_default(), &bundle.mom).map_err(told)?;
    let mount = mount::mount(&bundle, &binding, None).map_err(told)?;
    let mut document = mount.documents.first().context("there is nothing to serve")?.document.clone();
    if let Some(runtime) = imported.files.get("runtime.yaml") {
        // What is served is both: a plugin reads the settings of the store that it uses.
        let runtime = Document::parse(&String::from_utf8_lossy(runtime)).map_err(told)?;
        document.merge(&runtime.to_json());
    }
    let again = chorus_spec::read_document(&document).spec.context("the bound bundle does not load")?;
    let before = chorus_spec::read(text).spec.context("the configuration does not load")?;
    if routes(&before) != routes(&again) {
        bail!("the bound bundle does not route as the configuration does");
    }
    Ok(bundle)
}

/// Everything checked that decides, where it was written set aside.
fn routes(spec: &Spec) -> String {
    let Spec { recipes, entrypoints, models, default_model, reasoning_families, .. } = spec;
    let effort = &spec.default_reasoning_effort;
    let text =
        format!("{recipes:?} {entrypoints:?} {models:?} {default_model:?} {reasoning_families:?} {effort:?}");
    let mut parts = text.split("Place { ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('}').map_or("", |(_, rest)| rest))
}

/// Splits every configuration below a folder, in memory; status 1 when the routes of one differ.
pub(super) fn verify_all(folder: &Path) -> anyhow::Result<ExitCode> {
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path().join("config.yaml"));
    let mut all: Vec<PathBuf> = below.filter(|path| path.exists()).collect();
    all.sort();
    if all.is_empty() {
        bail!(
            "no recipes: {} holds no */config.yaml (the data is not part of this repository)",
            folder.display()
        );
    }
    let mut same = 0;
    for path in &all {
        let text = fs::read_to_string(path)?;
        let shown = path.display().to_string();
        match take(&text, "imported", &shown).and_then(|imported| same_routes(&text, &imported)) {
            Ok(bundle) => {
                same += 1;
                say(&format!("✓ {shown} {}", bundle.digest));
            }
            Err(fault) => say(&format!("✗ {shown}: {fault:#}")),
        }
    }
    say(&format!("{same} of {} configurations have the same routes as a bound bundle", all.len()));
    Ok(if same == all.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
