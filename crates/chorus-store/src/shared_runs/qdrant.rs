//! Run records in a Qdrant server.
//!
//! A run is a point whose id is that of the run; nothing is looked for by its vector. An id begins with the time of its making,
//! which orders lists and tells ages. It knows no address and no key.
//!
//! There are no steps of several questions: while records are written there may be some more than there should be. What is too
//! much is counted once the oldest are known, so replicas that make room at once take out the same ones and no others.
//!
//! **Invariants:** once a step is through, the oldest have made room for what is more than it was told; and what comes back is
//! looked at again, and dropped where it is not what was asked for.

use super::RunsPlace;
use super::content::{apart, whole};
use crate::qdrant::{self, Collection, Field, Point, QdrantLink, all, at_least, below, has_id, is};
use crate::{Page, RunFilter, RunId, RunRecord, StoreFault};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// When the run's id was made, in milliseconds since 1970. Source of it: RFC 9562 §5.7, the first 48 bits.
const MADE_AT: &str = "made_at";
const STARTED_AT: &str = "started_at";
const DECISION: &str = "decision";
const MODEL: &str = "model";
const STATUS: &str = "status";
const SPEC: &str = "spec";
/// Whether it has content.
const SAYS: &str = "says";

const FIELDS: &[Field] = &[
    (MADE_AT, qdrant::integer),
    (STARTED_AT, qdrant::integer),
    (DECISION, qdrant::keyword),
    (MODEL, qdrant::keyword),
    (STATUS, qdrant::keyword),
    (SPEC, qdrant::keyword),
    (SAYS, qdrant::keyword),
];

/// What the name of a run begins with; the rest is the point's id.
const PREFIX: &str = "run_";
/// No id is as late: its time has 48 bits.
const NEVER: u64 = 1 << 48;
/// Most records of one question, either way: a record may hold long prompts.
const PART: usize = 32;
/// Most runs of one millisecond.
const TIES_MOST: usize = 10_000;
/// Most runs that make room in one question.
const ROOM_PART: usize = 1000;
/// How many such questions follow each other when old runs are removed.
const ROOM_PARTS: usize = 100;
/// Most runs whose content goes in one question.
const TRIM_PART: usize = 256;

/// The runs of one collection, which is made when the first one comes.
#[derive(Debug)]
pub struct QdrantRuns {
    points: Collection,
    most: usize,
}

impl QdrantRuns {
    /// Those in that collection, no more than `most` of them. Nothing is sent yet.
    #[must_use]
    pub fn new(link: Arc<dyn QdrantLink>, collection: &str, most: usize) -> Self {
        Self { points: Collection::of(link, collection.to_owned(), FIELDS), most }
    }

    async fn put(&self, records: &mut [RunRecord]) -> Result<BTreeSet<String>, StoreFault> {
        let mut new = BTreeSet::new();
        for part in records.chunks_mut(PART) {
            let ids: Vec<String> = part.iter().map(|record| point_id(&record.id)).collect();
            let there = self.points.scroll(all(vec![has_id(&ids)]), ids.len(), false).await?;
            let there: BTreeSet<String> = there.into_iter().map(|point| point.id).collect();
            let mut points = Vec::new();
            for (record, id) in part.iter_mut().zip(ids) {
                if !there.contains(&id) && new.insert(record.id.to_string()) {
                    points.push(point(record, &id)?);
                }
            }
            if !points.is_empty() {
                self.points.upsert(points, 1).await?;
                self.make_room().await?;
            }
        }
        Ok(new)
    }

    /// Takes out the oldest of what is too much, and gives whether there may be more of it.
    async fn make_room(&self) -> Result<bool, StoreFault> {
        let ids = self.points.too_much(&all(Vec::new()), MADE_AT, self.most, ROOM_PART).await?;
        if !ids.is_empty() {
            self.points.delete(all(vec![has_id(&ids)])).await?;
        }
        Ok(ids.len() == ROOM_PART)
    }

