//! The artifact on the command line: built, verified, compared, locked, placed, signed, pushed and pulled.
//!
//! One function a verb; what a bundle is, `chorus_bundle` knows. **Invariant:** a verb that refuses something says its
//! code, writes nothing, and ends with status 1.

mod bound;
mod builtin;
mod disk;
mod import;
mod lock;
mod place;
mod probe;
mod registry;
mod scaffold;
mod seal;
mod shelf;
mod vectors;

pub(crate) use shelf::{BundleShelf, is_bundle};

use crate::cli::Artifact;
use crate::terminal::{note, say, table};
use anyhow::{Context, bail};
use chorus_bundle::calibration::{self, Footing, SAFE};
use chorus_bundle::{Bundle, diff};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the verb that was asked for.
pub(crate) async fn run(verb: Artifact) -> anyhow::Result<ExitCode> {
    match verb {
        Artifact::New { dir, family } => scaffold::run(&dir, family.as_deref()),
        Artifact::Build { dir, out, check } => build(&dir, out, check),
        Artifact::Inspect { bundle, json, graph } => inspect(&bundle, json, graph),
        Artifact::Verify { bundle, digest, policy, json } => {
            verify(&bundle, digest.as_deref(), policy.as_deref(), json)
        }
        Artifact::Diff { before, after, json } => compare(&before, &after, json),
        Artifact::Save { bundle, file } => save(&bundle, &file),
        Artifact::Load { file, dir } => load(&file, &dir),
        Artifact::Keygen { file } => seal::keygen(&file),
        Artifact::Sign(flags) => seal::sign(&flags),
        Artifact::Lock(flags) => lock::run(&flags),
        Artifact::Place(flags) => place::run(&flags),
        Artifact::Push { bundle, name, tags, remote } => registry::push(&bundle, &name, tags, &remote).await,
        Artifact::Pull { name, dir, policy, remote } => {
            registry::pull(&name, &dir, policy.as_deref(), &remote).await
        }
        Artifact::Tag { name, tag, remote } => registry::tag(&name, &tag, &remote).await,
        Artifact::Tags { name, remote } => registry::tags(&name, &remote).await,
        Artifact::Import { from, dir, family } => import::run(&from, &dir, family.as_deref()),
        Artifact::ImportVerify { folder } => import::verify_all(&folder),
        Artifact::CanonicalVectors { folder } => vectors::run(&folder),
    }
}

fn build(dir: &Path, out: Option<PathBuf>, check: bool) -> anyhow::Result<ExitCode> {
    let bundle = disk::open(dir)?;
    let name = format!("{} {}", bundle.mom.family, bundle.mom.version);
    if check {
        say(&format!("{name} builds: {}", bundle.digest));
        return Ok(ExitCode::SUCCESS);
    }
    let out = match out {
        Some(out) => out,
        None => beside(dir)?,
    };
    if out.extension().is_some_and(|it| it == "tar") {
        disk::write_archive(&bundle, &[], &out)?;
    } else {
        disk::write_layout(&bundle, &[], &out)?;
    }
    say(&format!("{name} → {}\n{}", out.display(), bundle.digest));
    Ok(ExitCode::SUCCESS)
}

/// The source's name with `.bundle`, beside it.
fn beside(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = dir.canonicalize().with_context(|| format!("cannot find {}", dir.display()))?;
    let name = whole.file_name().context("the source directory has no name; say where with --out")?;
    Ok(whole.with_file_name(format!("{}.bundle", name.to_string_lossy())))
}

