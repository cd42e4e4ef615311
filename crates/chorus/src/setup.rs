//! From a command line to an engine: the configuration, the models it needs, the record store.

use crate::cli::Source;
use crate::pull_progress::PullProgress;
use crate::terminal::note;
use anyhow::{Context, bail};
use chorus_engine::{Engine, Env, Limits, LocalModels, Options};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::MiniLm;
use chorus_infer::generator::GeneratorOptions;
use chorus_infer::store::{Catalog, ModelKind, ModelStore};
use chorus_signals::Extractor;
use chorus_spec::{Endpoint, Severity, Spec};
use chorus_store::{RunStore, SqliteRunStore};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The encoder of learned signals.
const ENCODER: &str = "all-minilm-l6-v2";
/// The model that must always work.
const SMALLEST: &str = "smollm2-135m-instruct";
/// The stronger one of the built-in configuration.
const STRONGER: &str = "qwen2.5-coder-0.5b-instruct";
/// Used by the built-in configuration once it has been pulled.
const STRONGEST: &str = "qwen2.5-coder-1.5b-instruct";

const SOLO: &str = include_str!("../defaults/solo.yaml");
const DUO: &str = include_str!("../defaults/duo.yaml");
const TRIO: &str = include_str!("../defaults/trio.yaml");

/// The model store of this user.
pub(crate) fn model_store(dir: Option<PathBuf>) -> anyhow::Result<ModelStore> {
    let default = || ModelStore::default_dir(|name| std::env::var_os(name));
    let dir = dir.or_else(default).context("no folder for models: set --models-dir (or HOME)")?;
    Ok(ModelStore::open(dir, Catalog::builtin()))
}

/// The record store of this user, made if it is not there.
pub(crate) fn records(file: Option<PathBuf>) -> anyhow::Result<SqliteRunStore> {
    let path = runs_file(file)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(SqliteRunStore::open(&path)?)
}

/// The record store of this user, for reading.
pub(crate) fn existing_records(file: Option<PathBuf>) -> anyhow::Result<SqliteRunStore> {
    let path = runs_file(file)?;
    if !path.exists() {
        bail!("there are no run records at {}; `chorus serve` and `chorus ask` write them", path.display());
    }
    Ok(SqliteRunStore::open(&path)?)
}

fn runs_file(file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = || set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let default = || state().map(|state| state.join("chorus/runs.sqlite"));
    file.or_else(default).context("no place for run records: set --runs-file (or HOME)")
}

/// Reads a configuration, or the built-in one that fits the models which can be had.
pub(crate) async fn spec(file: Option<&Path>, source: &Source) -> anyhow::Result<Spec> {
    match file {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            checked(&file.display().to_string(), &text)
        }
        None => {
            let text = builtin(source).await?;
            chorus_spec::read(text).spec.context("the built-in configuration does not load")
        }
    }
}

fn checked(name: &str, text: &str) -> anyhow::Result<Spec> {
    let checked = chorus_spec::read(text);
    let errors = checked.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    for diagnostic in &checked.diagnostics {
        if errors == 0 || diagnostic.severity == Severity::Error {
            note(&diagnostic.render(name, text));
        }
    }
    checked.spec.with_context(|| format!("{name} does not load: {errors} error(s), see above"))
}

async fn builtin(source: &Source) -> anyhow::Result<&'static str> {
    pull(source, SMALLEST).await?;
    if source.small {
        return Ok(SOLO);
    }
    if let Err(why) = pull(source, STRONGER).await {
        note(&format!(
            "a second model could not be had, so {SMALLEST} answers as a panel of itself: {why:#}"
        ));
        return Ok(SOLO);
    }
    let store = model_store(source.models_dir.clone())?;
    let third = store.list().into_iter().any(|model| model.id == STRONGEST && model.present);
    Ok(if third { TRIO } else { DUO })
}

/// Makes an engine of a configuration: pulls and loads what it needs, opens the records.
pub(crate) async fn engine(spec: Spec, source: &Source) -> anyhow::Result<Engine> {
    let records = records(source.runs_file.clone())?;
    engine_with(spec, source, Some(Arc::new(records))).await
}

/// [`engine`] with that record store, or none.
pub(crate) async fn engine_with(
    spec: Spec,
    source: &Source,
    records: Option<Arc<dyn RunStore>>,
) -> anyhow::Result<Engine> {
    let needs_encoder = spec.recipes.iter().any(Extractor::needs_encoder);
    let encoder = if needs_encoder { Some(encoder(source).await?) } else { None };
    let names = local_names(&spec);
    for name in &names {
        pull(source, name).await?;
    }
    let local = local_models(source, names)?;
    let env = Env::of(|name| std::env::var(name).ok());
    let max_time = spec.listeners.first().and_then(|l| l.timeout).unwrap_or(spec.global.looper_timeout);
    let limits = Limits { max_time, ..Limits::default() };
    let options = Options { env, encoder, local, records, limits };
    // Prototype banks are embedded here: seconds of work, not for the runtime's own threads.
    let engine = tokio::task::spawn_blocking(move || Engine::new(spec, options)).await??;
    Ok(engine)
}

/// The encoder, pulled and loaded.
pub(crate) async fn encoder(source: &Source) -> anyhow::Result<Arc<dyn TextEncoder>> {
    pull(source, ENCODER).await?;
    let store = model_store(source.models_dir.clone())?;
    let file = |name: &str| store.path(ENCODER, name).with_context(|| format!("{ENCODER} has no {name}"));
    let (weights, tokenizer) = (file("model.safetensors")?, file("tokenizer.json")?);
    let cache = weights.parent().map(Path::to_path_buf).unwrap_or_default();
    let loaded = tokio::task::spawn_blocking(move || MiniLm::load(&weights, &tokenizer, &cache)).await??;
    Ok(Arc::new(loaded))
}

fn local_names(spec: &Spec) -> BTreeSet<String> {
    let backends = spec.models.values().flat_map(|model| &model.backends);
    let names = backends.filter_map(|backend| match &backend.endpoint {
        Endpoint::Local { model } => Some(model.clone()),
        Endpoint::Http { .. } => None,
    });
    names.collect()
}

fn local_models(source: &Source, names: BTreeSet<String>) -> anyhow::Result<Option<Arc<LocalModels>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let store = model_store(source.models_dir.clone())?;
    let find = move |name: &str| {
        let entry = store.catalog().get(name).filter(|entry| entry.kind == ModelKind::Generator)?;
        store.path(name, &entry.files.first()?.name)
    };
    Ok(Some(Arc::new(LocalModels::new(names, Box::new(find), GeneratorOptions::default()))))
}

/// Makes sure that a model's files are here.
async fn pull(source: &Source, name: &str) -> anyhow::Result<()> {
    let store = model_store(source.models_dir.clone())?;
    if store.list().iter().any(|model| model.id == name && model.present) {
        return Ok(());
    }
    if source.offline {
        bail!(
            "the model `{name}` is not here, and --offline forbids fetching it; `chorus models pull {name}`"
        );
    }
    let name = name.to_owned();
    let pulled =
        tokio::task::spawn_blocking(move || store.pull(&name, &*PullProgress::of_terminal()).map(|_| ()));
    Ok(pulled.await??)
}
