//! Memories in a Qdrant server, which replicas share.
//!
//! A memory is a point; whose it is stands in its payload, and is part of every question. **Invariant:** as of the module
//! above, and it does not rest on the server: what comes back is looked at again, and dropped where it is another user's.
//!
//! There are no transactions: two replicas that are told the same at once may both keep it, and neither is lost by it.

use super::{KeepRule, Kept, Memory, MemoryStore, Statement};
use crate::database::new_id;
use crate::qdrant::{self, Collection, Field, Point, QdrantFault, QdrantLink, has_id, is};
use crate::recall_fault::RecallFault;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

const FIELDS: &[Field] =
    &[("user", qdrant::tenant), ("encoder", qdrant::keyword), ("stated_at", qdrant::integer)];

/// Most memories that are read at once.
const READ_MOST: usize = 10_000;

/// What the name of a memory begins with; the rest is the point's id.
const PREFIX: &str = "mem_";

/// Memories in one collection.
#[derive(Debug)]
pub struct QdrantMemories {
    points: Collection,
}

impl QdrantMemories {
    /// In that collection; nothing is sent yet.
    #[must_use]
    pub fn new(link: Arc<dyn QdrantLink>, collection: &str) -> Self {
        Self { points: Collection::of(link, collection.to_owned(), FIELDS) }
    }

    async fn keep_now(&self, it: Statement, rule: KeepRule) -> Result<Kept, RecallFault> {
        let mine = by_encoder(&it.user, &it.encoder);
        let near = self.points.nearest(&it.vector, mine, 1, false).await?;
        let same = |point: &Point| {
            let known = memory(point, Some(&it.user))?;
            (known.text == it.text || point.cosine >= rule.same_cosine).then_some(known)
        };
        let (kept, read_at, reads) = match near.first().and_then(same) {
            Some(known) => (Kept::Known(known.id), known.read_at, known.reads),
            None => (Kept::New(new_id(PREFIX)), it.at, 0),
        };
        let (Kept::New(id) | Kept::Known(id)) = &kept;
        let point = json!({"id": point_id(id), "vector": it.vector, "payload": {
            "user": it.user, "text": it.text, "encoder": it.encoder, "stated_at": it.at, "read_at": read_at,
            "reads": reads, "run": it.run,
        }});
        self.points.upsert(vec![point], it.vector.len()).await?;
        self.forget_weak(&it.user, it.at, rule).await?;
        Ok(kept)
    }

    async fn forget_weak(&self, user: &str, now: u64, rule: KeepRule) -> Result<(), RecallFault> {
        let mine = || qdrant::all(vec![is("user", user)]);
        if self.points.count(mine()).await? <= rule.most && rule.least_strength <= 0.0 {
            return Ok(());
        }
        let all = self.points.scroll(mine(), READ_MOST, false).await?;
        let weak = rule.weak(memories(&all, Some(user)), now);
        if weak.is_empty() {
            return Ok(());
        }
        Ok(self.points.delete(by_id(Some(user), weak.iter().map(String::as_str))).await?)
    }

    async fn all_of(&self, user: &str, encoder: &str) -> Result<Vec<Memory>, RecallFault> {
        let found = self.points.scroll(by_encoder(user, encoder), READ_MOST, true).await?;
        Ok(latest_first(memories(&found, Some(user))))
    }

    async fn read_now(&self, user: &str, ids: Vec<String>, at: u64) -> Result<(), RecallFault> {
        let found =
            self.points.scroll(by_id(Some(user), ids.iter().map(String::as_str)), ids.len(), false).await?;
        let noted = |it: Memory| (point_id(&it.id), json!({"reads": it.reads + 1, "read_at": at}));
        let changes: Vec<(String, Value)> = memories(&found, Some(user)).into_iter().map(noted).collect();
        if changes.is_empty() {
            return Ok(());
        }
        Ok(self.points.change(changes).await?)
    }

    async fn listed(&self, user: Option<&str>, limit: usize) -> Result<Vec<Memory>, RecallFault> {
        let mine = qdrant::all(user.map(|user| is("user", user)).into_iter().collect());
        let found = self.points.latest(mine, "stated_at", limit.min(READ_MOST)).await?;
        Ok(latest_first(memories(&found, user)))
    }

