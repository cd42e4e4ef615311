//! A vector store of this process.

use super::super::at_work::Scene;
use super::super::likeness::Likeness;
use super::super::vector;
use super::Passage;
use super::fault::RagFault;
use chorus_spec::RagSettings;
use chorus_store::Whose;
use chorus_store::documents::Question;

pub(super) async fn search(
    settings: &RagSettings,
    scene: &Scene,
    store: &str,
    file_ids: &[String],
    question: &str,
) -> Result<Vec<Passage>, RagFault> {
    let likeness = Likeness::of(&scene.mom);
    let vector = vector::of(scene, question).await.ok_or(RagFault::NoVector)?;
    let encoder = likeness.encoder().unwrap_or_default().to_owned();
    let whose = Whose::SharedOr(scene.caller().map(|caller| caller.user().to_owned()));
    let documents = &scene.mom.shelf.store.documents;
    let no_store = || RagFault::NoStore(store.to_owned());
    let found = documents.store(whose.clone(), store).await?.ok_or_else(no_store)?;
    let files = (!file_ids.is_empty()).then(|| file_ids.iter().cloned().collect());
    let wanted = Question { store: found.id, encoder, vector, most: settings.top_k, files };
    let hits = documents.search(whose, wanted).await?.ok_or_else(no_store)?;
    let passage = |hit: chorus_store::documents::Hit| Passage {
        score: Some(likeness.scaled(hit.cosine)),
        text: hit.text,
        source: hit.name,
    };
    Ok(hits.into_iter().map(passage).collect())
}
