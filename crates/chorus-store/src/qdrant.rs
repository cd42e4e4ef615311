//! A collection of a Qdrant server: points with a vector and a payload, over its HTTP API.
//!
//! How a question reaches the server is somebody else's ([`QdrantLink`]); it knows no address and no key. A collection that is
//! not there holds nothing, and is made when the first point comes. **Invariant:** no fault repeats a payload.
//!
//! Source: Qdrant REST API: `PUT /collections/{name}`, `PUT …/index`, `PUT …/points`, `POST …/points/{query,scroll,delete,count,
//! payload,batch}`.

#[cfg(test)]
pub(crate) mod fake;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points that one step of a scroll gives.
const PAGE: usize = 256;

/// A question to the server.
#[derive(Debug, Clone, PartialEq)]
pub struct QdrantAsk {
    /// The method of HTTP.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// The body.
    pub body: Option<Value>,
}

/// Why the server did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QdrantFault {
    /// The collection is not there.
    #[error("there is no such collection")]
    NotFound,
    /// Anything else, without an address and without what was sent.
    #[error("{0}")]
    Failed(String),
}

/// Carries questions to one server.
pub trait QdrantLink: std::fmt::Debug + Send + Sync {
    /// What the server answers.
    fn ask(&self, it: QdrantAsk) -> BoxFuture<'_, Result<Value, QdrantFault>>;
}

/// A field of payloads by which points are looked for, and how the server keeps it in order.
pub(crate) type Field = (&'static str, fn() -> Value);

/// A field of names.
pub(crate) fn keyword() -> Value {
    json!("keyword")
}

/// A field of names, each of which has points of its own that lie together.
pub(crate) fn tenant() -> Value {
    json!({"type": "keyword", "is_tenant": true})
}

/// A field of numbers.
pub(crate) fn integer() -> Value {
    json!("integer")
}

/// A condition that a field has that value.
pub(crate) fn is(field: &str, value: impl Into<Value>) -> Value {
    json!({"key": field, "match": {"value": value.into()}})
}

/// A condition that a field has a number below that one.
pub(crate) fn below(field: &str, number: u64) -> Value {
    json!({"key": field, "range": {"lt": number}})
}

/// A condition that a field has that number or a greater one.
pub(crate) fn at_least(field: &str, number: u64) -> Value {
    json!({"key": field, "range": {"gte": number}})
}

/// A condition that a field has one of these values.
pub(crate) fn is_one_of<'a>(field: &str, values: impl Iterator<Item = &'a str>) -> Value {
    json!({"key": field, "match": {"any": values.collect::<Vec<_>>()}})
}

/// A condition that a point has one of these ids.
pub(crate) fn has_id(ids: &[String]) -> Value {
    json!({"has_id": ids})
}

/// All of these conditions.
pub(crate) fn all(conditions: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([("must".to_owned(), Value::Array(conditions))]))
}

/// A point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) id: String,
    pub(crate) payload: Map<String, Value>,
    /// Empty where it was not asked for.
    pub(crate) vector: Vec<f32>,
    /// Its cosine, where it was looked for by a vector.
    pub(crate) cosine: f64,
}

impl Point {
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.payload.get(field).and_then(Value::as_str)
    }

    pub(crate) fn number(&self, field: &str) -> Option<u64> {
        self.payload.get(field).and_then(Value::as_u64)
    }
}

/// A collection of a server.
#[derive(Debug)]
pub(crate) struct Collection {
    link: Arc<dyn QdrantLink>,
    name: String,
    fields: &'static [Field],
    /// Whether it is known to be there and as it should be.
    ready: AtomicBool,
}

impl Collection {
    pub(crate) fn of(link: Arc<dyn QdrantLink>, name: String, fields: &'static [Field]) -> Self {
        Self { link, name, fields, ready: AtomicBool::new(false) }
    }

    /// Keeps points, in place of those of the same ids.
    pub(crate) async fn upsert(&self, points: Vec<Value>, width: usize) -> Result<(), QdrantFault> {
        self.make_ready(width).await?;
        let kept = self.ask("PUT", "/points?wait=true", Some(json!({"points": points}))).await;
        if matches!(kept, Err(QdrantFault::NotFound)) {
            // It was deleted since: the next one makes it again.
            self.ready.store(false, Ordering::Relaxed);
        }
        kept.map(drop)
    }

