//! Which tools are relevant to a task.

use super::super::at_work::Scene;
use super::super::likeness::Likeness;
use super::super::vector;
use crate::fault::{Code, Fault};
use chorus_policy::Verdict;
use chorus_recall::tools::{Shares, Task, ToolCard, best_first, relevance};
use chorus_spec::{Family, ToolSelectionSettings};
use std::sync::Arc;

/// A tool and its relevance.
#[derive(Debug)]
pub(super) struct Weighed {
    /// Its place among the tools that were weighed.
    pub(super) place: usize,
    pub(super) name: String,
    /// All measures by their shares, in 0..=1.
    pub(super) score: f64,
    /// Whether it passes every bound of the route.
    pub(super) is_relevant: bool,
}

/// Weighs tools, most relevant first.
///
/// # Errors
/// Meaning counts, and the task cannot be encoded.
pub(super) async fn weigh(
    settings: &ToolSelectionSettings,
    scene: &Scene,
    task: &str,
    cards: Vec<&ToolCard>,
) -> Result<Vec<Weighed>, Fault> {
    let filtering = &settings.filtering;
    let weights = filtering.weights;
    let shares = Shares {
        embed: weights.embed,
        lexical: weights.lexical,
        tag: weights.tag,
        name: weights.name,
        category: weights.category,
    };
    let meaning = if weights.embed > 0.0 { Some(meanings(scene, task, &cards).await?) } else { None };
    let domain = filtering.by_category.and_then(|least| domain(scene, least));
    let asked = Task { text: task, category: domain.as_deref() };
    let rows: Vec<_> = cards
        .iter()
        .enumerate()
        .map(|(at, card)| {
            let meaning = meaning.as_ref().and_then(|all| all.get(at)).copied();
            relevance(asked, card, meaning, &shares)
        })
        .collect();
    let pool = pool(&rows.iter().map(|it| it.meaning).collect::<Vec<_>>(), filtering.candidate_pool);
    let in_domain = |card: &ToolCard| {
        domain.as_ref().is_none_or(|it| card.category.is_empty() || card.category.eq_ignore_ascii_case(it))
    };
    let scores: Vec<f64> = rows.iter().map(|it| it.combined).collect();
    let weighed = best_first(&scores).into_iter().filter_map(|at| {
        let (row, card) = (rows.get(at)?, cards.get(at)?);
        let near = if meaning.is_some() { row.meaning } else { row.combined };
        let is_relevant = near >= settings.threshold
            && row.combined >= filtering.min_combined_score
            && row.overlap >= filtering.min_lexical_overlap
            && in_domain(card)
            && pool.contains(&at);
        Some(Weighed { place: at, name: card.name.clone(), score: row.combined, is_relevant })
    });
    Ok(weighed.collect())
}

/// The places that are looked at closer.
fn pool(meaning: &[f64], size: usize) -> Vec<usize> {
    let mut order = best_first(meaning);
    if size > 0 {
        order.truncate(size);
    }
    order
}

/// How alike the task and each tool are, in 0..=1.
async fn meanings(scene: &Scene, task: &str, cards: &[&ToolCard]) -> Result<Vec<f64>, Fault> {
    let likeness = Likeness::of(&scene.mom);
    let shelf = &scene.mom.shelf;
    let encoder = likeness.encoder().unwrap_or_default();
    let texts: Vec<String> = cards.iter().map(|card| card.text()).collect();
    let known: Vec<Option<Arc<Vec<f32>>>> =
        texts.iter().map(|text| shelf.tool_vector(encoder, text)).collect();
    let unknown = texts.iter().zip(&known).filter(|(_, known)| known.is_none());
    let unknown: Vec<String> = unknown.map(|(text, _)| text.clone()).collect();
    let task = vector::of(scene, task).await.ok_or_else(untold)?;
    let mut read = likeness.vectors(unknown).await?.into_iter();
    let rows = texts.iter().zip(known).map(|(text, known)| {
        let vector =
            known.unwrap_or_else(|| shelf.keep_tool_vector(encoder, text, read.next().unwrap_or_default()));
        likeness.between(&vector, &task)
    });
    Ok(rows.collect())
}

fn untold() -> Fault {
    Fault::new(Code::NotLoaded, "the task cannot be encoded")
}

/// The task's domain, where it is known at least that well.
fn domain(scene: &Scene, least: f64) -> Option<String> {
    let verdict: &Verdict = &scene.routed.decided.as_ref()?.verdict;
    let matched = verdict
        .matched
        .iter()
        .filter(|(key, confidence)| key.family == Family::Domain && *confidence >= least);
    matched.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(key, _)| key.name().to_owned())
}
