//! `rag`: the user's question is looked up, and what is found is shown to the model before it answers.
//!
//! Passages come from a vector store of this process, of another server, from a search over HTTP, or from a tool of an MCP
//! server. They stand fenced in the system message, or as the result of a tool call that nobody made. It knows questions
//! and passages, not how the model uses them.
//!
//! **Invariant:** a route reaches shared vector stores and those of its caller, and what was found for one caller answers
//! no other. Source: contract §1.10.

mod external;
mod fault;
mod inject;
mod mcp;
mod openai;
mod qdrant;
mod store;

use super::at_work::{Asking, AtWork, Scene};
use crate::fault::Fault;
use chorus_collab::Answer;
use chorus_spec::{Digest, RagBackend, RagFailure, RagSettings, SearchFormat};
use fault::RagFault;
use futures_util::future::{BoxFuture, FutureExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;

const KIND: &str = "rag";

/// Characters of passages in one request, unless the route says otherwise (`max_context_length`).
const CONTEXT_CHARACTERS: usize = 16_000;

/// The plugin at work on one request.
pub(super) struct Rag {
    settings: RagSettings,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Passage {
    text: String,
    /// What it is of, such as a file's name; empty where that is not told.
    source: String,
    /// How near it is, in 0..=1, where that is told.
    score: Option<f64>,
}

/// What was done, for the record; no word of a passage.
#[derive(Debug, Serialize)]
struct Trace {
    backend: &'static str,
    /// Passages that were found.
    found: usize,
    /// Those that the model is shown.
    shown: Vec<ShownTrace>,
    /// Where it is shown them.
    injected: Option<&'static str>,
    /// Tokens that they add to the request.
    tokens: u64,
    /// Whether they were kept from an earlier question.
    cached: bool,
    millis: u64,
}

#[derive(Debug, Serialize)]
struct ShownTrace {
    source: String,
    score: Option<f64>,
}

impl Rag {
    pub(super) fn new(settings: RagSettings) -> Self {
        Self { settings }
    }

    /// Passages for the question, and whether they were kept from an earlier one.
    async fn passages(&self, scene: &Scene, question: &str) -> Result<(Vec<Passage>, bool), RagFault> {
        let Some(ttl) = self.settings.cache_ttl else {
            return Ok((self.search(scene, question).await?, false));
        };
        let shelf = &scene.mom.shelf;
        let caller = scene.caller().map(|caller| format!("user {}", caller.user())).unwrap_or_default();
        // Settings print no credential, and two that print alike ask alike.
        let key = Digest::of(format!("{:?}\0{question}", self.settings).as_bytes());
        let kept = shelf.found(&caller, key.as_str(), Instant::now());
        if let Some(kept) = kept.and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok((kept, true));
        }
        let found = self.search(scene, question).await?;
        if let Ok(text) = serde_json::to_string(&found) {
            shelf.keep_found(&caller, key.as_str(), text, ttl, Instant::now());
        }
        Ok((found, false))
    }

    async fn search(&self, scene: &Scene, question: &str) -> Result<Vec<Passage>, RagFault> {
        let settings = &self.settings;
        match &settings.backend {
            RagBackend::VectorStore { store, file_ids } => {
                store::search(settings, scene, store, file_ids, question).await
            }
            RagBackend::Qdrant(it) => qdrant::search(settings, it, scene, question).await,
            RagBackend::OpenAi(it) => openai::search(settings, it, &scene.mom, question).await,
            RagBackend::External(it) => external::search(settings, it, scene, question).await,
            RagBackend::Mcp(it) => mcp::search(settings, it, &scene.mom, question).await,
        }
    }

    /// Those of the passages that are near enough, best first, within the bounds.
    fn admitted(&self, mut found: Vec<Passage>) -> Vec<Passage> {
        let settings = &self.settings;
        let score = |it: &Passage| it.score.unwrap_or(1.0);
        found.retain(|it| !it.text.trim().is_empty() && score(it) >= settings.similarity_threshold);
        found.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let best = found.first().map(score);
        if settings.min_confidence.is_some_and(|least| best.is_some_and(|best| best < least)) {
            return Vec::new();
        }
        found.truncate(settings.top_k);
        let mut left = settings.max_context_length.unwrap_or(CONTEXT_CHARACTERS);
        let mut admitted = Vec::new();
        for mut it in found {
            let length = it.text.chars().count();
            if length > left && admitted.is_empty() {
                it.text = it.text.chars().take(left).collect();
            } else if length > left {
                continue;
            }
            left = left.saturating_sub(length);
            admitted.push(it);
        }
        admitted
    }

    /// What becomes of the request when nothing could be looked up.
    fn failed(&self, fault: &RagFault, ask: &mut Asking<'_>) -> Result<(), Fault> {
        let word = fault.word();
        tracing::warn!(reason = word, %fault, "a route's question could not be looked up");
        ask.notes.did(KIND, &json!({ "backend": self.backend(), "failed": word }));
        match self.settings.on_failure {
            RagFailure::Skip => Ok(()),
            RagFailure::Warn => {
                ask.notes.warn(word);
                Ok(())
            }
            RagFailure::Block => Err(fault.refusal()),
        }
    }

    fn backend(&self) -> &'static str {
        match self.settings.backend {
            RagBackend::VectorStore { .. } => "vectorstore",
            RagBackend::Qdrant(_) => "qdrant",
            RagBackend::OpenAi(_) => "openai",
            RagBackend::External(_) => "external_api",
            RagBackend::Mcp(_) => "mcp",
        }
    }

    async fn enrich(&self, ask: &mut Asking<'_>) -> Result<(), Fault> {
        let question = ask.scene.asked.request.last_user_text().to_owned();
        if question.trim().is_empty() {
            ask.notes.did(KIND, &json!({ "backend": self.backend(), "idle": "no_question" }));
            return Ok(());
        }
        let started = Instant::now();
        let (found, cached) = match self.passages(ask.scene, &question).await {
            Ok(found) => found,
            Err(fault) => return self.failed(&fault, ask),
        };
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (all, shown) = (found.len(), self.admitted(found));
        let row = |it: &Passage| ShownTrace { source: it.source.clone(), score: it.score };
        let rows = shown.iter().map(row).collect();
        let (injected, tokens) = match inject::inject(self.settings.injection, &shown, &question, ask) {
            Some((place, tokens)) => (Some(place), tokens),
            None => (None, 0),
        };
        let backend = self.backend();
        ask.notes.did(KIND, &Trace { backend, found: all, shown: rows, injected, tokens, cached, millis });
        Ok(())
    }
}