    /// The nearest points that meet the condition, nearest first.
    pub(crate) async fn nearest(
        &self,
        vector: &[f32],
        filter: Value,
        most: usize,
        with_vector: bool,
    ) -> Result<Vec<Point>, QdrantFault> {
        let body = json!({
            "query": vector, "filter": filter, "limit": most, "with_payload": true, "with_vector": with_vector,
        });
        let found = self.read("/points/query", body).await?;
        points(found.pointer("/points"))
    }

    /// The points that meet the condition, at most so many, in no order.
    pub(crate) async fn scroll(
        &self,
        filter: Value,
        most: usize,
        with_vector: bool,
    ) -> Result<Vec<Point>, QdrantFault> {
        self.pages(filter, most, json!(true), with_vector).await
    }

    /// The same without vectors, and without one field of their payloads.
    pub(crate) async fn without(
        &self,
        field: &str,
        filter: Value,
        most: usize,
    ) -> Result<Vec<Point>, QdrantFault> {
        self.pages(filter, most, json!({"exclude": [field]}), false).await
    }

    async fn pages(
        &self,
        filter: Value,
        most: usize,
        with_payload: Value,
        with_vector: bool,
    ) -> Result<Vec<Point>, QdrantFault> {
        let (mut all, mut offset) = (Vec::new(), Value::Null);
        while all.len() < most {
            let body = json!({
                "filter": filter, "limit": PAGE.min(most - all.len()), "offset": offset,
                "with_payload": with_payload, "with_vector": with_vector,
            });
            let page = self.read("/points/scroll", body).await?;
            all.extend(points(page.pointer("/points"))?);
            offset = page.get("next_page_offset").cloned().unwrap_or_default();
            if offset.is_null() {
                break;
            }
        }
        Ok(all)
    }

    /// The points that meet the condition, those with the greatest number in a field first, at most so many.
    pub(crate) async fn latest(
        &self,
        filter: Value,
        field: &str,
        most: usize,
    ) -> Result<Vec<Point>, QdrantFault> {
        self.ordered(filter, (field, "desc"), most, true).await
    }

    /// The points that meet the condition, those with the smallest number in a field first, at most so many, without their
    /// payloads.
    pub(crate) async fn earliest(
        &self,
        filter: Value,
        field: &str,
        most: usize,
    ) -> Result<Vec<Point>, QdrantFault> {
        self.ordered(filter, (field, "asc"), most, false).await
    }

    /// The points that are too much where no more than `most` may meet the condition, at most `part` of them: those with the
    /// smallest number in a field. They are counted once they are known, so what another replica takes out meanwhile is not
    /// taken out twice.
    pub(crate) async fn too_much(
        &self,
        filter: &Value,
        field: &str,
        most: usize,
        part: usize,
    ) -> Result<Vec<String>, QdrantFault> {
        let over = async || Ok(self.count(filter.clone()).await?.saturating_sub(most));
        let some = over().await?.min(part);
        if some == 0 {
            return Ok(Vec::new());
        }
        let earliest = self.earliest(filter.clone(), field, some).await?;
        let over = over().await?;
        Ok(earliest.into_iter().take(over).map(|point| point.id).collect())
    }

    async fn ordered(
        &self,
        filter: Value,
        (field, direction): (&str, &str),
        most: usize,
        with_payload: bool,
    ) -> Result<Vec<Point>, QdrantFault> {
        let body = json!({
            "filter": filter, "limit": most, "with_payload": with_payload, "with_vector": false,
            "order_by": {"key": field, "direction": direction},
        });
        points(self.read("/points/scroll", body).await?.pointer("/points"))
    }

