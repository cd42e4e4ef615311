//! The whole of a checked configuration.

use crate::{
    AdaptationSettings, CacheBackend, CacheStore, Decision, Digest, Endpoint, FlowState, FlowStore,
    KeptWhere, KnowledgeBase, LimitStore, LooperKind, ManagementAuth, MemoryStore, Model, ModelId, Place,
    Plugin, Projections, PrototypeScoring, RateRule, ReasoningFamily, ResponseApi, ResponsesPlace, Secret,
    SelectionSettings, SessionSettings, SessionStore, Signal, Strategy, TokenIssuer, TraceExport,
    VectorStoreSettings,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Headers by which a client may steer plugins whatever the file says. Source: contract §4.4.
const CONTROL_HEADERS: [&str; 4] =
    ["cache-control", "x-vsr-cache-control", "x-vsr-compression-control", "x-disable-router-memory"];

/// A checked v0.3 configuration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Digest of the file's bytes: the identity that run records name.
    pub digest: Digest,
    /// Where the data plane listens; empty means the command line's default.
    pub listeners: Vec<Listener>,
    /// Logical models by name.
    pub models: BTreeMap<ModelId, Model>,
    /// Answers what no decision claims.
    pub default_model: Option<ModelId>,
    /// Effort when reasoning is on and nobody says which.
    pub default_reasoning_effort: Option<String>,
    /// Reasoning families by name.
    pub reasoning_families: BTreeMap<String, ReasoningFamily>,
    /// Recipes; the first is `default` (the top-level `routing`).
    pub recipes: Vec<Recipe>,
    /// Names that lead to a recipe.
    pub entrypoints: Vec<Entrypoint>,
    /// The rest.
    pub global: Global,
}

impl Spec {
    /// The recipe of that name.
    #[must_use]
    pub fn recipe(&self, name: &str) -> Option<&Recipe> {
        self.recipes.iter().find(|r| r.name == name)
    }

    /// The headers, in lower case, by which a client may steer plugins of this file: the fixed ones, and those that
    /// routes name.
    #[must_use]
    pub fn control_headers(&self) -> BTreeSet<String> {
        let plugins = self.recipes.iter().flat_map(|r| &r.decisions).flat_map(|d| &d.plugins);
        let named = plugins.filter_map(|plugin| match plugin {
            Plugin::ResponseCache(it) => Some(it.controls.header.clone()),
            _ => None,
        });
        CONTROL_HEADERS.into_iter().map(str::to_owned).chain(named).collect()
    }

    /// Every environment variable that the file reads, sorted by name.
    ///
    /// It lists names and looks nothing up: who has an environment says which of them are unset (case H03).
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        let mut found: BTreeMap<String, Variable> = BTreeMap::new();
        let mut note = |names: Vec<(&str, bool)>, is_secret: bool| {
            for (name, has_default) in names {
                let it = found.entry(name.to_owned()).or_insert_with(|| Variable {
                    name: name.to_owned(),
                    is_required: false,
                    is_secret: false,
                });
                it.is_required |= !has_default;
                it.is_secret |= is_secret;
            }
        };
        for backend in self.models.values().flat_map(|model| &model.backends) {
            if let Endpoint::Http { base_url, api_key, extra_headers, access, .. } = &backend.endpoint {
                note(base_url.variables(), false);
                access.proxy.iter().for_each(|proxy| note(proxy.variables(), true));
                extra_headers.values().for_each(|value| note(value.variables(), false));
                api_key.iter().for_each(|key| note(key.variables(), true));
            }
        }
        if let FlowStore::Redis(redis) = &self.global.flow_state.store {
            redis.password.iter().for_each(|password| note(password.variables(), true));
        }
        if let LimitStore::Redis { server, .. } = &self.global.limit_store {
            server.password.iter().for_each(|password| note(password.variables(), true));
        }
        if let Some(store) = &self.global.session_store {
            store.place.password.iter().for_each(|password| note(password.variables(), true));
        }
        let KeptWhere { records, keys, .. } = &self.global.kept_where;
        let of_records = records.as_ref().and_then(|server| server.password());
        let of_keys = keys.as_ref().and_then(|server| server.password.as_ref());
        for password in of_records.into_iter().chain(of_keys) {
            note(password.variables(), true);
        }
        if let ResponsesPlace::Redis(redis) = &self.global.response_api.place {
            redis.password.iter().for_each(|password| note(password.variables(), true));
        }
        self.global.plugin_store_secrets().for_each(|secret| note(secret.variables(), true));
        let tokens = self.global.management_auth.iter().flat_map(|auth| &auth.tokens);
        tokens.for_each(|(token, _)| note(token.variables(), true));
        for plugin in self.recipes.iter().flat_map(|r| &r.decisions).flat_map(|d| &d.plugins) {
            match plugin {
                Plugin::HeaderMutation(it) => {
                    it.add.iter().chain(&it.update).for_each(|(_, value)| note(value.variables(), false));
                }
                Plugin::Rag(it) => it.backend.variables(&mut note),
                Plugin::ImageGen(it) => it.variables(&mut note),
                _ => {}
            }
        }
        found.into_values().collect()
    }
}