/// Whether questions are looked up by their vectors.
pub(super) fn needs_encoder(settings: &RagSettings) -> bool {
    match &settings.backend {
        RagBackend::VectorStore { .. } | RagBackend::Qdrant(_) => true,
        RagBackend::External(it) => matches!(it.format, SearchFormat::Pinecone | SearchFormat::Weaviate),
        RagBackend::OpenAi(_) | RagBackend::Mcp(_) => false,
    }
}

impl AtWork for Rag {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move { self.enrich(ask).await.map(|()| None) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::RagInjection;

    fn rag(settings: impl FnOnce(&mut RagSettings)) -> Rag {
        let backend = RagBackend::VectorStore { store: "s".to_owned(), file_ids: Vec::new() };
        let mut it = RagSettings {
            backend,
            top_k: 2,
            similarity_threshold: 0.5,
            max_context_length: Some(12),
            injection: RagInjection::default(),
            on_failure: RagFailure::default(),
            cache_ttl: None,
            min_confidence: None,
        };
        settings(&mut it);
        Rag::new(it)
    }

    fn texts(rag: &Rag, found: &[(&str, Option<f64>)]) -> Vec<String> {
        let passage = |(text, score): &(&str, Option<f64>)| Passage {
            text: (*text).to_owned(),
            source: String::new(),
            score: *score,
        };
        rag.admitted(found.iter().map(passage).collect()).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn near_ones_best_first_within_the_bounds() {
        let found = [("far", Some(0.4)), ("near", Some(0.6)), ("nearest", Some(0.9)), ("next", Some(0.55))];
        assert_eq!(texts(&rag(|_| {}), &found), ["nearest", "near"]);
        assert_eq!(texts(&rag(|it| it.min_confidence = Some(0.95)), &found), Vec::<String>::new());
        assert_eq!(texts(&rag(|it| it.max_context_length = Some(4)), &found), ["near"], "cut, and full");
        let plain = [("one", None), ("", None), ("two", None)];
        assert_eq!(texts(&rag(|_| {}), &plain), ["one", "two"]);
    }
}
