//! `response_cache`: a request is given the answer to an earlier one, the same or of the same meaning.
//!
//! *When:* before anybody is called; on a route that adds what it knows of the user, after that was added, and only with
//! `personalized: {mode: exact}`. An answer is stored once all of it has left.
//! *Cost:* a digest; by meaning also an encoder pass, unless a signal has made it, and a scan of the answers to the same
//! question in other words.
//! *Fails when:* nothing: a lookup that cannot be made is a miss. Without an encoder only the very same request is found.
//! *Source:* contract §1.10; cases F01, F02, F04–F09.
//!
//! The very same request is given the same answer where a route says so by `semantic` or `exact_then_semantic`; by `exact`
//! only where an answer would repeat itself anyway (`temperature: 0`, or a `seed`) or the client asks for it.
//!
//! It knows keys through `chorus_cache` alone. **Invariant:** whose answer it is, is part of every key; a request of
//! nobody known is never given the answer of somebody known.

mod wishes;
mod worth;

use super::at_work::{Answered, Asking, AtWork, Scene};
use super::notes::Notes;
use super::vector;
use crate::answer_cache::{Exact, Outcome, Put};
use crate::fault::Fault;
use crate::mom::Mom;
use crate::turns;
use chorus_cache::{
    Difference, Found, Keys, Labels, Least, NewAnswer, Question, Reading, Whose, Worded, difference, keys,
    least_alike, shared,
};
use chorus_collab::{Answer, Reply};
use chorus_signals::{Calibration, Caller, language_of};
use chorus_spec::{CacheMode, CacheScope, CacheSettings, Digest, Permille, Plugin};
use chorus_wire::{ChatReply, ChatRequest, Usage};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use wishes::Wishes;

/// Least similarity of an answer to a request of the same meaning, on the scale of configuration files, where the file
/// names none; of one that shares no word with it. Source: `chorus lab cache-eval --data`.
pub const SIMILARITY: Permille = Permille(765);

/// Longest message that is looked up by meaning, in bytes (`cache_text_bytes`): a vector says too little of a longer one.
pub const CACHE_TEXT_BYTES: usize = 2_048;

const KIND: &str = "response_cache";

/// Said where the server that keeps the answers cannot be asked.
const UNANSWERED: &str = "the store did not answer";

/// The cache at work on one request.
pub(crate) struct ResponseCache {
    settings: CacheSettings,
    /// Whether it looks at the request as models would get it.
    enriched: bool,
    plan: Option<Plan>,
}

/// What was found out at the lookup, for storing the answer.
struct Plan {
    keys: Keys,
    worded: Option<Worded>,
    ttl: Duration,
    owner: Owner,
    epoch: u64,
}

/// Whose answer it will be.
enum Owner {
    Everybody,
    NobodyKnown,
    Known(String),
}

impl Owner {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Known(name) => Some(name),
            Self::Everybody | Self::NobodyKnown => None,
        }
    }

    fn whose(&self) -> Whose<'_> {
        match self {
            Self::Everybody => Whose::Everybody,
            Self::NobodyKnown | Self::Known(_) => Whose::Of(self.name()),
        }
    }
}

impl ResponseCache {
    /// The plugin among those of its route.
    pub(crate) fn of(settings: &CacheSettings, route: &[Plugin]) -> Self {
        Self { settings: settings.clone(), enriched: turns::enriches(route), plan: None }
    }

