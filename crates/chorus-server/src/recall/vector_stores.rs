//! `/v1/vector_stores`: make, change and delete; attach files; search.
//!
//! Source: OpenAI API description, `VectorStoreObject`, `VectorStoreFileObject`, `VectorStoreSearchResultsPage`.

mod shape;

use super::files::{absent, now, page};
use super::refused::{Refused, answer, bad, not_found};
use super::said::{self, InPath, Said};
use super::whose::Asker;
use crate::body;
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use chorus_engine::{Code, Fault, Mom, ingest};
use chorus_recall::{ChunkRule, Filter};
use chorus_store::documents::{Attached, AttachedFile, VectorStore};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most rows of one listing (`limit`). Source: OpenAI API description.
const LIST_MOST: usize = 100;
const LIST_USUAL: usize = 20;
/// Most passages of one search. Source: OpenAI API description.
const RESULTS_MOST: usize = 50;
const RESULTS_USUAL: usize = 10;
/// Most files that a vector store is made with.
const FILES_MOST: usize = 500;
/// Most pairs of metadata and of attributes. Source: OpenAI API description.
const PAIRS_MOST: usize = 16;
/// Longest question of a search, in characters (`max_query_characters`).
const QUERY_MOST: usize = 16_000;

/// A vector store to be made, or what is to change of one.
#[derive(Debug, Deserialize)]
struct StoreWire {
    name: Option<String>,
    #[serde(default)]
    file_ids: Vec<String>,
    metadata: Option<Map<String, Value>>,
    chunking_strategy: Option<StrategyWire>,
    expires_after: Option<Value>,
}

/// A file to be attached.
#[derive(Debug, Deserialize)]
struct FileWire {
    file_id: String,
    attributes: Option<Map<String, Value>>,
    chunking_strategy: Option<StrategyWire>,
}

#[derive(Debug, Deserialize)]
struct StrategyWire {
    r#type: String,
    r#static: Option<StaticWire>,
}

#[derive(Debug, Deserialize)]
struct StaticWire {
    max_chunk_size_tokens: u64,
    chunk_overlap_tokens: u64,
}

#[derive(Debug, Deserialize)]
struct SearchWire {
    query: Value,
    max_num_results: Option<usize>,
    filters: Option<Value>,
    ranking_options: Option<RankingWire>,
}

#[derive(Debug, Deserialize)]
struct RankingWire {
    score_threshold: Option<f64>,
}

/// What may be said behind the path of a listing.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    limit: Option<usize>,
    after: Option<String>,
}

/// `POST /v1/vector_stores`.
pub(crate) async fn create(State(door): State<Door>, asker: Asker, body: Body) -> Result<Response, Refused> {
    let wire: StoreWire = read(&door, body).await?;
    if wire.expires_after.is_some_and(|it| !it.is_null()) {
        return Err(bad("expires_after", "vector stores do not expire here"));
    }
    if wire.file_ids.len() > FILES_MOST {
        return Err(bad("file_ids", format!("{FILES_MOST} files are the most")));
    }
    let mom = ready(&door)?;
    let rule = rule(wire.chunking_strategy)?;
    let metadata = pairs("metadata", wire.metadata)?;
    let limits = ingest::limits(&mom.spec.global.vector_store);
    let documents = &mom.shelf.store.documents;
    for id in &wire.file_ids {
        documents.file(asker.whose(), id).await?.ok_or_else(|| absent(id))?;
    }
    let name = wire.name.unwrap_or_default();
    let store = documents.make_store(asker.owner(), name, metadata, now(), limits).await?;
    for id in &wire.file_ids {
        attached(&door, &mom, &asker, &store.id, id, "{}".to_owned(), rule).await?;
    }
    Ok(answer(&shown(&mom, &asker, &store).await?))
}

/// `GET /v1/vector_stores`.
pub(crate) async fn list(
    State(door): State<Door>,
    asker: Asker,
    Said(wanted): Said<Wanted>,
) -> Result<Response, Refused> {
    let limit = said::limit(wanted.limit, LIST_USUAL, LIST_MOST)?;
    let mom = door.engine.serving();
    let stores = mom.shelf.store.documents.stores(asker.whose(), usize::MAX).await?;
    let mut rows = Vec::with_capacity(stores.len());
    for store in &stores {
        rows.push((store.id.as_str(), shown(&mom, &asker, store).await?));
    }
    Ok(answer(&page(&rows, limit, wanted.after.as_deref())))
}

