//! The AutoMix verifier: a server that samples whether an answer is supported.
//!
//! Source: contract §2.2, `POST <verifier_server_url>/verify` with question, answer, threshold and context; of its answer
//! only `confidence` counts, because the cascade has its own thresholds.
//!
//! **Invariant:** a server that cannot be reached or read is no evidence, never a confidence.

use crate::backends::Server;
use chorus_collab::confidence::{Check, Verifier};
use chorus_collab::{CallFault, FaultKind};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::time::Duration;

/// A verifier behind an address.
#[derive(Debug)]
pub(super) struct AutomixServer(pub(super) Server);

impl AutomixServer {
    async fn asked(&self, check: Check<'_>, timeout: Duration) -> Result<f64, CallFault> {
        let question = json!({
            "question": check.question,
            "answer": check.answer,
            "threshold": check.threshold,
            "context": check.context,
        });
        let answer = self.0.ask(&question, timeout).await?;
        let confidence = answer.get("confidence").and_then(Value::as_f64);
        confidence.filter(|c| (0.0..=1.0).contains(c)).ok_or_else(|| CallFault {
            kind: FaultKind::Transport,
            public: "the verifier gave no confidence from 0 to 1".to_owned(),
            status: None,
        })
    }
}

impl Verifier for AutomixServer {
    fn verify<'a>(&'a self, check: Check<'a>, timeout: Duration) -> BoxFuture<'a, Result<f64, CallFault>> {
        self.asked(check, timeout).boxed()
    }
}
