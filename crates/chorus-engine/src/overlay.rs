//! A request's own Fusion settings: the entry `{"id": "fusion", …}` of `plugins`.

use crate::fault::{Code, Fault};
use chorus_collab::fusion::FusionOverlay;
use chorus_wire::{ChatRequest, Raw};
use serde_json::value::RawValue;

/// The Fusion overlay of a request, if it has one that is not `enabled: false`.
///
/// # Errors
/// An entry that is malformed or asks for what is not supported.
pub(crate) fn of(request: &ChatRequest) -> Result<Option<FusionOverlay>, Fault> {
    let overlay = FusionOverlay::of_request(request)
        .map_err(|fault| Fault::new(Code::InvalidRequest, fault.to_string()).at("plugins"))?;
    Ok(overlay.filter(|own| own.enabled))
}

/// Takes our entries out, so that no backend sees them; other plugins stay (case B22).
pub(crate) fn strip(request: &mut ChatRequest) {
    let Ok(Some(all)) = request.body().read::<Vec<Box<RawValue>>>("plugins") else {
        return;
    };
    let all: Vec<Raw> = all.into_iter().map(Raw::from).collect();
    let others: Vec<&Raw> = all.iter().filter(|raw| !is_ours(raw)).collect();
    if others.is_empty() {
        request.remove("plugins");
    } else if others.len() < all.len() {
        request.set("plugins", &others);
    }
}

/// Only as much of a plugin entry as tells whose it is.
#[derive(serde::Deserialize)]
struct PluginId {
    id: String,
}

fn is_ours(raw: &Raw) -> bool {
    serde_json::from_str::<PluginId>(raw.get()).is_ok_and(|plugin| FusionOverlay::is_id(&plugin.id))
}
