//! From the bytes of one of our artifacts to a selector. It knows every predictor; the format is `card.rs`.

use super::card::{Tables, open};
use super::guard::{Anchors, Guard};
use super::{ArtifactFault, Features, Kind, Learned, Predictor, kmeans, knn, mlp, svm};
use chorus_vectors::Coded;

pub(super) fn parse(bytes: &[u8]) -> Result<Learned, ArtifactFault> {
    let (card, tables) = open(bytes)?;
    let predictor: Box<dyn Predictor> = match card.algorithm {
        Kind::Knn => Box::new(knn::Knn::read(&card, &tables)?),
        Kind::Kmeans => Box::new(kmeans::Kmeans::read(&card, &tables)?),
        Kind::Svm => Box::new(svm::Linear::read(&card, &tables)?),
        Kind::Mlp => Box::new(mlp::Mlp::read(&card, &tables)?),
    };
    let anchors = if tables.has("anchors") { Some(anchors(&tables, card.dimension)?) } else { None };
    Ok(Learned {
        features: Features::plain(card.dimension),
        predictor,
        guard: card.guard.map(|it| Guard::new(it, anchors)),
        efficiency_weight: card.efficiency_weight,
        card,
    })
}

fn anchors(tables: &Tables<'_>, dimension: usize) -> Result<Anchors, ArtifactFault> {
    let points = tables.get("anchors", dimension)?;
    let spreads = tables.get("spread", 1)?;
    if points.rows != spreads.rows {
        return Err(ArtifactFault::Unreadable("it has not as many spreads as anchors".to_owned()));
    }
    Ok(Anchors { points: Coded::of(&points.values, dimension), spreads: spreads.values })
}
