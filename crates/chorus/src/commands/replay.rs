//! `chorus replay ID`: a recorded run executed again from its recorded answers; status 1 where the record is another.

use super::bundle::{BundleShelf, is_bundle};
use crate::cli::{Record, Replay};
use crate::setup;
use crate::stock::Stock;
use crate::stores;
use crate::terminal::{note, say};
use anyhow::{Context, bail};
use chorus_engine::Engine;
use chorus_engine::reload::{Bundles, Offer, Offered};
use chorus_engine::tape::{Difference, Tape, Tapes, differences};
use chorus_spec::Digest;
use chorus_store::{RunId, RunRecord, RunStatus};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Where the content of runs is kept: beside the run records.
pub(crate) fn tapes(runs_file: Option<PathBuf>, record: Record) -> anyhow::Result<Tapes> {
    let folder = setup::versions_folder(runs_file)?.with_file_name("run-content");
    let tapes = Tapes::open(&folder, record == Record::Redacted);
    tapes.with_context(|| format!("the content of runs cannot be kept in {}", folder.display()))
}

/// Executes a run again and compares the records.
pub(crate) async fn run(flags: Replay) -> anyhow::Result<ExitCode> {
    let config = flags.file.as_deref().filter(|file| !is_bundle(file));
    let kept = stores::named(config, flags.source.base.as_deref())?;
    let store = stores::existing_records(&kept, flags.source.runs_file.clone()).await?;
    let id = RunId::parse(&flags.id)
        .with_context(|| format!("`{}` is not a run id (run_ and 32 hex digits)", flags.id))?;
    let Some(was) = store.get(&id).await? else { bail!("there is no run {id}") };
    let tape = tapes(flags.source.runs_file.clone(), Record::Content)?.tape(id.as_str())?;
    if was.status == RunStatus::Cancelled {
        bail!("the client left amid this run: what it would have been given is not known");
    }
    let engine = engine(&flags, &was).await?;
    let (is, strayed) = engine.replay(&tape).await?;
    let found = differences(&was, &is);
    say(&if flags.json {
        as_json(&was, &is, &found, &strayed)?
    } else {
        as_text(&was, &tape, &found, &strayed)
    });
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An engine that calls nobody, of the document that served the run, or of the one that is named.
async fn engine(flags: &Replay, was: &RunRecord) -> anyhow::Result<Engine> {
    let offered = match &flags.file {
        Some(file) => named(flags, file, was).await?,
        None => kept(flags, was)?,
    };
    if Digest::of(offered.text.as_bytes()).as_str() != was.spec_digest {
        note("note: this is another configuration than the one that served the run");
    }
    let checked = chorus_spec::read(&offered.text);
    let first = checked.diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
    let spec = checked.spec.with_context(|| format!("the configuration does not load: {first}"))?;
    let mut options = Stock::new(flags.file.as_deref(), &flags.source).options(&spec).await?;
    if offered.folder.is_some() {
        options.folders.config = offered.folder;
    }
    let made = tokio::task::spawn_blocking(move || Engine::sealed(spec, options, offered.artifact)).await?;
    Ok(made?)
}

/// What a path offers; of a bundle's documents the one that served the run, else the first.
async fn named(flags: &Replay, file: &Path, was: &RunRecord) -> anyhow::Result<Offered> {
    let offer = if is_bundle(file) {
        let assets = setup::versions_folder(flags.source.runs_file.clone())?.with_file_name("bundle-assets");
        Bundles(Arc::new(BundleShelf::new(file, &flags.bound, assets))).0.offer()?
    } else {
        Offer::of(setup::spec_and_text(Some(file), &flags.source).await?.1)
    };
    let served = |it: &&Offered| Digest::of(it.text.as_bytes()).as_str() == was.spec_digest;
    let found = offer.others.iter().find(served).filter(|_| !served(&&offer.first)).cloned();
    Ok(found.unwrap_or(offer.first))
}

/// The configuration of that digest, from the versions that were served.
fn kept(flags: &Replay, was: &RunRecord) -> anyhow::Result<Offered> {
    let folder = setup::versions_folder(flags.source.runs_file.clone())?;
    let files = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let texts = files(&folder).flat_map(|of_file| files(&of_file).collect::<Vec<_>>());
    let mut texts = texts.filter_map(|path| std::fs::read_to_string(path).ok()).chain(setup::builtin_texts());
    let text = texts.find(|text| Digest::of(text.as_bytes()).as_str() == was.spec_digest);
    let text = text.with_context(|| {
        format!(
            "the configuration {} that served this run is not kept here; name a file or a bundle",
            was.spec_digest
        )
    })?;
    Ok(Offer::of(text).first)
}

fn as_json(
    was: &RunRecord,
    is: &RunRecord,
    found: &[Difference],
    strayed: &[String],
) -> anyhow::Result<String> {
    let report = json!({
        "run": was.id, "identical": found.is_empty(), "differences": found, "strayed": strayed, "record": is,
    });
    Ok(serde_json::to_string_pretty(&report)?)
}

fn as_text(was: &RunRecord, tape: &Tape, found: &[Difference], strayed: &[String]) -> String {
    let mut lines = Vec::new();
    if tape.redacted {
        lines.push(
            "personal data was taken out before it was kept: what decides by it may decide otherwise"
                .to_owned(),
        );
    }
    if found.is_empty() {
        let calls = was.calls.len();
        lines
            .push(format!("{}: identical, but for times; {calls} recorded calls, nobody was called", was.id));
    } else {
        lines.push(format!("{}: {} fields differ", was.id, found.len()));
        lines.extend(found.iter().map(|it| format!("  {}: {} → {}", it.path, it.was, it.is)));
    }
    lines.extend(strayed.iter().map(|note| format!("  {note}")));
    lines.join("\n")
}
