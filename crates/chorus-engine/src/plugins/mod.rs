//! What else happens on a route: one file a plugin.
//!
//! The order is declared here and the same for all routes, whatever the order in the file. On the request:
//! `fast_response` (answers at once), `response_cache` (looks up), `system_prompt`, `request_params`, `tools`,
//! `tool_selection`, `memory`, `rag`, `context_compression`, `header_mutation`, `image_gen`. On the answer:
//! `response_jailbreak`, `hallucination`, `memory` (writes), `response_cache` (stores), `router_replay`.
//!
//! Plugins that only edit the request's own words do so while the route is planned ([`edit_request`]), so that the
//! selector sees what will be sent, and a gateway can forward the request. The cache looks at the client's own words,
//! which no edit of a plan changes. The others are [`at work`](at_work::AtWork) on the request once it is planned.

mod answer_text;
pub(crate) mod at_work;
mod context_compression;
pub(crate) mod crew;
mod hallucination;
pub mod header_mutation;
mod image_gen;
mod likeness;
pub mod manual;
mod memory;
pub(crate) mod notes;
mod rag;
pub mod request_params;
pub mod response_cache;
mod response_jailbreak;
mod router_replay;
pub mod system_prompt;
mod tool_selection;
pub mod tools;
pub(crate) mod vector;

use crate::fault::Fault;
use crate::turns::Turns;
pub use context_compression::preview as compression_preview;

use at_work::AtWork;
use chorus_spec::{CompressionScoring, Decision, ModalityMethod, Plugin, Remark, Spec};
use chorus_wire::ChatRequest;
use context_compression::ContextCompression;
use crew::Crew;
use hallucination::Hallucination;
use image_gen::ImageGen;
use memory::Memory;
use rag::Rag;
use response_cache::ResponseCache;
use response_jailbreak::ResponseJailbreak;
use router_replay::RouterReplay;
use std::sync::Arc;
use tool_selection::ToolSelection;

/// Applies every plugin of a decision that edits the request's own words.
///
/// # Errors
/// When `tool_choice` forces a tool that the route does not allow.
pub fn edit_request(decision: &Decision, request: &mut ChatRequest) -> Result<(), Fault> {
    let all = || decision.plugins.iter();
    for plugin in all() {
        if let Plugin::SystemPrompt(prompt) = plugin {
            system_prompt::apply(prompt, request);
        }
    }
    for plugin in all() {
        if let Plugin::RequestParams(params) = plugin {
            request_params::apply(params, request);
        }
    }
    for plugin in all() {
        if let Plugin::Tools(tools) = plugin {
            tools::apply(tools, request)?;
        }
    }
    Ok(())
}

/// The plugins of a decision that are at work on a request once it is planned, in their turns.
pub(crate) fn crew(decision: Option<&Decision>, turns: &Turns) -> Crew {
    let plugins = decision.map(|decision| decision.plugins.as_slice()).unwrap_or_default();
    let worker = |at: &usize| at_work(plugins.get(*at)?, plugins);
    Crew::of(turns.request.iter().filter_map(worker).collect(), Arc::clone(&turns.answer))
}

/// A plugin at work, among those of its route.
fn at_work(plugin: &Plugin, route: &[Plugin]) -> Option<Box<dyn AtWork>> {
    match plugin {
        Plugin::ResponseCache(it) => Some(Box::new(ResponseCache::of(it, route))),
        Plugin::RouterReplay(it) => Some(Box::new(RouterReplay::new((**it).clone()))),
        Plugin::ResponseJailbreak(it) => Some(Box::new(ResponseJailbreak::new(*it))),
        Plugin::Hallucination(it) => Some(Box::new(Hallucination::new(*it))),
        Plugin::ImageGen(it) => Some(Box::new(ImageGen::new((**it).clone()))),
        Plugin::ToolSelection(it) => Some(Box::new(ToolSelection::new((**it).clone()))),
        Plugin::Memory(it) => Some(Box::new(Memory::new((**it).clone()))),
        Plugin::Rag(it) => Some(Box::new(Rag::new((**it).clone()))),
        Plugin::ContextCompression(it) => Some(Box::new(ContextCompression::new((**it).clone()))),
        Plugin::SystemPrompt(_)
        | Plugin::HeaderMutation(_)
        | Plugin::FastResponse { .. }
        | Plugin::RequestParams(_)
        | Plugin::Tools(_) => None,
    }
}

/// Whether a plugin of any route reads texts through the encoder, which must be loaded then.
#[must_use]
pub fn needs_encoder(spec: &Spec) -> bool {
    let needs = |plugin: &Plugin| match plugin {
        Plugin::ResponseJailbreak(_) | Plugin::Memory(_) => true,
        Plugin::Rag(it) => rag::needs_encoder(it),
        Plugin::ResponseCache(it) => it.mode.is_semantic() && spec.global.response_cache.enabled,
        Plugin::ContextCompression(it) => it.scoring != CompressionScoring::Bm25,
        Plugin::ToolSelection(it) => it.filtering.weights.embed > 0.0,
        Plugin::Hallucination(it) => it.by_meaning || it.unverified != Remark::None,
        Plugin::ImageGen(it) => it.only_wanted && spec.global.modality_method != ModalityMethod::Keyword,
        _ => false,
    };
    let mut plugins = spec.recipes.iter().flat_map(|recipe| &recipe.decisions).flat_map(|it| &it.plugins);
    spec.global.vector_store.enabled || plugins.any(needs)
}

/// The message of a `fast_response` plugin, if the decision has one.
#[must_use]
pub fn fast_response(decision: &Decision) -> Option<&str> {
    decision.plugins.iter().find_map(|plugin| match plugin {
        Plugin::FastResponse { message } => Some(message.as_str()),
        _ => None,
    })
}