fn inspect(path: &Path, as_json: bool, graph: bool) -> anyhow::Result<ExitCode> {
    let bundle = disk::open(path)?;
    if graph {
        say(&serde_json::to_string_pretty(&bundle.graph)?);
        return Ok(ExitCode::SUCCESS);
    }
    let summary = bundle.summary();
    if as_json {
        say(&serde_json::to_string_pretty(&summary)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mom = &bundle.mom;
    say(&format!("{} {} ({})\n{}\n", mom.family, mom.version, mom.licence, bundle.digest));
    let mut rows = vec![["component", "kind", "licence", "form"].map(str::to_owned)];
    rows.extend(mom.components.iter().map(|it| {
        let form = it.weights.as_ref().map_or("external reference", |it| it.reference.as_str()).to_owned();
        [
            it.name.clone(),
            it.kind.clone(),
            it.licence.clone().unwrap_or_else(|| "not stated".to_owned()),
            form,
        ]
    }));
    say(&format!("{}\n", table(&rows)));
    if !mom.operating_points.is_empty() {
        let mut rows = vec![["operating point", "recipe", "objective", "fallback"].map(str::to_owned)];
        let row = |it: &chorus_bundle::OperatingPoint| {
            [mom.identity(&it.name), it.recipe.clone(), it.objective.clone(), it.fallback.clone()]
        };
        rows.extend(mom.operating_points.iter().map(row));
        say(&format!("{}\n", table(&rows)));
    }
    for (point, footing) in calibration::footings(mom, &bundle.graph) {
        say(&match footing {
            Footing::Calibrated(it) => format!("{point}: the threshold is calibrated: {it}\n"),
            Footing::SafeSide => {
                format!(
                    "{point}: the threshold is not calibrated; it is served on the safe side, at {SAFE} or above\n"
                )
            }
        });
    }
    let mut rows = vec![["blob", "bytes", "digest"].map(str::to_owned)];
    rows.extend(
        std::iter::once(&bundle.manifest.config).chain(&bundle.manifest.layers).map(|it| {
            [it.title().unwrap_or(&it.media_type).to_owned(), it.size.to_string(), it.digest.clone()]
        }),
    );
    say(&table(&rows));
    Ok(ExitCode::SUCCESS)
}

fn verify(
    path: &Path,
    wanted: Option<&str>,
    policy: Option<&Path>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (digest, mut faults): (Option<String>, Vec<Value>) = match disk::read(path)? {
        Ok(opened) => {
            let distrust = policy.map(|policy| seal::judge(policy, &opened)).transpose()?;
            let told = distrust.into_iter().flatten();
            let faults = told.map(|it| json!({ "code": it.code, "message": it.message })).collect();
            (Some(opened.bundle.digest), faults)
        }
        Err(faults) => {
            let told =
                |it: &chorus_bundle::BundleFault| json!({ "code": it.code(), "message": it.to_string() });
            (None, faults.iter().map(told).collect())
        }
    };
    if let (Some(wanted), Some(found)) = (wanted, &digest)
        && wanted != found
    {
        let message = format!("the bundle is {found}, not {wanted}");
        faults.push(json!({ "code": "bundle-digest", "message": message }));
    }
    let good = faults.is_empty();
    if as_json {
        say(&serde_json::to_string_pretty(&json!({ "ok": good, "digest": digest, "faults": faults }))?);
    } else {
        let text = |it: &Value, key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        faults.iter().for_each(|it| say(&format!("error[{}]: {}", text(it, "code"), text(it, "message"))));
        let verdict = if good { "is whole" } else { "is refused" };
        say(&format!(
            "{} {verdict}{}",
            path.display(),
            digest.map(|it| format!(": {it}")).unwrap_or_default()
        ));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare(before: &Path, after: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let (before, after) = (disk::open(before)?, disk::open(after)?);
    let changes = diff::between(&before, &after);
    if as_json {
        let report = json!({ "before": before.digest, "after": after.digest, "changes": changes });
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        say(&format!("{}\n→ {}", identity(&before), identity(&after)));
        changes.iter().for_each(|it| say(&shown(it)));
        say(&format!("{} change(s)", changes.len()));
    }
    Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn identity(bundle: &Bundle) -> String {
    format!("{} {} {}", bundle.mom.family, bundle.mom.version, bundle.digest)
}

/// One change on one line; long values on lines of their own.
fn shown(change: &diff::Change) -> String {
    const SHORT: usize = 60;
    let value = |it: &Option<Value>| it.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    let (before, after) = (value(&change.before), value(&change.after));
    let head = format!("{}: {}", change.subject.as_str(), change.path);
    match (&change.before, &change.after) {
        (None, _) => format!("+ {head} = {after}"),
        (_, None) => format!("- {head} = {before}"),
        _ if before.len() + after.len() <= SHORT => format!("~ {head}: {before} → {after}"),
        _ => format!("~ {head}\n    - {before}\n    + {after}"),
    }
}

fn save(path: &Path, file: &Path) -> anyhow::Result<ExitCode> {
    let disk::Opened { bundle, attached } = disk::open_with(path)?;
    disk::write_archive(&bundle, &attached, file)?;
    say(&format!("{} → {}", identity(&bundle), file.display()));
    Ok(ExitCode::SUCCESS)
}

fn load(file: &Path, dir: &Path) -> anyhow::Result<ExitCode> {
    if !file.is_file() {
        bail!("{} is not a file", file.display());
    }
    let disk::Opened { bundle, attached } = disk::open_with(file)?;
    disk::write_layout(&bundle, &attached, dir)?;
    note(&format!("unpacked into {}", dir.display()));
    say(&identity(&bundle));
    Ok(ExitCode::SUCCESS)
}
