//! How "reason, this hard" is said to each family of models.
//!
//! Source: contract §1.2 (`reasoning_families`) and §1.10 (reasoning dialects).

use chorus_spec::{Endpoint, Model, ModelRef, ReasoningKind, Spec};
use chorus_wire::ChatRequest;

/// Writes a candidate's reasoning control into a request; leaves it as sent when the candidate says nothing.
pub(crate) fn apply(spec: &Spec, model: &Model, candidate: &ModelRef, request: &mut ChatRequest) {
    let Some(on) = candidate.use_reasoning else { return };
    let effort = candidate.reasoning_effort.as_ref().or(spec.default_reasoning_effort.as_ref());
    let family = model.reasoning_family.as_ref().and_then(|name| spec.reasoning_families.get(name));
    match family.map(|f| (f.kind, f.parameter.as_str())) {
        Some((ReasoningKind::ChatTemplateKwargs, parameter)) => {
            template_kwarg(request, parameter, &on.into());
        }
        Some((ReasoningKind::ReasoningEffort, parameter)) if on => {
            if let Some(effort) = effort {
                template_kwarg(request, parameter, &effort.as_str().into());
            }
        }
        Some((ReasoningKind::TopLevelReasoningEffort, _)) => top_level(request, on, effort),
        None if speaks_top_level(model) => top_level(request, on, effort),
        Some(_) | None => {}
    }
}

fn top_level(request: &mut ChatRequest, on: bool, effort: Option<&String>) {
    match effort {
        Some(effort) if on => request.set("reasoning_effort", effort),
        _ => {}
    }
}

/// Sets one key of `chat_template_kwargs`, keeping what the client put there.
fn template_kwarg(request: &mut ChatRequest, key: &str, value: &serde_json::Value) {
    let current = request.body().read::<serde_json::Map<String, serde_json::Value>>("chat_template_kwargs");
    let mut kwargs = current.ok().flatten().unwrap_or_default();
    kwargs.insert(key.to_owned(), value.clone());
    request.set("chat_template_kwargs", &kwargs);
}

/// Providers that take `reasoning_effort` at the top of the body.
fn speaks_top_level(model: &Model) -> bool {
    const HOSTS: [&str; 3] = ["api.openai.com", "openrouter.ai", "api.deepseek.com"];
    model.backends.iter().any(|backend| match &backend.endpoint {
        Endpoint::Http { base_url, .. } => HOSTS.iter().any(|host| base_url.as_written().contains(host)),
        Endpoint::Local { .. } => false,
    })
}
