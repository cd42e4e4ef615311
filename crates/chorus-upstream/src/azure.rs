//! Azure OpenAI: chat completions at a path that names the deployment; everything else is OpenAI's.
//!
//! The deployment is the request's `model`; the credential goes in `api-key`, the version in the query (the target's).
//! Source: Azure OpenAI REST reference, "Chat completions - Create".

use crate::path::path_segment;
use crate::quirks::Quirks;
use crate::seam::Sent;
use crate::{UpstreamFault, openai};
use bytes::Bytes;
use chorus_wire::RawObject;

/// The request, at its deployment's path.
pub(crate) fn sent(body: Bytes, quirks: Quirks, stream: bool) -> Result<Sent, UpstreamFault> {
    let object = RawObject::parse(&body).map_err(UpstreamFault::untranslatable)?;
    let model: Option<String> = object.read("model").map_err(UpstreamFault::untranslatable)?;
    let deployment = model.ok_or_else(|| UpstreamFault::untranslatable("the request names no model"))?;
    let path = format!("/openai/deployments/{}/chat/completions", path_segment(&deployment));
    Ok(Sent { path: Some(path), ..openai::sent(body, quirks, stream)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_the_deployment() {
        let body = Bytes::from_static(br#"{"model":"gpt 4/o","messages":[]}"#);
        let sent = sent(body.clone(), Quirks::default(), false).unwrap();
        assert_eq!(sent.path.as_deref(), Some("/openai/deployments/gpt%204%2Fo/chat/completions"));
        assert_eq!(sent.body, body);
    }
}