/// An environment variable that a file reads.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether some place that names it has no default.
    pub is_required: bool,
    /// Whether it holds a credential.
    pub is_secret: bool,
}

/// One place where the data plane listens.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// IP address as written.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// Longest time of one request.
    pub timeout: Option<Duration>,
}

/// The name of the recipe whose routing stands at the root of a file.
pub const DEFAULT_RECIPE: &str = "default";

/// One routing policy.
#[derive(Debug, Default, Clone)]
pub struct Recipe {
    /// Its name; `default` for the top-level one.
    pub name: String,
    /// For people.
    pub description: String,
    /// How the winner is chosen.
    pub strategy: Strategy,
    /// What can be asked about a request.
    pub signals: Vec<Signal>,
    /// Evidence combined.
    pub projections: Projections,
    /// Routes.
    pub decisions: Vec<Decision>,
}

/// Model names that lead to a recipe.
#[derive(Debug, Clone)]
pub struct Entrypoint {
    /// The names.
    pub model_names: Vec<String>,
    /// The recipe.
    pub recipe: String,
    /// Where it was written.
    pub place: Place,
}

/// What `global` says, as far as this version runs it; defaults filled.
#[derive(Debug, Clone)]
pub struct Global {
    /// Names that lead to the default recipe (`MoM`, `vllm-sr/auto` and `global.router.auto_model_names`).
    pub auto_names: Vec<String>,
    /// Names that lead to Fusion decisions only (`vllm-sr/fusion`, `openrouter/fusion` unless configured).
    pub fusion_names: Vec<String>,
    /// Names that lead to `ReMoM` decisions only (`vllm-sr/remom` unless configured).
    pub remom_names: Vec<String>,
    /// Names that lead to Workflows decisions only (`vllm-sr/flow` unless configured).
    pub flow_names: Vec<String>,
    /// Where runs wait that have handed tool calls to the client.
    pub flow_state: FlowState,
    /// What the Responses door keeps.
    pub response_api: ResponseApi,
    /// Whether `GET /v1/models` lists concrete models too.
    pub include_config_models_in_list: bool,
    /// Longest time of one looper call (`integrations.looper.timeout_seconds`).
    pub looper_timeout: Duration,
    /// Prototype scoring of embedding signals.
    pub embedding_prototypes: PrototypeScoring,
    /// Embedding rules that stay matched, best first; 0 is all.
    pub embedding_top_k: usize,
    /// Least similarity of a soft match; `None` turns soft matching off.
    pub embedding_soft_threshold: Option<f64>,
    /// Prototype scoring of complexity signals.
    pub complexity_prototypes: PrototypeScoring,
    /// Least probability of a domain.
    pub domain_threshold: f64,
    /// Least score of an attempt to take over the model, where a rule names none (`modules.prompt_guard`).
    pub prompt_guard_threshold: f64,
    /// Least confidence of a personal datum, where a rule names none (`modules.classifier.pii`).
    pub pii_threshold: f64,
    /// Least probability that a claim needs checking (`modules.hallucination_mitigation.fact_check`).
    pub fact_check_threshold: f64,
    /// Least probability of a kind of feedback (`modules.feedback_detector`).
    pub feedback_threshold: f64,
    /// How the wanted modality is told (`modules.modality_detector`).
    pub modality_method: ModalityMethod,
    /// Knowledge bases: the built-in ones, then those of the file; one of the file replaces a built-in of its name.
    pub knowledge_bases: Vec<KnowledgeBase>,
    /// Which encoder learned signals share (`embedding_config.model_type`, as written); `None` is the default one.
    pub encoder: Option<String>,
    /// What selectors of decisions fall back on.
    pub selection: SelectionSettings,
    /// When a running conversation keeps its model.
    pub sessions: SessionSettings,
    /// Where what is known of conversations is kept; `None` is the memory of each process.
    pub session_store: Option<Box<SessionStore>>,
    /// Whether verdicts on past runs move the choice among candidates.
    pub adaptation: AdaptationSettings,
    /// Who a caller is.
    pub identity: Identity,
    /// Where the management plane listens.
    pub management_address: String,
    /// Its port.
    pub management_port: u16,
    /// Who may use it; `None` is whoever reaches it.
    pub management_auth: Option<ManagementAuth>,
    /// How much callers may do.
    pub rate_limits: Vec<RateRule>,
    /// Where that is counted.
    pub limit_store: LimitStore,
    /// Where run records, outcomes and API keys are kept.
    pub kept_where: KeptWhere,
    /// Whose tokens say who a caller is.
    pub token_issuers: Vec<TokenIssuer>,
    /// Where traces go; `None` is nowhere.
    pub tracing: Option<TraceExport>,
    /// What is remembered of callers, where a route does not say otherwise.
    pub memory: MemoryStore,
    /// Files and vector stores of this process.
    pub vector_store: VectorStoreSettings,
    /// Where answers are kept for requests like theirs.
    pub response_cache: CacheStore,
}