    async fn one(&self, user: Option<&str>, id: &str) -> Result<Option<Memory>, RecallFault> {
        if point_id(id).is_empty() {
            return Ok(None);
        }
        let found = self.points.scroll(by_id(user, std::iter::once(id)), 1, true).await?;
        Ok(memories(&found, user).pop())
    }

    async fn forget_one(&self, user: Option<&str>, id: &str) -> Result<bool, RecallFault> {
        let there = self.one(user, id).await?.is_some();
        if there {
            self.points.delete(by_id(user, std::iter::once(id))).await?;
        }
        Ok(there)
    }

    async fn forget_all_of(&self, user: &str) -> Result<usize, RecallFault> {
        let mine = || qdrant::all(vec![is("user", user)]);
        let there = self.points.count(mine()).await?;
        self.points.delete(mine()).await?;
        Ok(there)
    }
}

impl MemoryStore for QdrantMemories {
    fn keep(&self, it: Statement, rule: KeepRule) -> BoxFuture<'_, Result<Kept, RecallFault>> {
        self.keep_now(it, rule).boxed()
    }

    fn of<'a>(&'a self, user: &'a str, encoder: &'a str) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        self.all_of(user, encoder).boxed()
    }

    fn finds_by_vector(&self) -> bool {
        true
    }

    fn near<'a>(
        &'a self,
        user: &'a str,
        encoder: &'a str,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        async move {
            let found = self.points.nearest(vector, by_encoder(user, encoder), most, true).await?;
            Ok(memories(&found, Some(user)))
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        user: &'a str,
        ids: Vec<String>,
        at: u64,
    ) -> BoxFuture<'a, Result<(), RecallFault>> {
        self.read_now(user, ids, at).boxed()
    }

    fn list<'a>(
        &'a self,
        user: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        self.listed(user, limit).boxed()
    }

    fn get<'a>(
        &'a self,
        user: Option<&'a str>,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Memory>, RecallFault>> {
        self.one(user, id).boxed()
    }

    fn forget<'a>(&'a self, user: Option<&'a str>, id: &'a str) -> BoxFuture<'a, Result<bool, RecallFault>> {
        self.forget_one(user, id).boxed()
    }

    fn forget_all<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<usize, RecallFault>> {
        self.forget_all_of(user).boxed()
    }
}

impl From<QdrantFault> for RecallFault {
    fn from(fault: QdrantFault) -> Self {
        Self::Io(format!("the Qdrant server: {fault}"))
    }
}

fn by_encoder(user: &str, encoder: &str) -> Value {
    qdrant::all(vec![is("user", user), is("encoder", encoder)])
}

fn by_id<'a>(user: Option<&str>, ids: impl Iterator<Item = &'a str>) -> Value {
    let ids: Vec<String> = ids.map(point_id).filter(|id| !id.is_empty()).collect();
    let mut conditions = vec![has_id(&ids)];
    conditions.extend(user.map(|user| is("user", user)));
    qdrant::all(conditions)
}

/// The point of a memory; empty where that is the name of none.
fn point_id(id: &str) -> String {
    let id = id.strip_prefix(PREFIX).and_then(|id| Uuid::try_parse(id).ok());
    id.map(|id| id.hyphenated().to_string()).unwrap_or_default()
}

/// Those of the points that are memories, of that user where one is named.
fn memories(points: &[Point], user: Option<&str>) -> Vec<Memory> {
    points.iter().filter_map(|point| memory(point, user)).collect()
}

fn memory(point: &Point, user: Option<&str>) -> Option<Memory> {
    let owner = point.text("user").filter(|owner| user.is_none_or(|user| user == *owner))?;
    let id = Uuid::try_parse(&point.id).ok()?;
    Some(Memory {
        id: format!("{PREFIX}{}", id.simple()),
        user: owner.to_owned(),
        text: point.text("text")?.to_owned(),
        stated_at: point.number("stated_at")?,
        read_at: point.number("read_at")?,
        reads: point.number("reads")?,
        run: point.text("run").map(str::to_owned),
        vector: point.vector.clone(),
    })
}

fn latest_first(mut all: Vec<Memory>) -> Vec<Memory> {
    all.sort_by(|a, b| (b.stated_at, &b.id).cmp(&(a.stated_at, &a.id)));
    all
}
