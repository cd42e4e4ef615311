//! From a command line to an engine: the configuration, the models it needs, the record store.

use crate::cli::Source;
use crate::policy_file::Policy;
use crate::pull_progress::PullProgress;
use crate::terminal::note;
use anyhow::{Context, bail};
use chorus_engine::{Limits, LocalModels};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::Keeping;
use chorus_infer::generator::GeneratorOptions;
use chorus_infer::store::{Catalog, ModelKind, ModelStore};
use chorus_signals::Folders;
use chorus_spec::{Endpoint, Spec};
use chorus_store::{
    MAX_SPOOL_BYTES, Recall, ResponseLimits, SqliteOutcomes, SqliteResponses, SqliteRunStore,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Where run records wait that a shared place does not take at present: a file beside the run records, of the same name, with
/// so many bytes at most.
pub(crate) fn spool(file: Option<PathBuf>, most_bytes: Option<u64>) -> anyhow::Result<SqliteRunStore> {
    let path = runs_file(file)?.with_extension("waiting.sqlite");
    Ok(SqliteRunStore::open_within(&path, most_bytes.unwrap_or(MAX_SPOOL_BYTES))?)
}

/// The record store of this user, for reading.
pub(crate) fn existing_records(file: Option<PathBuf>) -> anyhow::Result<SqliteRunStore> {
    let path = runs_file(file)?;
    if !path.exists() {
        bail!("there are no run records at {}; `chorus serve` and `chorus ask` write them", path.display());
    }
    Ok(SqliteRunStore::open(&path)?)
}

/// Memories and documents: a file beside the run records, of the same name.
pub(crate) fn recall(file: Option<PathBuf>) -> anyhow::Result<Recall> {
    Ok(Recall::open(&runs_file(file)?.with_extension("recall.sqlite"))?)
}

/// Responses of the Responses door: a file beside the run records, of the same name.
pub(crate) fn responses(file: Option<PathBuf>, limits: ResponseLimits) -> anyhow::Result<SqliteResponses> {
    Ok(SqliteResponses::open(&runs_file(file)?.with_extension("responses.sqlite"), limits)?)
}

/// The store of verdicts on runs: a file beside the run records.
pub(crate) fn outcomes(file: Option<PathBuf>) -> anyhow::Result<SqliteOutcomes> {
    Ok(SqliteOutcomes::open(&runs_file(file)?.with_extension("outcomes.sqlite"))?)
}

/// Where versions of configurations are kept: beside the run records.
pub(crate) fn versions_folder(file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    Ok(runs_file(file)?.with_file_name("config-versions"))
}

/// Where API keys are kept: beside the run records.
pub(crate) fn keys_file(file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let path = match file {
        Some(path) => path,
        None => runs_file(None)?.with_file_name("keys.sqlite"),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(path)
}

fn runs_file(file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = || set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let default = || state().map(|state| state.join("chorus/runs.sqlite"));
    file.or_else(default).context("no place for run records: set --runs-file (or HOME)")
}

/// Reads a configuration, or the built-in one that fits the models which can be had.
pub(crate) async fn spec(file: Option<&Path>, source: &Source) -> anyhow::Result<Spec> {
    Ok(spec_and_text(file, source).await?.0)
}

/// [`spec`], and the v0.3 text that it was read from: of a policy, what it compiles to.
pub(crate) async fn spec_and_text(file: Option<&Path>, source: &Source) -> anyhow::Result<(Spec, String)> {
    match file {
        Some(file) => {
            let policy = Policy::read(file, source.base.as_deref())?;
            Ok((policy.spec()?.clone(), policy.yaml))
        }
        None if source.base.is_some() => bail!("--base is for a policy (`.dsl`), and none is named"),
        None => {
            let text = builtin(source).await?;
            let spec = chorus_spec::read(text).spec.context("the built-in configuration does not load")?;
            Ok((spec, text.to_owned()))
        }
    }
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

/// The texts of the built-in configurations.
pub(crate) fn builtin_texts() -> impl Iterator<Item = String> {
    [SOLO, DUO, TRIO].into_iter().map(str::to_owned)
}

/// Where files are looked for that the configuration names: from its folder upwards. A policy's base says where they
/// are as well as the policy does, so a policy with a base is looked up beside the base.
pub(crate) fn folders(file: Option<&Path>, base: Option<&Path>, knowledge: Option<&Path>) -> Folders {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let config = base.or(file).and_then(absolute).and_then(|file| file.parent().map(Path::to_path_buf));
    Folders { config, knowledge: knowledge.and_then(absolute) }
}

/// What one request of a configuration may spend.
pub(crate) fn limits(spec: &Spec) -> Limits {
    let max_time = spec.listeners.first().and_then(|l| l.timeout).unwrap_or(spec.global.looper_timeout);
    Limits { max_time, ..Limits::default() }
}

/// The encoder of that name in the catalog, pulled and loaded; it keeps the vectors of policies' examples beside its
/// files.
pub(crate) async fn encoder_named(
    source: &Source,
    name: &'static str,
) -> anyhow::Result<Arc<dyn TextEncoder>> {
    pull(source, name).await?;
    let store = model_store(source.models_dir.clone())?;
    let banks = store.folder(name).join("banks");
    let loaded = tokio::task::spawn_blocking(move || chorus_infer::encoder::open(&store, name)).await??;
    Ok(Arc::new(Keeping::new(Arc::new(loaded), banks)))
}

/// The local models that a configuration names.
pub(crate) fn local_names(spec: &Spec) -> BTreeSet<String> {
    let backends = spec.models.values().flat_map(|model| &model.backends);
    let names = backends.filter_map(|backend| match &backend.endpoint {
        Endpoint::Local { model } => Some(model.clone()),
        Endpoint::Http { .. } => None,
    });
    names.collect()
}

/// Models of those names, loaded when they are first used.
pub(crate) fn local_models(source: &Source, names: BTreeSet<String>) -> anyhow::Result<LocalModels> {
    let store = model_store(source.models_dir.clone())?;
    let find = move |name: &str| {
        let entry = store.catalog().get(name).filter(|entry| entry.kind == ModelKind::Generator)?;
        store.path(name, &entry.files.first()?.name)
    };
    Ok(LocalModels::new(names, Box::new(find), GeneratorOptions::default()))
}

/// Makes sure that a model's files are here.
pub(crate) async fn pull(source: &Source, name: &str) -> anyhow::Result<()> {
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
