//! `/api/v1/embeddings`, `/api/v1/similarity`, `/api/v1/similarity/batch`, `/api/v1/nli`: the encoder for its own sake.
//!
//! Similarity is the cosine of two unit vectors, in -1..=1, on the encoder's own scale. There is no model of entailment
//! in this process: `nli` answers by rules over words ([`chorus_engine::entail`]), which an encoder helps where one is loaded,
//! and names that method in every answer.

use super::endpoint::{Endpoint, Field, Route};
use super::words::{self, Answered};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use chorus_engine::{Code, Fault};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;

/// The name that means whatever encoder is loaded.
const AUTO: &str = "auto";

/// How entailment is judged: no model was trained for it.
const RULES: &str = "rules";

const MODEL: Field = Field::new("model", "string", "`auto`, or the digest of the loaded encoder");

const EMBEDDINGS: &[Field] = &[Field::needed("texts", "array", "1 to 100 texts"), MODEL];
const SIMILARITY: &[Field] =
    &[Field::needed("text1", "string", "one"), Field::needed("text2", "string", "the other"), MODEL];
const NEAREST: &[Field] = &[
    Field::needed("query", "string", "the text"),
    Field::needed("candidates", "array", "1 to 100 texts"),
    Field::new("top_k", "integer", "how many; all by default"),
    MODEL,
];
const ENTAILMENT: &[Field] = &[
    Field::needed("premise", "string", "the text"),
    Field::needed("hypothesis", "string", "what is said of it"),
];

