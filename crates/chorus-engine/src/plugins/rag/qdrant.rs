//! A collection of a Qdrant server that somebody else fills. What is in it is everybody's who may use the route.
//!
//! Source: Qdrant REST API, `POST /collections/{name}/points/query`.

use super::super::at_work::Scene;
use super::super::likeness::Likeness;
use super::super::vector;
use super::Passage;
use super::fault::RagFault;
use chorus_spec::{QdrantSearch, RagSettings};
use chorus_store::{ForeignCollection, QdrantFault};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Fields by which a payload may say what its text is of.
const SOURCES: [&str; 4] = ["source", "filename", "title", "url"];

pub(super) async fn search(
    settings: &RagSettings,
    it: &QdrantSearch,
    scene: &Scene,
    question: &str,
) -> Result<Vec<Passage>, RagFault> {
    let link = scene.mom.backends.qdrant(&it.place, &scene.mom.env)?;
    let vector = vector::of(scene, question).await.ok_or(RagFault::NoVector)?;
    let collection = ForeignCollection::new(Arc::new(link), &it.place.collection);
    let found = collection.nearest(&vector, settings.top_k).await.map_err(|fault| match fault {
        QdrantFault::NotFound => RagFault::NoStore(it.place.collection.clone()),
        QdrantFault::Failed(why) => RagFault::Store(chorus_store::RecallFault::Io(why)),
    })?;
    let likeness = Likeness::of(&scene.mom);
    let rows = found.into_iter();
    Ok(rows.filter_map(|(payload, score)| passage(&payload, it, likeness.scaled(score))).collect())
}

fn passage(payload: &Map<String, Value>, it: &QdrantSearch, score: f64) -> Option<Passage> {
    let text = |field: &str| payload.get(field).and_then(Value::as_str).map(str::to_owned);
    let source = SOURCES.iter().find_map(|field| text(field)).unwrap_or_default();
    Some(Passage { text: text(&it.content_field)?, source, score: Some(score) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::QdrantPlace;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_payload_is_a_passage_where_it_has_the_text() {
        let place = QdrantPlace {
            host: "h".to_owned(),
            port: 1,
            api_key: None,
            tls: false,
            timeout: Duration::from_secs(1),
            collection: "c".to_owned(),
        };
        let it = QdrantSearch { place, content_field: "body".to_owned() };
        let read = |payload: Value| passage(payload.as_object().unwrap(), &it, 0.5);
        let found = read(json!({"body": "High tide is at noon.", "title": "tides.md", "n": 1})).unwrap();
        assert_eq!((found.text.as_str(), found.source.as_str()), ("High tide is at noon.", "tides.md"));
        assert_eq!(found.score, Some(0.5));
        assert_eq!(read(json!({"content": "elsewhere"})), None);
    }
}