    async fn forgotten(&self, older: Duration) -> Result<(), StoreFault> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = u64::try_from(now.saturating_sub(older).as_millis()).unwrap_or(NEVER);
        self.points.delete(all(vec![below(MADE_AT, until)])).await?;
        for _ in 0..ROOM_PARTS {
            if !self.make_room().await? {
                break;
            }
        }
        Ok(())
    }

    async fn one(&self, id: &RunId) -> Result<Option<RunRecord>, StoreFault> {
        let found = self.points.scroll(all(vec![has_id(&[point_id(id)])]), 1, false).await?;
        Ok(runs(&found)?.into_iter().find(|run| run.id == *id))
    }

    async fn listed(&self, filter: &RunFilter, page: &Page) -> Result<Vec<RunRecord>, StoreFault> {
        let wanted = page.limit.clamp(1, 1000);
        let mut until = page.before.as_ref().map_or(NEVER, |id| made_at(id) + 1);
        let mut found = Vec::new();
        while found.len() < wanted {
            let (part, earliest) = self.part(filter, until).await?;
            found.extend(part.into_iter().filter(|run| page.before.as_ref().is_none_or(|id| run.id < *id)));
            let Some(earliest) = earliest else { break };
            until = earliest;
        }
        found.truncate(wanted);
        Ok(found)
    }

    /// Some of the runs before that time, latest first, and the time before which there may be more. Those of one millisecond
    /// are in one part, for the server orders them by nothing.
    async fn part(
        &self,
        filter: &RunFilter,
        until: u64,
    ) -> Result<(Vec<RunRecord>, Option<u64>), StoreFault> {
        let with = |time: Value| all(conditions(filter).into_iter().chain([time]).collect());
        let mut points = self.points.latest(with(below(MADE_AT, until)), MADE_AT, PART).await?;
        let last = points.last().filter(|_| points.len() >= PART).and_then(|it| it.number(MADE_AT));
        let last = last.filter(|last| *last < until);
        points.retain(|it| it.number(MADE_AT).is_some_and(|at| at < until && Some(at) != last));
        if let Some(last) = last {
            let same = self.points.scroll(with(is(MADE_AT, last)), TIES_MOST, false).await?;
            points.extend(same.into_iter().filter(|it| it.number(MADE_AT) == Some(last)));
        }
        let mut runs = runs(&points)?;
        runs.retain(|run| fits(run, filter));
        runs.sort_by(|one, other| other.id.cmp(&one.id));
        Ok((runs, last))
    }

    /// What still has its content is looked at, oldest first.
    async fn trimmed(&self, decision: &str, keep: u64, window: u64) -> Result<u64, StoreFault> {
        let of_it = || vec![is(DECISION, decision)];
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        if self.points.count(all(of_it())).await? <= keep {
            return Ok(0);
        }
        let mut left = usize::try_from(window).unwrap_or(usize::MAX);
        let mut gone = 0;
        while left > 0 {
            let most = left.min(TRIM_PART);
            let says = all(of_it().into_iter().chain([is(SAYS, "yes")]).collect());
            let oldest = self.points.earliest(says, MADE_AT, most).await?;
            let past = self.past(decision, keep, &oldest).await?;
            let without = |point: &Point| (point.id.clone(), json!({"content": null, SAYS: "no"}));
            let changes: Vec<(String, Value)> = oldest.iter().take(past).map(without).collect();
            if !changes.is_empty() {
                self.points.change(changes).await?;
            }
            gone += past as u64;
            left -= past;
            if past < most {
                break;
            }
        }
        Ok(gone)
    }

    /// How many of these, oldest first, have `keep` later ones of the decision. Of runs of one millisecond either all have, or
    /// none.
    async fn past(&self, decision: &str, keep: usize, oldest: &[Point]) -> Result<usize, StoreFault> {
        let (mut are, mut are_not) = (0, oldest.len());
        while are < are_not {
            let middle = are.midpoint(are_not);
            let Some(at) = oldest.get(middle).and_then(|point| time_of(&point.id)) else { break };
            let later = all(vec![is(DECISION, decision), at_least(MADE_AT, at + 1)]);
            if self.points.count(later).await? >= keep {
                are = middle + 1;
            } else {
                are_not = middle;
            }
        }
        Ok(are)
    }
}