/// What the encoder answers.
pub(super) fn routes() -> Vec<Route> {
    let ask = |path, does, fields| Endpoint::new("POST", path, "classify.invoke", does).taking(fields);
    let models =
        Endpoint::new("GET", "/api/v1/embeddings/models", "config.read", "the encoder that is loaded");
    let batch = ask("/api/v1/similarity/batch", "the candidates nearest to a text, nearest first", NEAREST);
    vec![
        Route::new(ask("/api/v1/embeddings", "one unit vector a text", EMBEDDINGS), post(embeddings)),
        Route::new(models, get(embedding_models)),
        Route::new(ask("/api/v1/similarity", "the cosine of two texts", SIMILARITY), post(similarity)),
        Route::new(batch, post(nearest)),
        Route::new(
            ask("/api/v1/nli", "whether a statement follows from a text, by rules", ENTAILMENT),
            post(entailment),
        ),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingsRequest {
    texts: Vec<String>,
    model: Option<String>,
}

#[derive(Debug, Serialize)]
struct EmbeddingsAnswer {
    embeddings: Vec<Embedding>,
    total_count: usize,
    total_processing_time_ms: u64,
}

#[derive(Debug, Serialize)]
struct Embedding {
    text: String,
    dimension: usize,
    model_used: String,
    embedding: Vec<f32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarityRequest {
    text1: String,
    text2: String,
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NearestRequest {
    query: String,
    candidates: Vec<String>,
    top_k: Option<usize>,
    model: Option<String>,
}

#[derive(Debug, Serialize)]
struct NearestAnswer {
    matches: Vec<Match>,
    total_candidates: usize,
    model_used: String,
    processing_time_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntailmentRequest {
    premise: String,
    hypothesis: String,
}

#[derive(Debug, Serialize)]
struct EntailmentAnswer {
    /// `entailment`, `neutral` or `contradiction`.
    label: &'static str,
    confidence: f64,
    reason: &'static str,
    method: &'static str,
    /// The encoder that helped; null for words alone.
    model_used: Option<String>,
    processing_time_ms: u64,
}

#[derive(Debug, Serialize)]
struct Match {
    index: usize,
    text: String,
    similarity: f64,
}

async fn embeddings(State(door): State<Door>, body: Body) -> Answered {
    let started = Instant::now();
    let asked: EmbeddingsRequest = words::read(&door, body).await?;
    let answer = async {
        words::bounded(&asked.texts, "texts")?;
        let (model, vectors) = encode(&door, asked.model.as_deref(), asked.texts.clone()).await?;
        let embeddings = asked.texts.into_iter().zip(vectors).map(|(text, embedding)| Embedding {
            text,
            dimension: embedding.len(),
            model_used: model.clone(),
            embedding,
        });
        let embeddings: Vec<Embedding> = embeddings.collect();
        let total_count = embeddings.len();
        Ok(EmbeddingsAnswer { embeddings, total_count, total_processing_time_ms: words::millis(started) })
    };
    Ok(words::answer(answer.await))
}

async fn embedding_models(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let models: Vec<_> = mom
        .classifiers
        .encoder()
        .map(|(digest, dimension)| json!({"name": digest, "dimension": dimension, "normalised": true, "loaded": true}))
        .into_iter()
        .collect();
    words::answer(Ok(json!({"models": models})))
}

async fn similarity(State(door): State<Door>, body: Body) -> Answered {
    let started = Instant::now();
    let asked: SimilarityRequest = words::read(&door, body).await?;
    let encoded = encode(&door, asked.model.as_deref(), vec![asked.text1, asked.text2]).await;
    Ok(words::answer(encoded.map(|(model, vectors)| {
        let similarity = match vectors.as_slice() {
            [one, other] => cosine(one, other),
            _ => 0.0,
        };
        json!({"similarity": similarity, "model_used": model, "processing_time_ms": words::millis(started)})
    })))
}

async fn nearest(State(door): State<Door>, body: Body) -> Answered {
    let started = Instant::now();
    let asked: NearestRequest = words::read(&door, body).await?;
    let answer = async {
        words::bounded(&asked.candidates, "candidates")?;
        let texts = std::iter::once(&asked.query).chain(&asked.candidates).cloned().collect();
        let (model_used, vectors) = encode(&door, asked.model.as_deref(), texts).await?;
        let total_candidates = asked.candidates.len();
        let query = vectors.first().cloned().unwrap_or_default();
        let scored = asked.candidates.into_iter().zip(vectors.iter().skip(1)).enumerate();
        let mut matches: Vec<Match> = scored
            .map(|(index, (text, vector))| Match { index, text, similarity: cosine(&query, vector) })
            .collect();
        matches.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        matches.truncate(asked.top_k.unwrap_or(usize::MAX));
        Ok(NearestAnswer {
            matches,
            total_candidates,
            model_used,
            processing_time_ms: words::millis(started),
        })
    };
    Ok(words::answer(answer.await))
}

async fn entailment(State(door): State<Door>, body: Body) -> Answered {
    let started = Instant::now();
    let asked: EntailmentRequest = words::read(&door, body).await?;
    let mom = door.engine.serving();
    let entailed = mom.classifiers.entailment(asked.premise, asked.hypothesis).await;
    Ok(words::answer(entailed.map(|entailed| EntailmentAnswer {
        label: entailed.judgement.verdict.as_str(),
        confidence: entailed.judgement.strength,
        reason: entailed.judgement.reason,
        method: RULES,
        model_used: entailed.encoder,
        processing_time_ms: words::millis(started),
    })))
}

/// The encoder's name, and one vector a text.
async fn encode(
    door: &Door,
    model: Option<&str>,
    texts: Vec<String>,
) -> Result<(String, Vec<Vec<f32>>), Fault> {
    let mom = door.engine.serving();
    let loaded = mom.classifiers.encoder().map(|(digest, _)| digest.to_owned());
    if let Some(asked) = model.filter(|asked| *asked != AUTO && loaded.as_deref() != Some(asked)) {
        let shown: String = asked.chars().take(80).collect();
        let text =
            format!("the encoder `{shown}` is not loaded; GET /api/v1/embeddings/models lists what is");
        return Err(Fault::new(Code::ModelNotFound, text).at("model"));
    }
    let vectors = mom.classifiers.embed(texts).await?;
    Ok((loaded.unwrap_or_default(), vectors))
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    f64::from(chorus_vectors::dot(one, other))
}
