//! Providers: models joined with their cards, and the backends behind them.
//!
//! It knows no network and expands no variable. **Invariant:** every model has at least one backend, and a credential
//! goes from the file into a [`Secret`] without passing through a message.

use super::cursor::Cursor;
use super::deployment;
use super::names::{Reserved, unique};
use super::nearest::suggest;
use super::quantity;
use crate::diagnostic::{code, is_variable, is_variable_name};
use crate::{
    ApiFormat, Backend, Endpoint, Energy, Model, ModelCard, ModelId, Pricing, ReasoningFamily, ReasoningKind,
    Secret, Template,
};
use std::collections::{BTreeMap, BTreeSet};

/// What `providers` and the model cards declare.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) models: BTreeMap<ModelId, Model>,
    /// Names of models that an error keeps out.
    pub(super) refused: BTreeSet<String>,
    pub(super) default_model: Option<ModelId>,
    pub(super) default_reasoning_effort: Option<String>,
    pub(super) reasoning_families: BTreeMap<String, ReasoningFamily>,
}

/// Reads `providers` and `routing.modelCards`.
pub(super) fn read(root: &Cursor<'_>, reserved: &Reserved) -> Declared {
    let mut declared = Declared::default();
    let mut cards = cards(root);
    if let Some(providers) = root.get("providers") {
        if let Some(defaults) = providers.get("defaults") {
            declared.reasoning_families = reasoning_families(&defaults);
            declared.default_reasoning_effort = defaults.string("default_reasoning_effort");
        }
        let mut written = BTreeMap::new();
        for at in providers.items("models") {
            let Some(name) = at.required("name") else { continue };
            check_name(&at, &name, reserved);
            if declared.refused.contains(&name) || declared.models.contains_key(&ModelId::new(name.as_str()))
            {
                unique(&mut BTreeSet::from([name.clone()]), &at, "model", &name);
                continue;
            }
            let card = cards.remove(&name).map(|(_, card)| card).unwrap_or_default();
            match model(&at, &name, card, &declared.reasoning_families) {
                Some(model) => {
                    written.insert(model.id.clone(), at);
                    declared.models.insert(model.id.clone(), model);
                }
                None => drop(declared.refused.insert(name)),
            }
        }
        deployment::check_fallbacks(&declared.models, &written, &declared.refused, reserved);
    }
    report_orphans(&cards, &declared);
    declared.default_model = default_model(root, &declared, reserved);
    declared
}

fn check_name(at: &Cursor<'_>, name: &str, reserved: &Reserved) {
    if reserved.lead(name).is_some() {
        let named = at.get("name").unwrap_or_else(|| at.clone());
        named.error(
            code::NAME_COLLISION,
            format!("`{name}` is an automatic name, a looper or an entrypoint, not a model's"),
        );
    }
}

fn report_orphans(cards: &BTreeMap<String, (Cursor<'_>, ModelCard)>, declared: &Declared) {
    let known: Vec<&str> = declared.models.keys().map(ModelId::as_str).collect();
    for (name, (at, _)) in cards.iter().filter(|(name, _)| !declared.refused.contains(*name)) {
        let help = suggest(name, &known, "declare it under `providers.models`");
        at.error_help(
            code::UNKNOWN_REFERENCE,
            format!("the card `{name}` has no model under `providers.models`"),
            help,
        );
    }
}

fn default_model(root: &Cursor<'_>, declared: &Declared, reserved: &Reserved) -> Option<ModelId> {
    let at = root.dig(&["providers", "defaults", "default_model"])?;
    let id = ModelId::new(at.text()?);
    if reserved.lead(id.as_str()).is_some() {
        at.error(
            code::RECURSION,
            format!(
                "`{id}` answers what no decision claims, so it must be a model: default → `{id}` → default"
            ),
        );
        return None;
    }
    if declared.models.contains_key(&id) {
        return Some(id);
    }
    if !declared.refused.contains(id.as_str()) {
        let known: Vec<&str> = declared.models.keys().map(ModelId::as_str).collect();
        let help = suggest(id.as_str(), &known, "declare it under `providers.models`");
        at.error_help(code::UNKNOWN_REFERENCE, format!("no model is named `{id}`"), help);
    }
    None
}

fn reasoning_families(defaults: &Cursor<'_>) -> BTreeMap<String, ReasoningFamily> {
    const KINDS: [(&str, ReasoningKind); 3] = [
        ("chat_template_kwargs", ReasoningKind::ChatTemplateKwargs),
        ("reasoning_effort", ReasoningKind::ReasoningEffort),
        ("top_level_reasoning_effort", ReasoningKind::TopLevelReasoningEffort),
    ];
    let entries = defaults.get("reasoning_families").map(|at| at.entries()).unwrap_or_default();
    let family = |at: &Cursor<'_>| {
        let kind = at.needed("type").and_then(|_| at.word("type", &KINDS));
        let parameter = at.required("parameter");
        Some(ReasoningFamily { kind: kind?, parameter: parameter? })
    };
    entries.iter().filter_map(|(name, _, at)| Some(((*name).to_owned(), family(at)?))).collect()
}

// Cards

