//! Hard constraints: what a request needs of a model, and which candidates are removed before anything is optimised.
//!
//! Lists of capabilities are written by hand and seldom whole, so a capability is a hard constraint only where its word
//! is used: for images and audio by some model of the file, for tools and structured output by some candidate of the
//! route. A route none of whose candidates says `tools` says nothing about who can call them. A declared context window always binds, and `modality: text`
//! always excludes images. Source: DESIGN.md §4.5; cases B05, C06, D18, D22.
//!
//! A route that shortens long requests (`context_compression`) is asked before a window refuses: where a request is too long for
//! all its candidates, the window is looked at once the request has been shortened.
//!
//! **Invariant:** when nothing is left the request fails with every reason; no constraint is relaxed.

use crate::fault::{Code, Fault};
use chorus_spec::{Model, ModelId, ModelRef, Plugin, Spec};
use chorus_wire::ChatRequest;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Estimated prompt and reserved output, in tokens.
    pub tokens: u64,
    /// It holds images.
    pub vision: bool,
    /// It holds audio.
    pub audio: bool,
    /// It offers tools.
    pub tools: bool,
    /// It asks for output by a JSON schema.
    pub structured: bool,
}

impl Needs {
    /// What that request needs.
    #[must_use]
    pub fn of(request: &ChatRequest) -> Self {
        let format = request.body().get("response_format").map(chorus_wire::Raw::get).unwrap_or_default();
        Self {
            tokens: chorus_wire::tokens::of_request(request),
            vision: request.messages().iter().any(|m| m.images > 0),
            audio: request.messages().iter().any(|m| m.audio > 0),
            tools: request.tool_count() > 0,
            structured: format.contains("json_schema"),
        }
    }

    /// The same of a request that will be shortened to whatever window there is.
    #[must_use]
    pub fn of_shortened(self) -> Self {
        Self { tokens: 0, ..self }
    }

    /// The same without tools and output format: what a panel member is asked.
    #[must_use]
    pub fn of_member(self) -> Self {
        Self { tools: false, structured: false, ..self }
    }
}

/// A candidate that was removed, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// The model.
    pub model: ModelId,
    /// The constraint: `context`, `vision`, `audio`, `tools`, `structured_output`.
    pub constraint: &'static str,
    /// For people.
    pub reason: String,
}

/// Candidates that may serve, in their order, and those that may not.
#[must_use]
pub fn constrain(spec: &Spec, candidates: &[ModelRef], needs: Needs) -> (Vec<ModelRef>, Vec<Removed>) {
    let mut removed = Vec::new();
    let peers: Vec<&Model> = candidates.iter().filter_map(|c| spec.models.get(&c.model)).collect();
    let kept = candidates.iter().filter(|candidate| {
        let Some(model) = spec.models.get(&candidate.model) else {
            return false;
        };
        let violation = violation(spec, &peers, model, needs);
        let ok = violation.is_none();
        removed.extend(violation);
        ok
    });
    let kept = kept.cloned().collect();
    (kept, removed)
}

/// The error for when nobody is left.
#[must_use]
pub fn nobody_left(removed: &[Removed]) -> Fault {
    let reasons: Vec<String> = removed.iter().map(|r| format!("{}: {}", r.model, r.reason)).collect();
    let all = |constraint| !removed.is_empty() && removed.iter().all(|r| r.constraint == constraint);
    let code = if all("context") { Code::ContextLengthExceeded } else { Code::NoCandidate };
    Fault::new(code, format!("no candidate can serve this request ({})", reasons.join("; "))).at("messages")
}

/// Whether every candidate declares a window, and none is large enough.
#[must_use]
pub fn is_oversize(spec: &Spec, candidates: &[ModelRef], tokens: u64) -> bool {
    let window = |it: &ModelRef| spec.models.get(&it.model)?.card.context_window_size;
    !candidates.is_empty()
        && candidates.iter().all(|it| window(it).is_some_and(|most| tokens > u64::from(most)))
}

/// The candidates of the largest window: what has to be shortened is shortened least for them.
#[must_use]
pub fn widest(spec: &Spec, candidates: &[ModelRef]) -> Vec<ModelRef> {
    let window = |it: &&ModelRef| spec.models.get(&it.model).and_then(|model| model.card.context_window_size);
    let widest = candidates.iter().filter_map(|it| window(&it)).max();
    candidates.iter().filter(|it| window(it) == widest).cloned().collect()
}

