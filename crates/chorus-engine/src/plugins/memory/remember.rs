//! What is kept of a user's message.

use super::super::at_work::Scene;
use super::super::likeness::Likeness;
use super::block::{Blocked, is_private};
use super::{Reader, now};
use crate::mom::Mom;
use chorus_recall::statements::statements;
use chorus_spec::MemorySettings;
use chorus_store::{KeepRule, Kept, Statement};
use chorus_wire::{ChatRequest, Message, Role};
use serde::Serialize;

/// Least score of a personal datum that keeps a statement from being remembered, in 0..=1.
const PRIVATE_SCORE: f64 = 0.5;

/// What was done, for the record; no word of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Remembered {
    /// Ids of new memories.
    stored: Vec<String>,
    /// Ids of memories that said the same.
    restated: Vec<String>,
    /// Statements that may not be kept: a blocked pattern, a secret, personal data, or an attempt to give orders.
    blocked: usize,
    /// Why statements could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Remembers the lasting statements of the user's last message.
pub(super) async fn remember(settings: &MemorySettings, reader: &Reader<'_>, scene: &Scene) -> Remembered {
    let mut done = Remembered::default();
    let stated = statements(reader.question);
    let patterns = Blocked::of(&settings.reflection.block_patterns);
    let mut kept = Vec::new();
    for text in stated {
        if patterns.finds(text) || !is_harmless(&scene.mom, text).await {
            done.blocked += 1;
        } else {
            kept.push(text.to_owned());
        }
    }
    if let Err(why) = keep(settings, reader, scene, kept, &mut done).await {
        tracing::warn!(why, "statements cannot be remembered");
        done.failed = Some("memory_unavailable".to_owned());
    }
    done
}

async fn keep(
    settings: &MemorySettings,
    reader: &Reader<'_>,
    scene: &Scene,
    texts: Vec<String>,
    done: &mut Remembered,
) -> Result<(), String> {
    let likeness = Likeness::of(&scene.mom);
    let vectors = likeness.vectors(texts.clone()).await.map_err(|fault| fault.public)?;
    let quality = settings.quality;
    let rule = KeepRule {
        same_cosine: likeness.cosine(settings.reflection.dedup_threshold),
        most: quality.max_memories_per_user,
        initial_days: quality.initial_strength_days,
        least_strength: quality.prune_threshold,
    };
    for (text, vector) in texts.into_iter().zip(vectors) {
        let statement = Statement {
            user: reader.user.to_owned(),
            text,
            encoder: reader.encoder.to_owned(),
            vector,
            at: now(),
            run: Some(scene.run.clone()),
        };
        let kept = scene.mom.shelf.store.memories.keep(statement, rule).await;
        match kept.map_err(|fault| fault.to_string())? {
            Kept::New(id) => done.stored.push(id),
            Kept::Known(id) => done.restated.push(id),
        }
    }
    Ok(())
}

/// Whether a statement holds no secret, no datum by which others could do harm, and no order to a model. What cannot be
/// looked at is not kept.
async fn is_harmless(mom: &Mom, text: &str) -> bool {
    let found = mom.classifiers.personal_data(text.to_owned(), PRIVATE_SCORE, Vec::new()).await;
    let Ok((found, _)) = found else { return false };
    if found.iter().any(|it| is_private(it.entity.name())) {
        return false;
    }
    let request = ChatRequest::new("memory", vec![Message::new(Role::User, text)]);
    mom.classifiers.attempts(request).await.is_ok_and(|families| families.is_empty())
}