fn cards<'a>(root: &Cursor<'a>) -> BTreeMap<String, (Cursor<'a>, ModelCard)> {
    let mut seen = BTreeSet::new();
    let items = root.get("routing").map(|routing| routing.items("modelCards")).unwrap_or_default();
    let mut cards = BTreeMap::new();
    for at in items {
        let Some(name) = at.required("name") else { continue };
        let card = card(&at);
        if unique(&mut seen, &at, "model card", &name) {
            cards.insert(name, (at, card));
        }
    }
    cards
}

fn card(at: &Cursor<'_>) -> ModelCard {
    const MODALITIES: [&str; 4] = ["ar", "omni", "diffusion", "text"];
    ModelCard {
        context_window_size: at
            .integer_in("context_window_size", 0, i64::from(u32::MAX))
            .and_then(|size| u32::try_from(size).ok())
            .filter(|size| *size > 0),
        description: at.string("description").unwrap_or_default(),
        capabilities: at.strings("capabilities"),
        param_size: at.string("param_size"),
        quality_score: at.float_in("quality_score", 0.0, 1.0),
        modality: at.word("modality", &MODALITIES.map(|word| (word, word))).map(str::to_owned),
        tags: at.strings("tags"),
    }
}

// Models

/// The words of `api_format`.
const FORMATS: [(&str, ApiFormat); 5] = [
    ("openai", ApiFormat::OpenAi),
    ("anthropic", ApiFormat::Anthropic),
    ("azure_openai", ApiFormat::Azure),
    ("gemini", ApiFormat::Gemini),
    ("bedrock", ApiFormat::Bedrock),
];

fn model(
    at: &Cursor<'_>,
    name: &str,
    card: ModelCard,
    families: &BTreeMap<String, ReasoningFamily>,
) -> Option<Model> {
    let api_format = at.word("api_format", &FORMATS).unwrap_or_default();
    let reasoning_family = at.string("reasoning_family");
    if let Some(family) = reasoning_family.as_ref().filter(|family| !families.contains_key(*family)) {
        let known: Vec<&str> = families.keys().map(String::as_str).collect();
        let help = suggest(family, &known, "declare it under `providers.defaults.reasoning_families`");
        let place = at.get("reasoning_family").unwrap_or_else(|| at.clone());
        place.error_help(code::UNKNOWN_REFERENCE, format!("no reasoning family is named `{family}`"), help);
    }
    let written = at.items("backend_refs");
    let mut seen = BTreeSet::new();
    let backends: Vec<Backend> = written
        .iter()
        .enumerate()
        .filter_map(|(index, backend)| self::backend(backend, index, api_format, &mut seen))
        .collect();
    if written.is_empty() {
        let help = "add `backend_refs` with an `endpoint`, a `base_url`, or `type: local`".to_owned();
        at.error_help(code::MISSING_KEY, format!("the model `{name}` has no backend"), help);
    }
    let model = Model {
        id: ModelId::new(name),
        upstream_name: at.string("provider_model_id").unwrap_or_else(|| name.to_owned()),
        api_format,
        reasoning_family,
        pricing: pricing(at),
        energy: energy(at),
        reliability: deployment::reliability(at),
        backends,
        card,
        place: at.place(),
    };
    (!model.backends.is_empty()).then_some(model)
}

fn energy(model: &Cursor<'_>) -> Energy {
    let Some(at) = model.get("energy") else {
        return Energy::default();
    };
    let joules = |key: &str| at.float_in(key, 0.0, f64::MAX).unwrap_or(0.0);
    Energy {
        joules_per_1k_prompt: joules("joules_per_1k_prompt"),
        joules_per_1k_completion: joules("joules_per_1k_completion"),
    }
}

fn pricing(model: &Cursor<'_>) -> Pricing {
    let Some(at) = model.get("pricing") else {
        return Pricing::default();
    };
    if let Some(currency) = at.string("currency").filter(|currency| currency != "USD") {
        at.warn(
            code::NOT_SUPPORTED_YET,
            format!("`currency: {currency}` is known, not supported yet: prices count as dollars"),
        );
    }
    let price = |key: &str| {
        let dollars = at.float(key)?;
        let micro = quantity::micro_usd(dollars);
        if let Some(at) = at.get(key).filter(|_| micro.is_none()) {
            at.error(code::BAD_RANGE, format!("`{key}` is {dollars}; a price is at least 0"));
        }
        micro
    };
    Pricing {
        prompt_micro_usd_per_1m: price("prompt_per_1m").unwrap_or(0),
        completion_micro_usd_per_1m: price("completion_per_1m").unwrap_or(0),
        cached_input_micro_usd_per_1m: price("cached_input_per_1m"),
    }
}

// Backends

fn backend(
    at: &Cursor<'_>,
    index: usize,
    api_format: ApiFormat,
    seen: &mut BTreeSet<String>,
) -> Option<Backend> {
    let name = at
        .string("name")
        .unwrap_or_else(|| if index == 0 { "primary".to_owned() } else { format!("backend-{}", index + 1) });
    unique(seen, at, "backend of this model", &name);
    let weight =
        at.integer_in("weight", 1, i64::from(u32::MAX)).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let is_local = at.get("type").is_some_and(|kind| kind.node().text() == Some("local"));
    let endpoint = if is_local { local(at) } else { http(at, api_format) };
    Some(Backend { name, endpoint: endpoint?, weight, limits: deployment::limits(at) })
}

