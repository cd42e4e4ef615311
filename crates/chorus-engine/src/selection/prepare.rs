//! The selectors of a configuration, prepared once.
//!
//! Artifacts are read from where the configuration says; cards' descriptions are encoded. **Invariant:** an artifact that
//! does not fit its decision keeps the configuration from being served (case D20).

use super::board::Board;
use super::conversations::Conversations;
use super::experience::Experience;
use super::fault::SelectorFault;
use super::sessions::Sessions;
use crate::env::Env;
use crate::meters::Meters;
use crate::states::StatesFault;
use chorus_infer::TextEncoder;
use chorus_select::{EncoderIdentity, Needs, Selector, Supply};
use chorus_signals::{Calibration, Folders};
use chorus_spec::{
    Algorithm, Decision, Model, ModelId, OnError, SelectorMethod, SelectorSettings, SessionStore, Spec,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What selection needs of a configuration.
pub(crate) struct Selection {
    /// By recipe and decision.
    ready: BTreeMap<(usize, usize), Ready>,
    pub(crate) encoder: Option<Arc<dyn TextEncoder>>,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) calibration: Calibration,
    pub(crate) board: Arc<Board>,
    pub(crate) experience: Arc<Experience>,
    pub(crate) sessions: Conversations,
}

/// One decision's selector.
pub(crate) struct Ready {
    /// `None` where something else than arithmetic chooses, or nothing was learnt.
    pub(crate) selector: Option<Box<dyn Selector>>,
    pub(crate) needs: Needs,
    pub(crate) on_error: OnError,
    /// Vectors of the candidates' descriptions.
    pub(crate) cards: BTreeMap<ModelId, Vec<f32>>,
    /// Who is asked, where a model chooses.
    pub(crate) prompt: Option<chorus_spec::PromptSettings>,
}

/// What the selectors of all configurations of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) board: Arc<Board>,
    pub(crate) experience: Arc<Experience>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) gate: Arc<Semaphore>,
}

impl Selection {
    /// Prepares every decision's selector.
    ///
    /// # Errors
    /// [`SelectorFault`], of the first that cannot be prepared.
    pub(crate) fn prepare(
        spec: &Spec,
        encoder: Option<Arc<dyn TextEncoder>>,
        folders: &Folders,
        shared: Shared,
    ) -> Result<Self, SelectorFault> {
        let mut ready = BTreeMap::new();
        for (at, recipe) in spec.recipes.iter().enumerate() {
            for (row, decision) in recipe.decisions.iter().enumerate() {
                let Algorithm::Selector(settings) = &decision.algorithm else { continue };
                let prepared = prepared(spec, decision, settings, encoder.as_deref(), folders);
                let prepared = prepared.map_err(|fault| SelectorFault {
                    recipe: recipe.name.clone(),
                    decision: decision.name.clone(),
                    kind: settings.method.as_str(),
                    fault,
                })?;
                ready.insert((at, row), prepared);
            }
        }
        let calibration = encoder.as_deref().map(Calibration::of).unwrap_or_default();
        let Shared { board, experience, sessions, gate } = shared;
        let sessions = Conversations::here(sessions);
        Ok(Self { ready, encoder, gate, calibration, board, experience, sessions })
    }

    /// The same, whose conversations are shared where the configuration says so.
    ///
    /// # Errors
    /// [`StatesFault`].
    pub(crate) fn sharing(
        self,
        store: Option<&SessionStore>,
        env: &Env,
        meters: &Arc<Meters>,
    ) -> Result<Self, StatesFault> {
        Ok(Self { sessions: self.sessions.shared_in(store, env, meters)?, ..self })
    }

    pub(crate) fn of(&self, recipe: usize, decision: usize) -> Option<&Ready> {
        self.ready.get(&(recipe, decision))
    }

    /// Whether a decision has a model choose.
    pub(crate) fn asks_models(&self) -> bool {
        self.ready.values().any(|ready| ready.prompt.is_some())
    }
}