/// `GET /v1/vector_stores/{id}`.
pub(crate) async fn one(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    let mom = door.engine.serving();
    let store = found(&mom, &asker, &id).await?;
    Ok(answer(&shown(&mom, &asker, &store).await?))
}

/// `POST /v1/vector_stores/{id}`.
pub(crate) async fn change(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
    body: Body,
) -> Result<Response, Refused> {
    let wire: StoreWire = read(&door, body).await?;
    let mom = door.engine.serving();
    let metadata = wire.metadata.map(|it| pairs("metadata", Some(it))).transpose()?;
    let changed = mom.shelf.store.documents.change_store(asker.whose(), &id, wire.name, metadata).await?;
    let store = changed.ok_or_else(|| no_store(&id))?;
    Ok(answer(&shown(&mom, &asker, &store).await?))
}

/// `DELETE /v1/vector_stores/{id}`.
pub(crate) async fn delete(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    if !door.engine.serving().shelf.store.documents.delete_store(asker.whose(), &id).await? {
        return Err(no_store(&id));
    }
    Ok(answer(&json!({"id": id, "object": "vector_store.deleted", "deleted": true})))
}

/// `POST /v1/vector_stores/{id}/files`.
pub(crate) async fn attach(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
    body: Body,
) -> Result<Response, Refused> {
    let wire: FileWire = read(&door, body).await?;
    let mom = ready(&door)?;
    let rule = rule(wire.chunking_strategy)?;
    let attributes = pairs("attributes", wire.attributes)?;
    let file = attached(&door, &mom, &asker, &id, &wire.file_id, attributes, rule).await?;
    Ok(answer(&shape::file(&file)))
}

/// `GET /v1/vector_stores/{id}/files`.
pub(crate) async fn files(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
    Said(wanted): Said<Wanted>,
) -> Result<Response, Refused> {
    let limit = said::limit(wanted.limit, LIST_USUAL, LIST_MOST)?;
    let files = of_store(&door.engine.serving(), &asker, &id).await?;
    let rows: Vec<_> = files.iter().map(|file| (file.file.as_str(), shape::file(file))).collect();
    Ok(answer(&page(&rows, limit, wanted.after.as_deref())))
}

/// `GET /v1/vector_stores/{id}/files/{file_id}`.
pub(crate) async fn file(
    State(door): State<Door>,
    asker: Asker,
    InPath((id, file)): InPath<(String, String)>,
) -> Result<Response, Refused> {
    let files = of_store(&door.engine.serving(), &asker, &id).await?;
    let found = files.iter().find(|it| it.file == file).ok_or_else(|| absent(&file))?;
    Ok(answer(&shape::file(found)))
}

/// `DELETE /v1/vector_stores/{id}/files/{file_id}`.
pub(crate) async fn detach(
    State(door): State<Door>,
    asker: Asker,
    InPath((id, file)): InPath<(String, String)>,
) -> Result<Response, Refused> {
    if !door.engine.serving().shelf.store.documents.detach(asker.whose(), &id, &file).await? {
        return Err(absent(&file));
    }
    Ok(answer(&json!({"id": file, "object": "vector_store.file.deleted", "deleted": true})))
}

/// `POST /v1/vector_stores/{id}/search`.
pub(crate) async fn search(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
    body: Body,
) -> Result<Response, Refused> {
    let wire: SearchWire = read(&door, body).await?;
    let question = question(&wire.query)?;
    let most = wire.max_num_results.unwrap_or(RESULTS_USUAL);
    if !(1..=RESULTS_MOST).contains(&most) {
        let text = format!("`max_num_results` must be in 1..={RESULTS_MOST}");
        return Err(bad("max_num_results", text));
    }
    let mom = ready(&door)?;
    let files = match &wire.filters {
        Some(filter) if !filter.is_null() => {
            let filter = Filter::read(filter).map_err(|why| bad("filters", why))?;
            let all = of_store(&mom, &asker, &id).await?;
            let admits = |file: &&AttachedFile| {
                serde_json::from_str(&file.attributes).is_ok_and(|attributes| filter.admits(&attributes))
            };
            Some(all.iter().filter(admits).map(|it| it.file.clone()).collect::<BTreeSet<_>>())
        }
        _ => None,
    };
    let found = ingest::find(&mom, asker.whose(), &id, &question, most, files).await?;
    let least = wire.ranking_options.and_then(|it| it.score_threshold).unwrap_or(0.0);
    let rows = found.ok_or_else(|| no_store(&id))?;
    let data: Vec<Value> = rows.iter().filter(|it| it.score >= least).map(shape::hit).collect();
    Ok(answer(&json!({
        "object": "vector_store.search_results.page", "search_query": [question], "data": data,
        "has_more": false, "next_page": null,
    })))
}