    async fn look_up(&mut self, ask: &mut Asking<'_>) -> Option<Answer> {
        let (scene, cache) = (ask.scene, Arc::clone(&ask.scene.mom.answer_cache));
        let wishes = Wishes::of(&scene.controls, &self.settings.controls);
        let owner = match self.owner(scene, ask.request, wishes) {
            Ok(owner) => owner,
            Err(why) => {
                cache.count(Outcome::Skipped);
                ask.notes.did(KIND, &json!({"skipped": why}));
                return None;
            }
        };
        let store = &scene.mom.spec.global.response_cache;
        let keys = self.keys(scene, ask.request, owner.whose());
        let max_age = wishes.max_age.map(millis);
        let exact = if wishes.lookup {
            cache.exact(&keys.exact, max_age, store.eviction).await
        } else {
            Exact { epoch: cache.epoch().await, found: None }
        };
        let hit = exact.found.and_then(|found| self.given(found, "exact", ask.notes));
        if hit.is_some() {
            cache.count(Outcome::Exact);
            return hit;
        }
        let Some(epoch) = exact.epoch else {
            cache.count(Outcome::Miss);
            ask.notes.did(KIND, &json!({"hit": false, "failed": UNANSWERED}));
            return None;
        };
        let worded = self.worded(scene, &keys).await;
        if wishes.lookup {
            let found = self.by_meaning(scene, worded.as_ref(), max_age, ask.notes).await;
            if let Some(hit) = found.and_then(|found| self.given(found, "semantic", ask.notes)) {
                cache.count(Outcome::Semantic);
                return Some(hit);
            }
            cache.count(Outcome::Miss);
        } else {
            cache.count(Outcome::Skipped);
        }
        let how = if wishes.lookup {
            json!({"hit": false})
        } else {
            json!({"hit": false, "skipped": "the client wished so"})
        };
        ask.notes.did(KIND, &how);
        if wishes.store {
            let ttl = wishes.ttl.or(self.settings.ttl).unwrap_or(store.ttl);
            self.plan = Some(Plan { keys, worded, ttl, owner, epoch });
        }
        None
    }

