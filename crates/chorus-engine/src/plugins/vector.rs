//! A text of a request as a vector, for plugins: of the pass that a signal has made, else of one of its own.
//!
//! It knows no plugin. **Invariant:** one pass a core at a time, off the runtime's own threads.

use super::at_work::Scene;
use chorus_infer::TextEncoder;
use chorus_signals::{SharedPass, Subject};
use std::sync::Arc;

/// The unit vector of a text; `None` where no encoder is loaded, or where it fails, which the log tells.
pub(crate) async fn of(scene: &Scene, text: &str) -> Option<Vec<f32>> {
    if let Some(known) = known(scene, text) {
        return Some(known);
    }
    let selection = &scene.mom.selection;
    let encoder: Arc<dyn TextEncoder> = Arc::clone(selection.encoder.as_ref()?);
    let text = text.to_owned();
    let _permit = selection.gate.acquire().await;
    let work = tokio::task::spawn_blocking(move || {
        SharedPass::new().encode(&*encoder, &text).map(|it| it.mean.clone())
    });
    match work.await {
        Ok(Ok(vector)) => Some(vector),
        Ok(Err(fault)) => {
            tracing::warn!(fault, "a text could not be encoded for a plugin");
            None
        }
        Err(_) => None,
    }
}

/// What a signal or a selector has read already.
fn known(scene: &Scene, text: &str) -> Option<Vec<f32>> {
    let pass = scene.routed.decided.as_ref().and_then(|it| it.pass.known(text));
    let by_signal = pass.map(|it| it.mean.clone());
    by_signal.or_else(|| {
        let is_it = Subject::of(&scene.asked.request).task() == text;
        scene.routed.sight.query.clone().filter(|_| is_it)
    })
}
