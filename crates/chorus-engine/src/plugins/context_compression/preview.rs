//! What a route would make of a request's prompt, for who sets the plugin up.
//!
//! It calls no model, keeps no original and counts nothing. **Invariant:** what it shows is what the plugin would send,
//! but for what other plugins of the route add to the request, and but for the tool by which originals are asked for.

use super::budget::{Bounds, tokens};
use super::{Trace, parts, shorten};
use crate::fault::{Code, Fault};
use crate::mom::Mom;
use chorus_spec::{CompressionSettings, Decision, Plugin};
use chorus_wire::{ChatRequest, Raw};
use serde::Serialize;

/// A prompt as a route would shorten it.
#[derive(Debug, Serialize)]
pub struct CompressionPreview {
    /// The route.
    decision: String,
    /// Whether it would be shortened.
    shortened: bool,
    #[serde(flatten)]
    trace: Trace,
    /// All messages, as a model would be shown them.
    messages: Vec<Raw>,
}

/// The preview of a request on a route, by the decision's name; on the first route with the plugin where none is named.
///
/// # Errors
/// [`Code::InvalidRequest`]: there is no such route, or it does not shorten anything.
pub async fn preview(
    mom: &Mom,
    mut request: ChatRequest,
    decision: Option<&str>,
) -> Result<CompressionPreview, Fault> {
    let (decision, settings) = route(mom, decision)?;
    let windows = decision.model_refs.iter().filter_map(|it| mom.spec.models.get(&it.model));
    let window = windows.filter_map(|it| it.card.context_window_size).min().map(u64::from);
    let bounds = Bounds::within(settings, window, request.max_output_tokens());
    let mut trace = Trace::of(settings, bounds, tokens(&request));
    if settings.always || trace.tokens_before >= bounds.trigger {
        let parts = parts::of(&request, &[], &settings.targets);
        let mut work = shorten::Work::new(settings, mom, None);
        trace.shorten(parts, &mut work, &mut request, bounds.target).await;
    } else {
        trace.tokens_after = trace.tokens_before;
    }
    Ok(CompressionPreview {
        decision: decision.name.clone(),
        shortened: !trace.parts.is_empty(),
        trace,
        messages: request.messages().iter().map(|it| it.raw().clone()).collect(),
    })
}

/// How many routes of a configuration have the plugin.
#[must_use]
pub fn routes(mom: &Mom) -> usize {
    with_plugin(mom).count()
}

fn with_plugin(mom: &Mom) -> impl Iterator<Item = (&Decision, &CompressionSettings)> {
    let decisions = mom.recipes.iter().flat_map(|it| &it.recipe.decisions);
    decisions.filter_map(|decision| {
        let settings = decision.plugins.iter().find_map(|plugin| match plugin {
            Plugin::ContextCompression(it) => Some(&**it),
            _ => None,
        });
        settings.map(|settings| (decision, settings))
    })
}

fn route<'a>(mom: &'a Mom, wanted: Option<&str>) -> Result<(&'a Decision, &'a CompressionSettings), Fault> {
    let found = with_plugin(mom).find(|(decision, _)| wanted.is_none_or(|name| decision.name == name));
    found.ok_or_else(|| {
        let text = "no decision of that name has the plugin `context_compression`";
        Fault::new(Code::InvalidRequest, text).at("decision")
    })
}