    /// Whose answer it will be; or why the cache is left alone.
    fn owner(&self, scene: &Scene, request: &ChatRequest, wishes: Wishes) -> Result<Owner, &'static str> {
        if !scene.mom.spec.global.response_cache.enabled {
            return Err("the store is off");
        }
        if scene.keeps_nothing() {
            return Err("the operating point keeps nothing");
        }
        if self.enriched && !self.settings.personalized {
            return Err("the route is personal");
        }
        if self.settings.mode == CacheMode::Exact && !wishes.asked && !repeats(request) {
            return Err("the answer would not repeat itself");
        }
        let caller = scene.caller();
        match (self.settings.scope, caller) {
            (CacheScope::Global, _) => Ok(Owner::Everybody),
            (_, None) if self.settings.scope_is_written || self.enriched => Err("nobody is known"),
            (_, None) => Ok(Owner::NobodyKnown),
            (CacheScope::Team, Some(caller)) => Ok(Owner::Known(team(caller))),
            (CacheScope::User, Some(caller)) => Ok(Owner::Known(user(caller))),
        }
    }

    fn keys(&self, scene: &Scene, enriched: &ChatRequest, whose: Whose<'_>) -> Keys {
        let request = if self.enriched { enriched } else { &*scene.asked.request };
        let (mom, routed) = (&scene.mom, &scene.routed);
        let text = |digest: &Option<Digest>| digest.as_ref().map(ToString::to_string).unwrap_or_default();
        let revision = &self.settings.revision;
        let context = [
            ("recipe", routed.recipe_name(mom).unwrap_or_default().to_string()),
            ("decision", routed.won(mom).unwrap_or_default().to_string()),
            ("algorithm", routed.algorithm(mom).to_owned()),
            ("model", scene.model.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("file", mom.spec.digest.to_string()),
            ("bundle", text(&mom.artifact.bundle)),
            ("binding", text(&mom.artifact.binding)),
            ("lock", text(&mom.artifact.lock)),
            // Replicas may have encoders of their own, whose vectors say nothing to one another.
            ("encoder", mom.selection.encoder.as_ref().map(|it| it.digest().to_owned()).unwrap_or_default()),
            ("cache epoch", revision.epoch.clone()),
            ("model revision", revision.model.clone()),
            ("prompt revision", revision.prompt.clone()),
            ("policy revision", revision.policy.clone()),
        ];
        let context: Vec<(&str, &str)> =
            context.iter().map(|(name, value)| (*name, value.as_str())).collect();
        keys(request, whose, &context)
    }

    /// The last message for a lookup by meaning, where the route has one and an encoder can read it.
    async fn worded(&self, scene: &Scene, keys: &Keys) -> Option<Worded> {
        let alike = keys.alike.as_ref().filter(|_| self.settings.mode.is_semantic() && !self.enriched)?;
        if alike.text.len() > CACHE_TEXT_BYTES {
            return None;
        }
        let vector = vector::of(scene, &alike.text).await?;
        Some(Worded {
            partition: alike.partition.clone(),
            text: alike.text.clone(),
            language: language_of(&alike.text),
            vector,
        })
    }

    async fn by_meaning(
        &self,
        scene: &Scene,
        worded: Option<&Worded>,
        max_age_ms: Option<u64>,
        notes: &mut Notes,
    ) -> Option<Found> {
        let worded = worded?;
        let store = &scene.mom.spec.global.response_cache;
        let threshold = self.settings.threshold.or(store.threshold).unwrap_or(SIMILARITY).as_similarity();
        let calibration = calibration(&scene.mom);
        let least = Least::of(threshold, |it| calibration.cosine(it));
        let question = Question { worded, least, max_age_ms };
        let mut looked = scene.mom.answer_cache.alike(question, store.eviction).await;
        let scaled = |similarity: f64| calibration.apply(similarity).clamp(0.0, 1.0);
        looked.refused.iter_mut().for_each(|refused| refused.similarity = scaled(refused.similarity));
        if let Some(found) = &mut looked.found {
            found.similarity = scaled(found.similarity);
        }
        if !looked.refused.is_empty() {
            notes.did(KIND, &json!({"refused": looked.refused}));
            if let (None, Some(nearest)) = (&looked.found, looked.refused.first()) {
                notes.header("x-vsr-cache-similarity", shown(nearest.similarity));
            }
        }
        looked.found
    }

    /// The answer that was found, for this request; `None` where it cannot be read any more.
    fn given(&self, found: Found, kind: &'static str, notes: &mut Notes) -> Option<Answer> {
        let reply = ChatReply::parse(&found.body).ok()?;
        let age = found.age_ms / 1000;
        notes.did(
            KIND,
            &json!({"hit": true, "kind": kind, "entry": found.id, "similarity": found.similarity, "age_seconds": age}),
        );
        notes.header("x-vsr-cache-hit", "true");
        notes.header("x-vsr-cache-kind", kind);
        notes.header("x-vsr-cache-entry", found.id);
        notes.header("x-vsr-cache-similarity", shown(found.similarity));
        notes.header("age", age.to_string());
        // Nobody was called for it.
        Some(Answer::Finished(Box::new(Reply { model: found.model, reply, usage: Usage::default() })))
    }

    async fn store(&mut self, reply: &ChatReply, seen: &mut Answered<'_>) {
        let Some(plan) = self.plan.take() else { return };
        let kept = self.keep(plan, reply, seen).await;
        seen.notes.did(
            KIND,
            &match kept {
                Ok(id) => json!({"stored": true, "entry": id}),
                Err(why) => json!({"stored": false, "because": why}),
            },
        );
    }

    /// The name of the answer, or why it is not kept.
    async fn keep(&self, plan: Plan, reply: &ChatReply, seen: &Answered<'_>) -> Result<String, &'static str> {
        if seen.given_by.is_some() {
            return Err("a plugin's answer");
        }
        if seen.degraded {
            return Err("degraded");
        }
        if let Some(why) = worth::unfit(reply) {
            return Err(why);
        }
        let (scene, id) = (seen.scene, entry_id(&seen.scene.run));
        let new = NewAnswer {
            id: id.clone(),
            exact: plan.keys.exact,
            worded: plan.worded,
            labels: labels(scene, plan.owner.name()),
            body: reply.to_bytes().into(),
            ttl_ms: millis(plan.ttl),
        };
        let store = &scene.mom.spec.global.response_cache;
        match scene.mom.answer_cache.put(new, plan.epoch, store).await {
            Put::Stored => Ok(id),
            Put::OfAnEarlierEpoch => Err("of an earlier epoch"),
            Put::TooLarge => Err("too large"),
            Put::Unanswered => Err(UNANSWERED),
        }
    }
}

impl AtWork for ResponseCache {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move { Ok(self.look_up(ask).await) }.boxed()
    }

    fn keeps(&self) -> bool {
        self.plan.is_some()
    }

    fn kept<'a>(&'a mut self, reply: &'a ChatReply, seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        self.store(reply, seen).boxed()
    }
}

