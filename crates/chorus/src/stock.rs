//! From a configuration to an engine: what it needs besides itself, kept for the next one: the encoder, and local models that are loaded.
//!
//! A configuration that takes another's place finds there what both need, so that a changed rule loads no model again.

use crate::cli::Source;
use crate::huge_pages;
use crate::setup;
use chorus_engine::{Artifact, Engine, Env, LocalModels, Options, Supply};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::{DEFAULT_ENCODER, encoder_for};
use chorus_signals::Extractor;
use chorus_spec::{BudgetSettings, Spec};
use chorus_store::RunStore;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// What configurations need besides themselves.
pub(crate) struct Stock {
    file: Option<PathBuf>,
    source: Source,
    budget: BudgetSettings,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// With its name in the catalog.
    encoder: Option<(&'static str, Arc<dyn TextEncoder>)>,
    local: Option<Arc<LocalModels>>,
}

impl Stock {
    /// An empty one, for configurations at that place.
    pub(crate) fn new(file: Option<&Path>, source: &Source) -> Self {
        let budget = BudgetSettings::default();
        Self { file: file.map(Path::to_path_buf), source: source.clone(), budget, kept: Mutex::default() }
    }

    /// The same, where no request may spend more than that.
    pub(crate) fn bounded_by(self, budget: BudgetSettings) -> Self {
        Self { budget, ..self }
    }

    /// What a configuration needs, pulled and loaded where it is not here; its records go nowhere.
    pub(crate) async fn options(&self, spec: &Spec) -> anyhow::Result<Options> {
        let mut kept = self.kept.lock().await;
        let encoder = if spec.recipes.iter().any(Extractor::needs_encoder)
            || chorus_engine::loopers::needs_encoder(spec)
            || chorus_engine::plugins::needs_encoder(spec)
        {
            let name = spec.global.encoder.as_deref().map_or(DEFAULT_ENCODER, encoder_for);
            let encoder = match kept.encoder.take().filter(|(loaded, _)| *loaded == name) {
                Some((_, encoder)) => encoder,
                None => {
                    huge_pages::take();
                    setup::encoder_named(&self.source, name).await?
                }
            };
            kept.encoder = Some((name, Arc::clone(&encoder)));
            Some(encoder)
        } else {
            None
        };
        let names = setup::local_names(spec);
        if !names.is_empty() {
            huge_pages::take();
        }
        for name in &names {
            setup::pull(&self.source, name).await?;
        }
        let local = match &kept.local {
            Some(local) => local.renamed(names),
            None => setup::local_models(&self.source, names)?,
        };
        let local = Arc::new(local);
        kept.local = Some(Arc::clone(&local));
        Ok(Options {
            env: Env::of(|name| std::env::var(name).ok()),
            encoder,
            local: Some(local),
            records: None,
            limits: setup::limits(spec).lowered_by(&self.budget),
            recall: None,
            folders: setup::folders(
                self.file.as_deref(),
                self.source.base.as_deref(),
                self.source.knowledge.as_deref(),
            ),
        })
    }
}

impl Supply for Stock {
    fn supply<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Options, String>> {
        async move { self.options(spec).await.map_err(|why| format!("{why:#}")) }.boxed()
    }
}

/// Makes an engine of a configuration: pulls and loads what it needs.
pub(crate) async fn engine_with(
    spec: Spec,
    file: Option<&Path>,
    source: &Source,
    records: Option<Arc<dyn RunStore>>,
) -> anyhow::Result<Engine> {
    let options = Stock::new(file, source).options(&spec).await?;
    engine(spec, Options { records, ..options }).await
}

/// Makes an engine of a configuration and what it needs.
pub(crate) async fn engine(spec: Spec, options: Options) -> anyhow::Result<Engine> {
    engine_of(spec, options, Artifact::default()).await
}

/// Makes an engine of the configuration of an artifact.
pub(crate) async fn engine_of(spec: Spec, options: Options, artifact: Artifact) -> anyhow::Result<Engine> {
    // Prototype banks are embedded here: seconds of work, not for the runtime's own threads.
    let engine = tokio::task::spawn_blocking(move || Engine::of(spec, options, artifact)).await??;
    engine.recall().await;
    Ok(engine)
}