impl Global {
    /// Which looper's decisions a public name leads to.
    #[must_use]
    pub fn looper_of(&self, name: &str) -> Option<LooperKind> {
        let slugs = [
            (&self.fusion_names, LooperKind::Fusion),
            (&self.remom_names, LooperKind::ReMoM),
            (&self.flow_names, LooperKind::Workflows),
        ];
        slugs.into_iter().find(|(names, _)| names.iter().any(|n| n == name)).map(|(_, kind)| kind)
    }
}

/// How the wanted modality is told.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ModalityMethod {
    /// By the trained head.
    #[default]
    Classifier,
    /// By words.
    Keyword,
    /// By words, and by the head where they say nothing.
    Hybrid,
}

/// Who a caller is: which headers say so, and whether they are believed (`services.authz`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Header with the user's id, in lower case; default `x-authz-user-id`.
    pub user_id_header: String,
    /// Header with the user's groups, separated by commas, in lower case; default `x-authz-user-groups`.
    pub user_groups_header: String,
    /// Whether a proxy in front sets these headers and strips a client's own: the file names them, or declares a
    /// provider `header-injection`. Otherwise no header is identity.
    pub trusted: bool,
    /// Whether a request without identity goes on without roles; else its roles are absent.
    pub fail_open: bool,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            user_id_header: "x-authz-user-id".to_owned(),
            user_groups_header: "x-authz-user-groups".to_owned(),
            trusted: false,
            fail_open: false,
        }
    }
}

impl Global {
    /// Credentials of the servers where plugins keep what they keep.
    fn plugin_store_secrets(&self) -> impl Iterator<Item = &Secret> {
        let cache = match &self.response_cache.backend {
            CacheBackend::Server(server) => server.place.password.as_ref(),
            CacheBackend::Qdrant(place) => place.api_key.as_ref(),
            CacheBackend::Memory => None,
        };
        let qdrant = [&self.memory.server, &self.vector_store.server];
        let found = self.memory.cache.as_ref().and_then(|it| it.place.password.as_ref());
        cache
            .into_iter()
            .chain(found)
            .chain(qdrant.into_iter().flatten().filter_map(|place| place.api_key.as_ref()))
    }
}

impl Default for Global {
    fn default() -> Self {
        Self {
            auto_names: vec!["MoM".to_owned(), "vllm-sr/auto".to_owned()],
            fusion_names: vec!["vllm-sr/fusion".to_owned(), "openrouter/fusion".to_owned()],
            remom_names: vec!["vllm-sr/remom".to_owned()],
            flow_names: vec!["vllm-sr/flow".to_owned()],
            flow_state: FlowState::default(),
            response_api: ResponseApi::default(),
            include_config_models_in_list: false,
            looper_timeout: Duration::from_secs(1200),
            embedding_prototypes: PrototypeScoring::default(),
            embedding_top_k: 1,
            embedding_soft_threshold: Some(0.5),
            complexity_prototypes: PrototypeScoring::default(),
            domain_threshold: 0.5,
            prompt_guard_threshold: 0.7,
            pii_threshold: 0.9,
            fact_check_threshold: 0.6,
            feedback_threshold: 0.7,
            modality_method: ModalityMethod::default(),
            knowledge_bases: Vec::new(),
            encoder: None,
            selection: SelectionSettings::default(),
            adaptation: AdaptationSettings::default(),
            sessions: SessionSettings::default(),
            session_store: None,
            identity: Identity::default(),
            management_address: "127.0.0.1".to_owned(),
            management_port: 8080,
            management_auth: None,
            rate_limits: Vec::new(),
            limit_store: LimitStore::default(),
            kept_where: KeptWhere::default(),
            token_issuers: Vec::new(),
            tracing: None,
            memory: MemoryStore::default(),
            vector_store: VectorStoreSettings::default(),
            response_cache: CacheStore::default(),
        }
    }
}
