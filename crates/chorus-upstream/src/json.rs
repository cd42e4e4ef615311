//! One JSON answer for one JSON question, for servers that are no chat: verifiers, scorers. It knows no shape.

use crate::client::Upstream;
use crate::fault::UpstreamFault;
use crate::seam::Sent;
use crate::target::{Target, Timeouts};
use bytes::Bytes;

impl Upstream {
    /// Posts JSON and gives the whole body of the answer, within the limits.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for an answer that is no JSON.
    pub async fn ask_json(
        &self,
        target: &Target,
        body: Bytes,
        limits: &Timeouts,
    ) -> Result<serde_json::Value, UpstreamFault> {
        let sent = Sent { body, path: None, accept: "application/json" };
        let answer = self.post(target, sent, &[], limits).await?.collect().await?;
        serde_json::from_slice(&answer).map_err(UpstreamFault::malformed)
    }
}