impl RunsPlace for QdrantRuns {
    fn name(&self) -> &'static str {
        "the Qdrant server of run records"
    }

    fn reached(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        async { Ok(self.points.count(all(Vec::new())).await.map(drop)?) }.boxed()
    }

    fn insert<'a>(
        &'a self,
        records: &'a mut [RunRecord],
    ) -> BoxFuture<'a, Result<BTreeSet<String>, StoreFault>> {
        self.put(records).boxed()
    }

    fn get<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreFault>> {
        self.one(id).boxed()
    }

    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreFault>> {
        self.listed(filter, page).boxed()
    }

    fn trim_content<'a>(
        &'a self,
        decision: &'a str,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'a, Result<u64, StoreFault>> {
        self.trimmed(decision, keep, window).boxed()
    }

    fn forget(&self, older: Duration) -> BoxFuture<'_, Result<(), StoreFault>> {
        self.forgotten(older).boxed()
    }
}

fn uuid(id: &RunId) -> Uuid {
    // An id has 32 hexadecimal digits behind its prefix.
    id.as_str().strip_prefix(PREFIX).and_then(|digits| Uuid::try_parse(digits).ok()).unwrap_or_default()
}

fn point_id(id: &RunId) -> String {
    uuid(id).hyphenated().to_string()
}

fn made_at(id: &RunId) -> u64 {
    time(uuid(id))
}

fn time_of(point_id: &str) -> Option<u64> {
    Uuid::try_parse(point_id).ok().map(time)
}

fn time(id: Uuid) -> u64 {
    id.as_u64_pair().0 >> 16
}

fn point(record: &mut RunRecord, id: &str) -> Result<Value, StoreFault> {
    let (bare, content) = apart(record)?;
    let says = if content.is_empty() { "no" } else { "yes" };
    Ok(json!({"id": id, "vector": [1.0], "payload": {
        MADE_AT: made_at(&record.id), STARTED_AT: record.started_at_ms, DECISION: record.decision,
        MODEL: record.requested_model, STATUS: record.status.as_str(), SPEC: record.spec_digest, SAYS: says,
        "record": bare, "content": content,
    }}))
}

/// Those of the points that are runs.
fn runs(points: &[Point]) -> Result<Vec<RunRecord>, StoreFault> {
    let records = points.iter().filter_map(|point| Some((point.text("record")?, point.text("content"))));
    records.map(|(record, content)| whole(record, content.unwrap_or_default())).collect()
}

fn conditions(filter: &RunFilter) -> Vec<Value> {
    let words = [
        (DECISION, filter.decision.as_deref()),
        (MODEL, filter.requested_model.as_deref()),
        (STATUS, filter.status.map(crate::RunStatus::as_str)),
        (SPEC, filter.spec_digest.as_deref()),
    ];
    let words = words.into_iter().filter_map(|(field, word)| Some(is(field, word?)));
    words.chain(filter.since_ms.map(|since| at_least(STARTED_AT, since))).collect()
}

