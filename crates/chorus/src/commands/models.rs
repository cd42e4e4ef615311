//! `chorus models list|pull|rm`: the local model files.

use crate::cli::Models;
use crate::pull_progress::PullProgress;
use crate::setup::model_store;
use crate::terminal::{note, say, table};
use anyhow::bail;
use serde_json::json;
use std::process::ExitCode;

/// Lists, pulls or removes.
pub(crate) async fn run(command: Models) -> anyhow::Result<ExitCode> {
    match command {
        Models::List { json, models_dir } => {
            let store = model_store(models_dir)?;
            say(&if json { as_json(&store)? } else { as_table(&store) });
        }
        Models::Pull { names, models_dir } => {
            for name in names {
                let store = model_store(models_dir.clone())?;
                known(&store, &name)?;
                let pull = move || store.pull(&name, &*PullProgress::of_terminal());
                for path in tokio::task::spawn_blocking(pull).await?? {
                    note(&format!("{} is here", path.display()));
                }
            }
        }
        Models::Rm { names, models_dir } => {
            let store = model_store(models_dir)?;
            for name in names {
                known(&store, &name)?;
                store.remove(&name)?;
                note(&format!("{name} is removed"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn known(store: &chorus_infer::store::ModelStore, name: &str) -> anyhow::Result<()> {
    if store.catalog().get(name).is_none() {
        bail!("no model is named `{name}`; `chorus models list` shows the known ones");
    }
    Ok(())
}

fn as_table(store: &chorus_infer::store::ModelStore) -> String {
    let mut rows = vec![["model", "kind", "size", "here", "licence", "what it is for"].map(str::to_owned)];
    rows.extend(store.list().into_iter().map(|entry| {
        let known = store.catalog().get(&entry.id);
        [
            entry.id.clone(),
            entry.kind.as_str().to_owned(),
            format!("{} MB", entry.bytes / 1_000_000),
            if entry.present { "yes" } else { "no" }.to_owned(),
            known.map(|k| k.licence.clone()).unwrap_or_default(),
            known.map(|k| k.notes.clone()).unwrap_or_default(),
        ]
    }));
    table(&rows)
}

fn as_json(store: &chorus_infer::store::ModelStore) -> anyhow::Result<String> {
    let models: Vec<serde_json::Value> = store
        .list()
        .into_iter()
        .map(|entry| {
            json!({
                "id": entry.id, "kind": entry.kind.as_str(), "bytes": entry.bytes, "present": entry.present,
                "path": entry.path,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&models)?)
}
