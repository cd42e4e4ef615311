//! What is behind a deployment: a model of this machine's store, or what a provider says that it serves.
//!
//! It knows the store, the environment and `GET /models`. **Invariant:** a credential goes to the deployment that it is
//! for, and into no text.

use chorus_bundle::binding::{Deployment, local_model};
use chorus_bundle::lock::{Observed, Prober};
use chorus_bundle::{Component, canonical};
use chorus_infer::store::{Catalog, ModelStore};
use chorus_spec::{Digest, Template};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a provider may take to say what it serves.
const PATIENCE: Duration = Duration::from_secs(5);
/// What of a provider's entry changes by itself.
const VOLATILE: [&str; 2] = ["created", "permission"];

/// Looks at deployments from this machine.
pub(super) struct Look<'s> {
    pub(super) store: &'s ModelStore,
    pub(super) offline: bool,
    pub(super) now_ms: u64,
}

impl Prober for Look<'_> {
    fn probe(&self, component: &Component, deployment: &Deployment) -> Observed {
        match local_model(&deployment.backend) {
            Some(model) => self.local(model),
            None if self.offline => Observed::Unseen { why: "offline".to_owned() },
            None => {
                let model = deployment.provider_model_id.as_deref().unwrap_or(&component.name);
                self.provider(&deployment.backend, model).unwrap_or_else(|why| Observed::Unseen { why })
            }
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// The digests of a model's files, by the catalog; the store hands out no others.
pub(super) fn weights_of(catalog: &Catalog, model: &str) -> BTreeMap<String, String> {
    let files = catalog.get(model).into_iter().flat_map(|entry| &entry.files);
    files.map(|it| (it.name.clone(), format!("sha256:{}", it.sha256))).collect()
}

/// Extensions that in-process models make use of, as far as this machine has them.
pub(super) fn instruction_set() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    let found = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ("avx512vnni", std::arch::is_x86_feature_detected!("avx512vnni")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let found = [("neon", cfg!(target_arch = "aarch64"))];
    found.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
}

impl Look<'_> {
    fn local(&self, model: &str) -> Observed {
        let weights = weights_of(self.store.catalog(), model);
        let absent = weights.keys().find(|file| self.store.path(model, file).is_none());
        if weights.is_empty() || absent.is_some() {
            return Observed::Unseen {
                why: format!("`{model}` is not in the store; `chorus models pull {model}`"),
            };
        }
        // A GGUF file holds its tokenizer; an encoder has a file of its own.
        let tokenizer = weights.get("tokenizer.json").or_else(|| weights.values().next()).cloned();
        Observed::Local { model: model.to_owned(), weights, tokenizer: tokenizer.unwrap_or_default() }
    }

    fn provider(&self, backend: &Value, model: &str) -> Result<Observed, String> {
        let lookup = |name: &str| std::env::var(name).ok();
        let of = |key: &str| backend.get(key).and_then(Value::as_str);
        let base = match (of("base_url"), of("endpoint")) {
            (Some(base), _) => base.to_owned(),
            (None, Some(endpoint)) => format!("{}://{endpoint}/v1", of("protocol").unwrap_or("http")),
            (None, None) => return Err("the backend has no address".to_owned()),
        };
        let base = Template::new(base).resolve(&lookup).map_err(|fault| fault.to_string())?;
        let agent = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build(),
        );
        let mut request = agent.get(format!("{}/models", base.trim_end_matches('/')));
        if let Some(key) = of("api_key_env").and_then(lookup) {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let text = request.call().and_then(|mut reply| reply.body_mut().read_to_string());
        let text = text.map_err(|fault| format!("it does not list its models: {fault}"))?;
        let listed: Value = serde_json::from_str(&text).map_err(|fault| fault.to_string())?;
        let entries = listed.get("data").and_then(Value::as_array).into_iter().flatten();
        let entry = entries.into_iter().find(|it| it.get("id").and_then(Value::as_str) == Some(model));
        let entry = entry.ok_or_else(|| format!("it does not list `{model}`"))?;
        Ok(Observed::Provider {
            model: model.to_owned(),
            fingerprint: fingerprint(entry),
            context_tokens: ["max_model_len", "context_length", "context_window"]
                .into_iter()
                .find_map(|key| entry.get(key)?.as_u64()),
            at_ms: self.now_ms,
        })
    }
}

/// A digest of everything that a provider says of a model and that does not change by itself.
fn fingerprint(entry: &Value) -> Option<String> {
    let mut entry = entry.clone();
    let fields = entry.as_object_mut()?;
    fields.retain(|key, _| !VOLATILE.contains(&key.as_str()));
    canonical::write(&entry).ok().map(|bytes| Digest::of(&bytes).to_string())
}