/// Attaches a file and begins to read it.
async fn attached(
    door: &Door,
    mom: &Arc<Mom>,
    asker: &Asker,
    store: &str,
    file: &str,
    attributes: String,
    rule: ChunkRule,
) -> Result<AttachedFile, Refused> {
    let documents = &mom.shelf.store.documents;
    match documents.attach(asker.whose(), store, file, attributes, rule, now()).await? {
        Attached::NoStore => Err(no_store(store)),
        Attached::NoFile => Err(absent(file)),
        Attached::New(it) => {
            door.engine.spawn(ingest::ingest(Arc::clone(mom), asker.whose(), it.clone()));
            Ok(it)
        }
    }
}

async fn found(mom: &Mom, asker: &Asker, id: &str) -> Result<VectorStore, Refused> {
    let found = mom.shelf.store.documents.store(asker.whose(), id).await?;
    found.filter(|it| it.id == id).ok_or_else(|| no_store(id))
}

async fn of_store(mom: &Mom, asker: &Asker, id: &str) -> Result<Vec<AttachedFile>, Refused> {
    mom.shelf.store.documents.attached(asker.whose(), id).await?.ok_or_else(|| no_store(id))
}

async fn shown(mom: &Mom, asker: &Asker, store: &VectorStore) -> Result<Value, Refused> {
    Ok(shape::store(store, &of_store(mom, asker, &store.id).await?))
}

/// The configuration, if it can encode.
fn ready(door: &Door) -> Result<Arc<Mom>, Refused> {
    let mom = door.engine.serving();
    if mom.classifiers.encoder().is_none() {
        let text = "no encoder is loaded: switch `global.stores.vector_store` on";
        return Err(Fault::new(Code::NotLoaded, text).into());
    }
    Ok(mom)
}

async fn read<T: DeserializeOwned>(door: &Door, body: Body) -> Result<T, Refused> {
    let bytes = body::read(body, &door.limits).await?;
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    let invalid =
        |why: serde_json::Error| Fault::new(Code::InvalidRequest, format!("the body cannot be read: {why}"));
    Ok(serde_json::from_slice(bytes).map_err(invalid)?)
}

fn rule(wire: Option<StrategyWire>) -> Result<ChunkRule, Refused> {
    let wrong = |why: String| bad("chunking_strategy", why);
    match wire {
        None => Ok(ChunkRule::default()),
        Some(it) if it.r#type == "auto" => Ok(ChunkRule::default()),
        Some(StrategyWire { r#static: Some(it), .. }) => {
            ChunkRule::new(it.max_chunk_size_tokens, it.chunk_overlap_tokens).map_err(wrong)
        }
        Some(_) => Err(wrong("the strategy must be `auto`, or `static` with its sizes".to_owned())),
    }
}

fn pairs(field: &str, pairs: Option<Map<String, Value>>) -> Result<String, Refused> {
    let pairs = pairs.unwrap_or_default();
    let is_plain = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    if pairs.len() > PAIRS_MOST || !pairs.values().all(is_plain) {
        return Err(bad(
            field,
            format!("`{field}` holds at most {PAIRS_MOST} texts, numbers or truth values"),
        ));
    }
    Ok(Value::Object(pairs).to_string())
}

fn question(query: &Value) -> Result<String, Refused> {
    let text = match query {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    if text.trim().is_empty() || text.chars().count() > QUERY_MOST {
        let text =
            format!("`query` must be a text of at most {QUERY_MOST} characters (max_query_characters)");
        return Err(bad("query", text));
    }
    Ok(text)
}

fn no_store(id: &str) -> Refused {
    not_found("vector_store_not_found", "vector store", id)
}
