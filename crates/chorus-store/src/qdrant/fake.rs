//! A Qdrant server in memory, for tests: what collections of this crate ask, with the conditions that they use, answered in
//! the shapes of Qdrant's REST API. It writes down every question.

use super::{QdrantAsk, QdrantFault, QdrantLink};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Debug, Default)]
pub(crate) struct FakeQdrant {
    pub(crate) asked: Mutex<Vec<QdrantAsk>>,
    collections: Mutex<BTreeMap<String, Kept>>,
    ignores_conditions: bool,
}

#[derive(Debug)]
struct Kept {
    width: usize,
    points: BTreeMap<String, Value>,
}

impl QdrantLink for FakeQdrant {
    fn ask(&self, it: QdrantAsk) -> BoxFuture<'_, Result<Value, QdrantFault>> {
        self.asked.lock().unwrap().push(it.clone());
        let answer = self.answer(&it).map(|result| json!({"result": result, "status": "ok", "time": 0.001}));
        std::future::ready(answer).boxed()
    }
}

impl FakeQdrant {
    /// One that gives points whatever the condition, as a server that is broken would.
    pub(crate) fn without_conditions() -> Self {
        Self { ignores_conditions: true, ..Self::default() }
    }

    pub(crate) fn collections(&self) -> Vec<String> {
        self.collections.lock().unwrap().keys().cloned().collect()
    }

    fn answer(&self, it: &QdrantAsk) -> Result<Value, QdrantFault> {
        let path = it.path.split('?').next().unwrap().strip_prefix("/collections/").unwrap();
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let body = it.body.clone().unwrap_or_default();
        let mut collections = self.collections.lock().unwrap();
        if (it.method, rest) == ("PUT", "") {
            let width = body["vectors"]["size"].as_u64().unwrap() as usize;
            collections.entry(name.to_owned()).or_insert(Kept { width, points: BTreeMap::new() });
            return Ok(json!(true));
        }
        let kept = collections.get_mut(name).ok_or(QdrantFault::NotFound)?;
        let meets = |id: &str, point: &Value| {
            let conditions = body["filter"]["must"].as_array().cloned().unwrap_or_default();
            let reads = matches!(rest, "points/scroll" | "points/query");
            (self.ignores_conditions && reads) || conditions.iter().all(|it| meets(it, id, &point["payload"]))
        };
        match (it.method, rest) {
            ("GET", "") => {
                Ok(json!({"config": {"params": {"vectors": {"size": kept.width, "distance": "Cosine"}}}}))
            }
            ("DELETE", "") => {
                collections.remove(name);
                Ok(json!(true))
            }
            ("PUT", "index") => Ok(json!({"status": "completed"})),
            ("PUT", "points") => {
                for point in body["points"].as_array().unwrap() {
                    assert_eq!(point["vector"].as_array().unwrap().len(), kept.width);
                    kept.points.insert(point["id"].as_str().unwrap().to_owned(), point.clone());
                }
                Ok(json!({"status": "completed"}))
            }
            ("POST", "points/delete") => {
                kept.points.retain(|id, point| !meets(id, point));
                Ok(json!({"status": "completed"}))
            }
            ("POST", "points/batch") => {
                for operation in body["operations"].as_array().unwrap() {
                    let set = &operation["set_payload"];
                    let point = kept.points.get_mut(set["points"][0].as_str().unwrap()).unwrap();
                    for (field, value) in set["payload"].as_object().unwrap() {
                        point["payload"][field] = value.clone();
                    }
                }
                Ok(json!([]))
            }
            ("POST", "points/count") => {
                Ok(json!({"count": kept.points.iter().filter(|(id, point)| meets(id, point)).count()}))
            }
            ("POST", "points/scroll" | "points/query") => {
                let mut found: Vec<Value> =
                    kept.points.iter().filter(|(id, it)| meets(id, it)).map(|(_, it)| it.clone()).collect();
                Ok(page(&mut found, rest, &body))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn page(found: &mut [Value], rest: &str, body: &Value) -> Value {
    if rest == "points/query" {
        let cosine = |it: &Value| -> f64 {
            let pairs = it["vector"].as_array().unwrap().iter().zip(body["query"].as_array().unwrap());
            pairs.map(|(a, b)| a.as_f64().unwrap() * b.as_f64().unwrap()).sum()
        };
        found.iter_mut().for_each(|it| it["score"] = json!(cosine(it)));
        found.sort_by(|a, b| b["score"].as_f64().unwrap().total_cmp(&a["score"].as_f64().unwrap()));
    } else if let Some(field) = body["order_by"]["key"].as_str() {
        found.sort_by_key(|it| it["payload"][field].as_u64());
        if body["order_by"]["direction"] == "desc" {
            found.reverse();
        }
    }
    let from = body["offset"].as_str().map_or(0, |id| found.iter().position(|it| it["id"] == id).unwrap());
    let limit = body["limit"].as_u64().unwrap() as usize;
    let next = found.get(from + limit).map_or(Value::Null, |it| it["id"].clone());
    let mut shown: Vec<Value> = found.iter().skip(from).take(limit).cloned().collect();
    if body["with_vector"] != true {
        shown.iter_mut().for_each(|it| it["vector"] = Value::Null);
    }
    json!({"points": shown, "next_page_offset": next})
}

fn meets(condition: &Value, id: &str, payload: &Value) -> bool {
    if let Some(ids) = condition["has_id"].as_array() {
        return ids.iter().any(|it| it == id);
    }
    let value = &payload[condition["key"].as_str().unwrap()];
    if let Some(most) = condition["range"]["lt"].as_u64() {
        return value.as_u64().is_some_and(|it| it < most);
    }
    if let Some(least) = condition["range"]["gte"].as_u64() {
        return value.as_u64().is_some_and(|it| it >= least);
    }
    match (&condition["match"]["value"], condition["match"]["any"].as_array()) {
        (_, Some(any)) => any.contains(value),
        (wanted, None) => wanted == value,
    }
}