fn fits(run: &RunRecord, filter: &RunFilter) -> bool {
    filter.decision.as_deref().is_none_or(|it| run.decision.as_deref() == Some(it))
        && filter.requested_model.as_ref().is_none_or(|it| run.requested_model == *it)
        && filter.status.is_none_or(|it| run.status == it)
        && filter.spec_digest.as_ref().is_none_or(|it| run.spec_digest == *it)
        && filter.since_ms.is_none_or(|it| run.started_at_ms >= it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdrant::fake::FakeQdrant;
    use crate::{Content, RunStatus, RunStore as _, SharedRunStore, SqliteRunStore};

    /// The run of that number in that millisecond.
    fn run(at: u64, number: u64) -> RunRecord {
        RunRecord {
            id: RunId::parse(&format!("run_{at:012x}70008000{number:012x}")).unwrap(),
            started_at_ms: at,
            requested_model: "auto".into(),
            decision: Some(if at.is_multiple_of(2) { "even" } else { "odd" }.into()),
            status: if at.is_multiple_of(5) { RunStatus::Failed } else { RunStatus::Ok },
            spec_digest: "sha256:abc".into(),
            content: Some(Content { prompt: format!("é {at}"), ..Content::default() }),
            ..RunRecord::default()
        }
    }

    fn ids(runs: &[RunRecord]) -> Vec<String> {
        runs.iter().map(|run| run.id.to_string()).collect()
    }

    async fn holding(link: FakeQdrant, most: usize, runs: &[RunRecord]) -> QdrantRuns {
        let place = QdrantRuns::new(Arc::new(link), "router_replay", most);
        place.insert(&mut runs.to_vec()).await.unwrap();
        place
    }

    async fn all_of(place: &QdrantRuns) -> Vec<RunRecord> {
        place.list(&RunFilter::default(), &Page { limit: 1000, before: None }).await.unwrap()
    }

    #[tokio::test]
    async fn a_record_comes_back_as_it_went_and_is_kept_once() {
        let place = QdrantRuns::new(Arc::new(FakeQdrant::default()), "router_replay", 10);
        place.reached().await.unwrap();
        assert_eq!((all_of(&place).await, place.get(&RunId::new()).await.unwrap()), (Vec::new(), None));
        let (one, other) = (run(1, 0), RunRecord { content: None, decision: None, ..run(2, 0) });
        let mut twice = [one.clone(), RunRecord { duration_ms: 9, ..one.clone() }];
        let new = place.insert(&mut twice).await.unwrap();
        assert_eq!(new, BTreeSet::from([one.id.to_string()]));
        let mut again = [RunRecord { duration_ms: 9, ..one.clone() }, other.clone()];
        assert_eq!(place.insert(&mut again).await.unwrap(), BTreeSet::from([other.id.to_string()]));
        assert_eq!(place.get(&one.id).await.unwrap(), Some(one.clone()), "who was there is as it was");
        assert_eq!(all_of(&place).await, [other, one]);
    }

    #[tokio::test]
    async fn lists_are_latest_first_filtered_and_paged() {
        // More than one part of them, and three to a millisecond.
        let kept: Vec<RunRecord> = (0..120).map(|n| run(1000 + n / 3, n)).collect();
        let place = holding(FakeQdrant::default(), 1000, &kept).await;
        let latest_first: Vec<String> = ids(&kept).into_iter().rev().collect();
        assert_eq!(ids(&all_of(&place).await), latest_first);
        let (mut paged, mut page) = (Vec::new(), Page { limit: 7, before: None });
        loop {
            let part = place.list(&RunFilter::default(), &page).await.unwrap();
            page.before = part.last().map(|run| run.id.clone());
            paged.extend(ids(&part));
            if part.len() < page.limit {
                break;
            }
        }
        assert_eq!(paged, latest_first);
        let word = |word: &str| Some(word.to_owned());
        let filters = [
            (RunFilter { decision: word("even"), ..RunFilter::default() }, 60),
            (RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() }, 24),
            (RunFilter { since_ms: Some(1039), ..RunFilter::default() }, 3),
            (
                RunFilter {
                    requested_model: word("auto"),
                    spec_digest: word("sha256:abc"),
                    ..RunFilter::default()
                },
                120,
            ),
            (RunFilter { requested_model: word("else"), ..RunFilter::default() }, 0),
        ];
        for (filter, many) in filters {
            let found = place.list(&filter, &Page { limit: 1000, before: None }).await.unwrap();
            assert_eq!(found.len(), many, "{filter:?}");
        }
    }

    #[tokio::test]
    async fn runs_that_are_all_of_one_millisecond_are_listed() {
        let kept: Vec<RunRecord> = (0..100).map(|n| run(1000, n)).collect();
        let place = holding(FakeQdrant::default(), 1000, &kept).await;
        assert_eq!(ids(&all_of(&place).await), ids(&kept).into_iter().rev().collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_a_broken_server_gives_is_looked_at_again() {
        let kept: Vec<RunRecord> = (0..2 * PART as u64).map(|n| run(1000 + n, n)).collect();
        let link = Arc::new(FakeQdrant::without_conditions());
        let place = QdrantRuns::new(link, "router_replay", 1000);
        for one in &kept {
            let points = vec![point(&mut one.clone(), &point_id(&one.id)).unwrap()];
            place.points.upsert(points, 1).await.unwrap();
        }
        assert_eq!(place.get(&RunId::new()).await.unwrap(), None);
        let odd = RunFilter { decision: Some("odd".to_owned()), ..RunFilter::default() };
        let page = Page { limit: 1000, before: Some(kept[60].id.clone()) };
        let found = place.list(&odd, &page).await.unwrap();
        let times: Vec<u64> = found.iter().map(|run| run.started_at_ms).collect();
        assert_eq!(times, (1033..1060).rev().step_by(2).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn the_oldest_make_room_and_what_is_too_old_goes() {
        let kept: Vec<RunRecord> = (0..50).map(|n| run(1000 + n, n)).collect();
        let place = holding(FakeQdrant::default(), 10, &kept).await;
        assert_eq!(ids(&all_of(&place).await), ids(&kept[40..]).into_iter().rev().collect::<Vec<_>>());
        let late = RunRecord::default();
        place.insert(&mut [late.clone()]).await.unwrap();
        assert_eq!(all_of(&place).await.len(), 10);
        place.forget(Duration::from_secs(3600)).await.unwrap();
        assert_eq!(all_of(&place).await, [late]);
    }

    #[tokio::test]
    async fn content_goes_from_all_but_the_latest_of_a_decision() {
        // 25 of each decision.
        let kept: Vec<RunRecord> = (0..50).map(|n| run(1000 + n, n)).collect();
        let place = holding(FakeQdrant::default(), 1000, &kept).await;
        let say = async |decision: &str| {
            let of = RunFilter { decision: Some(decision.to_owned()), ..RunFilter::default() };
            let found = place.list(&of, &Page { limit: 1000, before: None }).await.unwrap();
            found.iter().take_while(|run| run.content.is_some()).count()
        };
        assert_eq!(place.trim_content("even", 25, 128).await.unwrap(), 0);
        assert_eq!(place.trim_content("even", 20, 3).await.unwrap(), 3, "no more than the window");
        assert_eq!(say("even").await, 22);
        assert_eq!(place.trim_content("even", 20, u64::MAX).await.unwrap(), 2);
        assert_eq!(place.trim_content("even", 20, u64::MAX).await.unwrap(), 0);
        assert_eq!((say("even").await, say("odd").await), (20, 25));
        assert_eq!(place.trim_content("even", 0, u64::MAX).await.unwrap(), 20);
        let bare = RunRecord { content: None, ..kept[48].clone() };
        assert_eq!(place.get(&bare.id).await.unwrap(), Some(bare), "the rest is as it was");
    }

    #[tokio::test(start_paused = true)]
    async fn records_of_the_store_lie_in_the_collection() {
        let place: Arc<dyn RunsPlace> =
            Arc::new(QdrantRuns::new(Arc::new(FakeQdrant::default()), "router_replay", 10));
        let spool = SqliteRunStore::in_memory().unwrap();
        let store = SharedRunStore::new(Arc::clone(&place), place.clone(), spool, None);
        let record = run(7, 7);
        store.append(record.clone()).await.unwrap();
        let again = store.append(record.clone()).await;
        assert!(matches!(again, Err(StoreFault::Duplicate(_))), "{again:?}");
        assert_eq!(place.get(&record.id).await.unwrap(), Some(record));
    }
}