/// Refuses a request that fits no model at all, before any work is done on it; not where some route would shorten it.
///
/// # Errors
/// [`Code::ContextLengthExceeded`], where every model declares a window and none is large enough.
pub fn refuse_oversize(spec: &Spec, request: &ChatRequest) -> Result<(), Fault> {
    let windows: Option<Vec<u32>> =
        spec.models.values().map(|model| model.card.context_window_size).collect();
    let Some(largest) = windows.and_then(|windows| windows.into_iter().max()) else { return Ok(()) };
    let tokens = chorus_wire::tokens::of_request(request);
    if tokens <= u64::from(largest) || is_shortened_somewhere(spec) {
        return Ok(());
    }
    let text = format!("about {tokens} tokens do not fit the largest context window, {largest} tokens");
    Err(Fault::new(Code::ContextLengthExceeded, text).at("messages"))
}

fn is_shortened_somewhere(spec: &Spec) -> bool {
    let mut decisions = spec.recipes.iter().flat_map(|recipe| &recipe.decisions);
    decisions.any(|decision| shortens(&decision.plugins))
}

/// Whether a route shortens requests that are long for its models.
#[must_use]
pub fn shortens(route: &[Plugin]) -> bool {
    route.iter().any(|plugin| matches!(plugin, Plugin::ContextCompression(_)))
}

/// Refuses a request that is too long for one of these models, now that it has been shortened.
///
/// # Errors
/// [`Code::ContextLengthExceeded`].
pub fn refuse_unshortened<'m>(
    spec: &Spec,
    models: impl Iterator<Item = &'m ModelId>,
    request: &ChatRequest,
) -> Result<(), Fault> {
    let tokens = chorus_wire::tokens::of_request(request);
    let windows = models.filter_map(|id| Some((id, spec.models.get(id)?.card.context_window_size?)));
    let Some((id, window)) = windows.min_by_key(|(_, window)| *window) else { return Ok(()) };
    if tokens <= u64::from(window) {
        return Ok(());
    }
    let text = format!(
        "about {tokens} tokens are left of it, and do not fit the context window of {id}, {window} tokens"
    );
    Err(Fault::new(Code::ContextLengthExceeded, text).at("messages"))
}

/// Whether images may be sent to a model.
#[must_use]
pub fn takes_images(spec: &Spec, model: &Model) -> bool {
    let modality = model.card.modality.as_deref();
    let sees = modality == Some("omni") || declares(model, VISION);
    sees || (modality != Some("text") && !in_use(spec, VISION))
}

fn violation(spec: &Spec, peers: &[&Model], model: &Model, needs: Needs) -> Option<Removed> {
    let removed = |constraint, reason: String| Some(Removed { model: model.id.clone(), constraint, reason });
    if let Some(window) = model.card.context_window_size.filter(|w| needs.tokens > u64::from(*w)) {
        let reason = format!("about {} tokens do not fit its context window of {window}", needs.tokens);
        return removed("context", reason);
    }
    if needs.vision && !takes_images(spec, model) {
        return removed("vision", "it does not take images".to_owned());
    }
    if needs.audio && in_use(spec, AUDIO) && !declares(model, AUDIO) {
        return removed("audio", "it does not take audio".to_owned());
    }
    let is_behind = |words| peers.iter().any(|peer| declares(peer, words)) && !declares(model, words);
    if needs.tools && is_behind(TOOLS) {
        return removed(
            "tools",
            "it does not say that it calls tools, and another candidate does".to_owned(),
        );
    }
    if needs.structured && is_behind(STRUCTURED) {
        let reason = "it does not say that it keeps to a JSON schema, and another candidate does";
        return removed("structured_output", reason.to_owned());
    }
    None
}

const VISION: &[&str] = &["vision", "image", "images", "multimodal"];
const AUDIO: &[&str] = &["audio", "speech"];
const TOOLS: &[&str] = &["tools", "tool_use", "tool-use", "function_calling", "function-calling"];
const STRUCTURED: &[&str] = &["json_schema", "structured_output", "structured-output", "structured_outputs"];

fn declares(model: &Model, words: &[&str]) -> bool {
    model.card.capabilities.iter().any(|c| words.contains(&c.to_ascii_lowercase().as_str()))
}

fn in_use(spec: &Spec, words: &[&str]) -> bool {
    spec.models.values().any(|model| declares(model, words))
}