    /// How many points meet the condition.
    pub(crate) async fn count(&self, filter: Value) -> Result<usize, QdrantFault> {
        let counted = self.read("/points/count", json!({"filter": filter, "exact": true})).await?;
        Ok(counted.get("count").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
    }

    /// Deletes the points that meet the condition.
    pub(crate) async fn delete(&self, filter: Value) -> Result<(), QdrantFault> {
        self.read("/points/delete?wait=true", json!({"filter": filter})).await.map(drop)
    }

    /// Changes fields of points, each by its id; nobody waits until all copies have it.
    pub(crate) async fn change(&self, changes: Vec<(String, Value)>) -> Result<(), QdrantFault> {
        let change =
            |(id, payload): (String, Value)| json!({"set_payload": {"payload": payload, "points": [id]}});
        let operations: Vec<Value> = changes.into_iter().map(change).collect();
        self.read("/points/batch", json!({"operations": operations})).await.map(drop)
    }

    /// Deletes the collection.
    pub(crate) async fn drop_all(&self) -> Result<(), QdrantFault> {
        self.ready.store(false, Ordering::Relaxed);
        self.ask("DELETE", "", None).await.map(drop)
    }

    /// Makes the collection where it is not there, and sees that its vectors have that width.
    async fn make_ready(&self, width: usize) -> Result<(), QdrantFault> {
        if self.ready.load(Ordering::Relaxed) {
            return Ok(());
        }
        let there = match self.ask("GET", "", None).await {
            Err(QdrantFault::NotFound) => {
                self.make(width).await;
                self.ask("GET", "", None).await?
            }
            other => other?,
        };
        let has = there.pointer("/config/params/vectors/size").and_then(Value::as_u64);
        if has != Some(width as u64) {
            let has = has
                .map_or_else(|| "vectors of another kind".to_owned(), |n| format!("vectors of {n} numbers"));
            let name = &self.name;
            return Err(QdrantFault::Failed(format!(
                "the collection `{name}` holds {has}, the encoder makes {width}"
            )));
        }
        for (field, schema) in self.fields {
            let body = json!({"field_name": field, "field_schema": schema()});
            self.ask("PUT", "/index?wait=true", Some(body)).await?;
        }
        self.ready.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether another replica was faster shows when it is looked at again.
    async fn make(&self, width: usize) {
        let body = json!({"vectors": {"size": width, "distance": "Cosine"}});
        if let Err(fault) = self.ask("PUT", "", Some(body)).await {
            tracing::warn!(%fault, collection = self.name, "a collection cannot be made");
        }
    }

    /// As [`ask`](Self::ask); a collection that is not there holds nothing.
    async fn read(&self, path: &str, body: Value) -> Result<Value, QdrantFault> {
        match self.ask("POST", path, Some(body)).await {
            Err(QdrantFault::NotFound) => Ok(Value::Null),
            other => other,
        }
    }

    async fn ask(&self, method: &'static str, rest: &str, body: Option<Value>) -> Result<Value, QdrantFault> {
        let path = format!("/collections/{}{rest}", self.name);
        let mut answer = self.link.ask(QdrantAsk { method, path, body }).await?;
        Ok(answer.get_mut("result").map(Value::take).unwrap_or_default())
    }
}

/// A collection that somebody else fills: it is looked up and never changed.
#[derive(Debug)]
pub struct ForeignCollection(Collection);

impl ForeignCollection {
    /// The collection of that name; nothing is sent yet.
    #[must_use]
    pub fn new(link: Arc<dyn QdrantLink>, name: &str) -> Self {
        Self(Collection::of(link, name.to_owned(), &[]))
    }

    /// The payloads of the points that are nearest to a vector, nearest first, each with its score.
    ///
    /// # Errors
    /// [`QdrantFault`], also where there is no such collection.
    pub async fn nearest(
        &self,
        vector: &[f32],
        most: usize,
    ) -> Result<Vec<(Map<String, Value>, f64)>, QdrantFault> {
        let body = json!({"query": vector, "limit": most, "with_payload": true, "with_vector": false});
        let found = self.0.ask("POST", "/points/query", Some(body)).await?;
        Ok(points(found.pointer("/points"))?.into_iter().map(|it| (it.payload, it.cosine)).collect())
    }
}

/// Points of an answer; one that cannot be read is an answer that cannot.
fn points(found: Option<&Value>) -> Result<Vec<Point>, QdrantFault> {
    let Some(found) = found else { return Ok(Vec::new()) };
    let malformed = || QdrantFault::Failed("the server's answer cannot be read".to_owned());
    let point = |it: &Value| {
        let vector = it.get("vector").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Some(Point {
            id: it.get("id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned))?,
            payload: it.get("payload").and_then(Value::as_object).cloned().unwrap_or_default(),
            #[expect(clippy::cast_possible_truncation, reason = "they were written as such")]
            vector: vector.iter().map(|x| x.as_f64().unwrap_or_default() as f32).collect(),
            cosine: it.get("score").and_then(Value::as_f64).unwrap_or_default(),
        })
    };
    let all = found.as_array().ok_or_else(malformed)?;
    all.iter().map(|it| point(it).ok_or_else(malformed)).collect()
}