/// Whether one message would be given the answer to another.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheTrial {
    /// How alike they are, in 0..=1 on the scale of configuration files.
    pub similarity: f64,
    /// Least similarity of a hit on that scale, which grows with the words that the two share.
    pub similarity_threshold: f64,
    /// What makes them ask for different answers, whatever their similarity.
    pub differs: Option<Difference>,
    /// Whether it would be a hit.
    pub hit: bool,
}

/// Holds two messages against each other as a lookup by meaning does; nothing is looked up or stored.
///
/// # Errors
/// [`Code::NotLoaded`](crate::Code::NotLoaded) without an encoder.
pub async fn try_cache(
    mom: &Mom,
    kept: String,
    asked: String,
    threshold: Option<f64>,
) -> Result<CacheTrial, Fault> {
    let read = |text: &str| Reading::of(text, language_of(text));
    let (own, other) = (read(&kept), read(&asked));
    let vectors = mom.classifiers.embed(vec![kept, asked]).await?;
    let cosine = match vectors.as_slice() {
        [a, b] => a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum(),
        _ => 0.0,
    };
    let similarity = calibration(mom).apply(cosine).clamp(0.0, 1.0);
    let served = mom.spec.global.response_cache.threshold.unwrap_or(SIMILARITY).as_similarity();
    let similarity_threshold = least_alike(threshold.unwrap_or(served), shared(&own, &other));
    let differs = difference(&own, &other);
    let hit = differs.is_none() && similarity >= similarity_threshold;
    Ok(CacheTrial { similarity, similarity_threshold, differs, hit })
}

/// From the encoder's cosines to the scale of configuration files.
fn calibration(mom: &Mom) -> Calibration {
    mom.selection.encoder.as_deref().map_or_else(Calibration::default, Calibration::of)
}

/// Whether a model would say the same again.
fn repeats(request: &ChatRequest) -> bool {
    let body = request.body();
    let is_zero = body.read::<f64>("temperature").ok().flatten().is_some_and(|it| it == 0.0);
    is_zero || body.get_set("seed").is_some()
}

fn user(caller: &Caller) -> String {
    format!("user {:?} {}", caller.vouched_by(), caller.user())
}

/// The groups of a caller; one without any is a team of one.
fn team(caller: &Caller) -> String {
    if caller.groups().is_empty() {
        return user(caller);
    }
    let mut groups: Vec<String> = caller.groups().iter().map(|it| format!("{}:{it}", it.len())).collect();
    groups.sort_unstable();
    groups.dedup();
    format!("team {:?} {}", caller.vouched_by(), groups.concat())
}

fn labels(scene: &Scene, owner: Option<&str>) -> Labels {
    let (mom, routed) = (&scene.mom, &scene.routed);
    let last = || scene.calls.ledger.attempts().last().map(|it| it.model.to_string()).unwrap_or_default();
    Labels {
        recipe: routed.recipe_name(mom).unwrap_or_default().to_string(),
        decision: routed.won(mom).unwrap_or_default().to_string(),
        model: scene.model.as_ref().map_or_else(last, ToString::to_string),
        requested_model: scene.asked.request.model().to_owned(),
        owner: owner.map(|owner| Digest::of(owner.as_bytes()).to_string()),
    }
}

/// The name of the answer that a run stores.
fn entry_id(run: &str) -> String {
    format!("cache_{}", run.trim_start_matches("run_"))
}

fn shown(similarity: f64) -> String {
    format!("{similarity:.4}")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