fn local(at: &Cursor<'_>) -> Option<Endpoint> {
    for key in ["endpoint", "base_url", "api_key", "api_key_env", "chat_path", "api_format", "timeouts"] {
        if let Some(idle) = at.get(key) {
            idle.warn(code::UNUSED, format!("`{key}` has no effect beside `type: local`"));
        }
    }
    Some(Endpoint::Local { model: at.required("model")? })
}

fn http(at: &Cursor<'_>, api_format: ApiFormat) -> Option<Endpoint> {
    if let Some(idle) = at.get("model") {
        idle.warn(
            code::UNUSED,
            "`model` belongs to `type: local`; the name sent upstream is `provider_model_id`",
        );
    }
    let api = at.word("api_format", &FORMATS).unwrap_or(api_format);
    let (base_url, path) = address(at, api)?;
    let auth_header = at.string("auth_header").unwrap_or_else(|| usual_auth_header(api).to_owned());
    let is_usual = auth_header.eq_ignore_ascii_case("authorization");
    let auth_prefix = at
        .string("auth_prefix")
        .unwrap_or_else(|| if is_usual { "Bearer".to_owned() } else { String::new() });
    let headers = at.get("extra_headers").map(|at| at.entries()).unwrap_or_default();
    let extra_headers = headers
        .iter()
        .filter_map(|(name, _, value)| Some(((*name).to_owned(), Template::new(value.text()?))))
        .collect();
    let chat_path = at.string("chat_path").unwrap_or_else(|| path.to_owned());
    let chat_path = if chat_path.starts_with('/') { chat_path } else { format!("/{chat_path}") };
    let api_key = api_key(at);
    Some(Endpoint::Http {
        base_url: Template::new(base_url),
        chat_path,
        auth_header,
        auth_prefix,
        api_key,
        extra_headers,
        api,
        access: Box::new(deployment::access(at)),
    })
}

/// The header in which an API expects its credential. Source: each provider's API reference.
fn usual_auth_header(api: ApiFormat) -> &'static str {
    match api {
        ApiFormat::OpenAi | ApiFormat::Bedrock => "Authorization",
        ApiFormat::Anthropic => "x-api-key",
        ApiFormat::Azure => "api-key",
        ApiFormat::Gemini => "x-goog-api-key",
    }
}

/// The base and the path of chat completions below it.
fn address(at: &Cursor<'_>, api: ApiFormat) -> Option<(String, &'static str)> {
    let protocol = at.word("protocol", &[("http", "http"), ("https", "https")]).unwrap_or("http");
    match (at.get("base_url"), at.get("endpoint")) {
        (Some(base), endpoint) => {
            if let Some(idle) = endpoint {
                idle.warn(code::UNUSED, "`endpoint` has no effect beside `base_url`");
            }
            let url = base.text()?;
            if !(url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${")) {
                base.error(code::BAD_VALUE, "`base_url` must begin with `http://` or `https://`");
                return None;
            }
            let path = if api == ApiFormat::Anthropic { "/v1/messages" } else { "/chat/completions" };
            Some((url.trim_end_matches('/').to_owned(), path))
        }
        (None, Some(endpoint)) => {
            let text = endpoint.text()?;
            let port = text.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
            let bad_port = port.is_some_and(|port| !port.contains('}') && port.parse::<u16>().is_err());
            if text.contains(['/', ' ']) || text.is_empty() || bad_port {
                let help = "for a whole URL write `base_url`".to_owned();
                endpoint.error_help(code::BAD_VALUE, "`endpoint` must be `host:port`", help);
                return None;
            }
            let path = if api == ApiFormat::Anthropic { "/v1/messages" } else { "/v1/chat/completions" };
            Some((format!("{protocol}://{text}"), path))
        }
        (None, None) => {
            at.error(
                code::MISSING_KEY,
                "a backend needs `endpoint`, `base_url`, or `type: local` with `model`",
            );
            None
        }
    }
}

fn api_key(at: &Cursor<'_>) -> Option<Secret> {
    if let Some(key) = at.get("api_key") {
        let text = key.text()?;
        if !is_variable(&text) {
            let help = "set `api_key_env` to the name of an environment variable".to_owned();
            key.warn_help(code::LITERAL_SECRET, "a credential is written into the file", help);
        }
        if let Some(idle) = at.get("api_key_env") {
            idle.warn(code::UNUSED, "`api_key_env` has no effect beside `api_key`");
        }
        return Some(Secret::new(text));
    }
    let variable = at.get("api_key_env")?;
    let name = variable.text()?;
    if !is_variable_name(&name) {
        // The text is not shown: it may be the credential itself.
        variable.error(code::BAD_VALUE, "`api_key_env` takes the bare name of an environment variable");
        return None;
    }
    Some(Secret::new(format!("${{{name}}}")))
}
