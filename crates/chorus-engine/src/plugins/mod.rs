//! What else happens on a route: each plugin edits the request before it goes to a model.
//!
//! Plugins run in the order of the decision. `fast_response` edits nothing: it answers instead of a model,
//! see [`crate::plan`].

pub mod header_mutation;
pub mod request_params;
pub mod system_prompt;
pub mod tools;

use crate::fault::{Code, Fault};
use chorus_spec::{Decision, Plugin};
use chorus_wire::ChatRequest;

/// Plugins that this version does not run and that no answer depends on: every request misses the cache, nothing is
/// compressed, and run records are kept whether or not a route asks to be replayed.
const OPTIONAL: [&str; 3] = ["response_cache", "context_compression", "router_replay"];

/// Applies every request-editing plugin of a decision.
///
/// # Errors
/// A plugin that this version does not run, and without which the route would not do what its author asked.
pub fn edit_request(decision: &Decision, request: &mut ChatRequest) -> Result<(), Fault> {
    for plugin in &decision.plugins {
        match plugin {
            Plugin::SystemPrompt(prompt) => system_prompt::apply(prompt, request),
            Plugin::RequestParams(params) => request_params::apply(params, request),
            Plugin::Tools(tools) => tools::apply(tools, request)?,
            Plugin::HeaderMutation(_) | Plugin::FastResponse { .. } => {}
            Plugin::Unsupported { kind, .. } if OPTIONAL.contains(&kind.as_str()) => {}
            Plugin::Unsupported { kind, .. } => {
                let text = format!(
                    "the decision `{}` uses the plugin `{kind}`, which is known and not supported yet",
                    decision.name
                );
                return Err(Fault::new(Code::NotSupported, text));
            }
        }
    }
    Ok(())
}

/// The message of a `fast_response` plugin, if the decision has one.
#[must_use]
pub fn fast_response(decision: &Decision) -> Option<&str> {
    decision.plugins.iter().find_map(|plugin| match plugin {
        Plugin::FastResponse { message } => Some(message.as_str()),
        _ => None,
    })
}