fn prepared(
    spec: &Spec,
    decision: &Decision,
    settings: &SelectorSettings,
    encoder: Option<&dyn TextEncoder>,
    folders: &Folders,
) -> Result<Ready, chorus_select::ArtifactFault> {
    let pool: Vec<&str> = decision.model_refs.iter().map(|it| it.model.as_str()).collect();
    let supply = Supply {
        read: &|path| folders.read(path),
        encoder: encoder.map(|it| EncoderIdentity { digest: it.digest(), dimension: it.dimension() }),
        pool: &pool,
        ratings_path: spec.global.selection.elo_path.as_deref(),
    };
    let selector = chorus_select::prepare(&settings.method, supply)?;
    let needs = selector.as_ref().map(|it| it.needs()).unwrap_or_default();
    let prompt = match &settings.method {
        SelectorMethod::Prompt(it) => Some(it.clone()),
        _ => None,
    };
    let cards = encoder.filter(|_| needs.similarity).map(|it| cards(spec, decision, it, needs));
    Ok(Ready { selector, needs, on_error: settings.on_error, cards: cards.unwrap_or_default(), prompt })
}

/// Vectors of the descriptions; a card that cannot be encoded has none.
fn cards(
    spec: &Spec,
    decision: &Decision,
    encoder: &dyn TextEncoder,
    needs: Needs,
) -> BTreeMap<ModelId, Vec<f32>> {
    let models = decision.model_refs.iter().filter_map(|it| spec.models.get(&it.model));
    let described = models.filter_map(|model| Some((model.id.clone(), description(model, needs)?)));
    let encoded = described.filter_map(|(id, text)| {
        let vector = encoder.encode_examples(&[&text]).ok()?.into_iter().next()?;
        Some((id, vector))
    });
    encoded.collect()
}

fn description(model: &Model, needs: Needs) -> Option<String> {
    let text = model.card.description.trim();
    let abilities = model.card.capabilities.join(", ");
    match (text.is_empty(), needs.capabilities && !abilities.is_empty()) {
        (false, true) => Some(format!("{text} {abilities}")),
        (false, false) => Some(text.to_owned()),
        (true, true) => Some(abilities),
        (true, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(candidates: &str) -> Spec {
        let file = format!(
            "version: v0.3\nproviders:\n  models:\n    - {{ name: a, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n    \
             - {{ name: b, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n    \
             - {{ name: c, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n\
             routing:\n  modelCards: [{{ name: a }}, {{ name: b }}, {{ name: c }}]\n  decisions:\n    - name: d\n      \
             modelRefs: [{candidates}]\n      algorithm: {{ type: elo, elo: {{ pretrained_path: ratings.json }} }}\n"
        );
        let checked = chorus_spec::read(&file);
        checked.spec.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
    }

    fn prepared_in(folder: Option<&std::path::Path>, candidates: &str) -> Result<Selection, SelectorFault> {
        let folders = Folders { config: folder.map(std::path::Path::to_owned), knowledge: None };
        let shared = Shared {
            board: Arc::default(),
            experience: Arc::default(),
            sessions: Arc::default(),
            gate: Arc::new(Semaphore::new(1)),
        };
        Selection::prepare(&spec(candidates), None, &folders, shared)
    }

    #[test]
    fn d20_ratings_of_another_pool_keep_the_configuration_from_being_served() {
        let folder = tempfile::tempdir().unwrap();
        let rating = r#"{ "rating": 1500.0, "comparisons": 20, "wins": 10, "losses": 10 }"#;
        let ratings = format!(
            r#"{{ "format": "chorus-selector", "version": 1, "algorithm": "elo", "data": "sha256:x",
                 "ratings": {{ "a": {rating}, "b": {rating} }} }}"#
        );
        std::fs::write(folder.path().join("ratings.json"), ratings).unwrap();
        assert!(prepared_in(Some(folder.path()), "{ model: a }, { model: b }").is_ok());
        let refused = prepared_in(Some(folder.path()), "{ model: a }, { model: c }").err().unwrap();
        let text = refused.to_string();
        assert!(
            text.contains("decision `d`") && text.contains("knows `a`, `b`, and not the candidate(s) `c`"),
            "{text}"
        );
        assert!(prepared_in(None, "{ model: a }").is_err(), "a file that is nowhere");
    }
}
