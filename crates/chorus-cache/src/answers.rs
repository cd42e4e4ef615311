//! The answers that are kept, bounded in number, bytes and time.
//!
//! It knows keys and vectors, no clock: `now` is in milliseconds since whatever moment the owner chose. **Invariants:**
//! only whole answers are here, so that nothing pending hides a good one (case F08); the bounds hold after every call; and
//! a lookup sees one partition alone.

use crate::guard::{Difference, Least, Reading, objection};
use chorus_spec::CacheEviction;
use chorus_vectors::Coded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Neighbours that are held against the guards, nearest first.
pub const CANDIDATES: usize = 8;

/// What an answer takes beside its own bytes, about.
pub(crate) const OVERHEAD_BYTES: usize = 512;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most answers.
    pub entries: usize,
    /// Most bytes of all together.
    pub bytes: usize,
    /// Which one makes room.
    pub eviction: CacheEviction,
}

/// Where an answer came from, for whoever looks after the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Labels {
    /// The recipe.
    pub recipe: String,
    /// The decision.
    pub decision: String,
    /// The model that answered.
    pub model: String,
    /// The model name that was asked for.
    pub requested_model: String,
    /// A digest of the owner's name; `None` where nobody is known.
    pub owner: Option<String>,
}

/// A last message that may be worded otherwise.
#[derive(Debug, Clone)]
pub struct Worded {
    /// The key of everything else.
    pub partition: String,
    /// The message.
    pub text: String,
    /// Its language, where it can be told.
    pub language: Option<&'static str>,
    /// Its unit vector.
    pub vector: Vec<f32>,
}

/// An answer to keep.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// Its name.
    pub id: String,
    /// The key of the very same request.
    pub exact: String,
    /// For requests of the same meaning.
    pub worded: Option<Worded>,
    /// Where it came from.
    pub labels: Labels,
    /// The answer.
    pub body: Arc<[u8]>,
    /// How long it is good, in milliseconds.
    pub ttl_ms: u64,
}

struct Entry {
    new: NewAnswer,
    stored_ms: u64,
    /// Its place in the queue of those that make room.
    turn: u64,
    hits: u64,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The answer's name.
    pub id: String,
    /// The answer.
    pub body: Arc<[u8]>,
    /// The model that gave it.
    pub model: String,
    /// How long ago, in milliseconds.
    pub age_ms: u64,
    /// How alike the requests are, in 0..=1; 1 for the very same.
    pub similarity: f64,
}

/// A request of which one of the same meaning is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Its last message.
    pub worded: &'a Worded,
    /// Least similarity.
    pub least: Least,
    /// Oldest answer that will do, in milliseconds.
    pub max_age_ms: Option<u64>,
}

/// A neighbour that is near enough and not what was asked for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Refused {
    /// The answer's name.
    pub entry: String,
    /// How alike, in 0..=1.
    pub similarity: f64,
    /// What differs.
    pub differs: Difference,
}

/// What looking for the same meaning came to.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// The answer.
    pub found: Option<Found>,
    /// Nearer neighbours that a guard refused.
    pub refused: Vec<Refused>,
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Answers.
    pub entries: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Answers that were stored.
    pub stored: u64,
    /// Answers that made room for others.
    pub evicted: u64,
    /// Answers whose time was over.
    pub expired: u64,
    /// Answers that somebody took out.
    pub invalidated: u64,
}

/// Which answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// That one.
    pub id: Option<String>,
    /// Of that recipe.
    pub recipe: Option<String>,
    /// Of that decision.
    pub decision: Option<String>,
    /// Of that model.
    pub model: Option<String>,
    /// Of that owner, by digest.
    pub owner: Option<String>,
    /// At least so old.
    pub older_than_seconds: Option<u64>,
}

/// An answer as it is listed; no word of it, or of its request.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// Where it came from.
    #[serde(flatten)]
    pub labels: Labels,
    /// How long ago.
    pub age_seconds: u64,
    /// For how much longer it is good.
    pub good_for_seconds: u64,
    /// How often it was given again.
    pub hits: u64,
    /// Its size.
    pub bytes: usize,
    /// Whether requests of the same meaning find it.
    pub semantic: bool,
}

/// The vectors of one partition, and the answer of each row.
struct Bank {
    vectors: Coded,
    slots: Vec<u64>,
}

/// The answers that are kept.
#[derive(Default)]
pub struct Answers {
    entries: BTreeMap<u64, Entry>,
    by_exact: BTreeMap<String, u64>,
    by_id: BTreeMap<String, u64>,
    banks: BTreeMap<String, Bank>,
    /// Who makes room first.
    queue: BTreeMap<u64, u64>,
    ends: BTreeSet<(u64, u64)>,
    turns: u64,
    tally: Tally,
}

impl Answers {
    /// The answer to the very same request. The caller says by [`used`](Self::used) that it took it.
    #[must_use]
    pub fn exact(&self, key: &str, now: u64, max_age_ms: Option<u64>) -> Option<Found> {
        let entry = self.entries.get(self.by_exact.get(key)?)?;
        entry.is_good(now, max_age_ms).then(|| entry.found(now, 1.0))
    }

    /// The nearest answer to a request of the same meaning that no guard refuses.
    #[must_use]
    pub fn alike(&self, question: Question<'_>, now: u64) -> Looked {
        let mut looked = Looked::default();
        let Question { worded, least, max_age_ms } = question;
        let Some(bank) = self.banks.get(&worded.partition) else { return looked };
        let near = bank.vectors.alike(&worded.vector, least.of_any()).into_iter();
        let mut near: Vec<(&Entry, f64)> = near
            .filter_map(|(row, similarity)| Some((self.entries.get(bank.slots.get(row)?)?, similarity)))
            .filter(|(entry, _)| entry.is_good(now, max_age_ms))
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.stored_ms.cmp(&a.0.stored_ms)));
        let asked = Reading::of(&worded.text, worded.language);
        for (entry, similarity) in near.into_iter().take(CANDIDATES) {
            let Some(own) = &entry.new.worded else { continue };
            let own = Reading::of(&own.text, own.language);
            match objection(&asked, &own, similarity, &least) {
                None => {
                    looked.found = Some(entry.found(now, similarity));
                    return looked;
                }
                Some(differs) => {
                    looked.refused.push(Refused { entry: entry.new.id.clone(), similarity, differs });
                }
            }
        }
        looked
    }

    /// How many answers a lookup by meaning would compare with.
    #[must_use]
    pub fn neighbours(&self, partition: &str) -> usize {
        self.banks.get(partition).map_or(0, |bank| bank.vectors.len())
    }

    /// Somebody took that answer.
    pub fn used(&mut self, id: &str, eviction: CacheEviction) {
        self.turns += 1;
        let Some(slot) = self.by_id.get(id).copied() else { return };
        let Some(entry) = self.entries.get_mut(&slot) else { return };
        entry.hits += 1;
        if eviction == CacheEviction::Lru {
            self.queue.remove(&entry.turn);
            entry.turn = self.turns;
            self.queue.insert(self.turns, slot);
        }
    }

    /// Keeps an answer in place of the one of the same request, if it fits at all.
    pub fn put(&mut self, new: NewAnswer, bounds: Bounds, now: u64) -> bool {
        self.expire(now);
        let bytes = new.bytes();
        if bounds.entries == 0 || bytes > bounds.bytes {
            return false;
        }
        let earlier = [self.by_exact.get(&new.exact), self.by_id.get(&new.id)].map(Option::<&u64>::copied);
        earlier.into_iter().flatten().for_each(|slot| self.take_out(slot));
        while self.entries.len() >= bounds.entries || self.tally.bytes + bytes > bounds.bytes {
            let Some(slot) = self.queue.first_key_value().map(|(_, slot)| *slot) else { break };
            self.take_out(slot);
            self.tally.evicted += 1;
        }
        self.turns += 1;
        let slot = self.turns;
        self.index(slot, &new, now);
        self.tally.bytes += bytes;
        self.tally.stored += 1;
        self.entries.insert(slot, Entry { new, stored_ms: now, turn: slot, hits: 0 });
        true
    }

    /// Takes out the answers that a filter names; in a dry run only says which.
    pub fn invalidate(&mut self, filter: &Filter, now: u64, dry_run: bool) -> Vec<Listed> {
        let named = |entry: &&Entry| entry.is_named(filter, now);
        let found: Vec<(u64, Listed)> = self
            .entries
            .iter()
            .filter(|(_, entry)| named(entry))
            .map(|(slot, entry)| (*slot, entry.listed(now)))
            .collect();
        if !dry_run {
            for (slot, _) in &found {
                self.take_out(*slot);
                self.tally.invalidated += 1;
            }
        }
        found.into_iter().map(|(_, listed)| listed).collect()
    }

    /// The answers that a filter names, newest first, at most so many.
    #[must_use]
    pub fn list(&self, filter: &Filter, now: u64, most: usize) -> Vec<Listed> {
        let named = self.entries.values().rev().filter(|entry| entry.is_named(filter, now));
        named.take(most).map(|entry| entry.listed(now)).collect()
    }

    /// What is counted.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally { entries: self.entries.len(), ..self.tally }
    }

    /// Takes out everything whose time is over.
    fn expire(&mut self, now: u64) {
        while let Some((end, slot)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(end, slot));
            self.take_out(slot);
            self.tally.expired += 1;
        }
    }

    fn index(&mut self, slot: u64, new: &NewAnswer, now: u64) {
        self.by_exact.insert(new.exact.clone(), slot);
        self.by_id.insert(new.id.clone(), slot);
        self.queue.insert(slot, slot);
        self.ends.insert((now.saturating_add(new.ttl_ms), slot));
        let Some(worded) = &new.worded else { return };
        let dimension = worded.vector.len();
        let bank = self.banks.entry(worded.partition.clone());
        let bank = bank.or_insert_with(|| Bank { vectors: Coded::of_width(dimension), slots: Vec::new() });
        if bank.vectors.width() == dimension {
            bank.vectors.push(&worded.vector);
            bank.slots.push(slot);
        }
    }

    fn take_out(&mut self, slot: u64) {
        let Some(entry) = self.entries.remove(&slot) else { return };
        self.tally.bytes = self.tally.bytes.saturating_sub(entry.new.bytes());
        self.by_exact.remove(&entry.new.exact);
        self.by_id.remove(&entry.new.id);
        self.queue.remove(&entry.turn);
        self.ends.remove(&(entry.stored_ms.saturating_add(entry.new.ttl_ms), slot));
        let Some(worded) = &entry.new.worded else { return };
        if let Some(bank) = self.banks.get_mut(&worded.partition) {
            if let Some(row) = bank.slots.iter().position(|it| *it == slot) {
                bank.vectors.swap_remove(row);
                bank.slots.swap_remove(row);
            }
            if bank.slots.is_empty() {
                self.banks.remove(&worded.partition);
            }
        }
    }
}

impl Entry {
    fn is_good(&self, now: u64, max_age_ms: Option<u64>) -> bool {
        let age = now.saturating_sub(self.stored_ms);
        age < self.new.ttl_ms && max_age_ms.is_none_or(|most| age <= most)
    }

    fn found(&self, now: u64, similarity: f64) -> Found {
        Found {
            id: self.new.id.clone(),
            body: Arc::clone(&self.new.body),
            model: self.new.labels.model.clone(),
            age_ms: now.saturating_sub(self.stored_ms),
            similarity,
        }
    }

    fn is_named(&self, filter: &Filter, now: u64) -> bool {
        filter.names(&self.new.id, &self.new.labels, now.saturating_sub(self.stored_ms) / 1000)
    }

    fn listed(&self, now: u64) -> Listed {
        let age = now.saturating_sub(self.stored_ms);
        Listed {
            id: self.new.id.clone(),
            labels: self.new.labels.clone(),
            age_seconds: age / 1000,
            good_for_seconds: self.new.ttl_ms.saturating_sub(age) / 1000,
            hits: self.hits,
            bytes: self.new.bytes(),
            semantic: self.new.worded.is_some(),
        }
    }
}

impl Filter {
    /// Whether it names an answer of that name, from there, and so old.
    #[must_use]
    pub fn names(&self, name: &str, labels: &Labels, age_seconds: u64) -> bool {
        let Self { id, recipe, decision, model, owner, older_than_seconds } = self;
        let is = |wanted: &Option<String>, own: &str| wanted.as_deref().is_none_or(|wanted| wanted == own);
        is(id, name)
            && is(recipe, &labels.recipe)
            && is(decision, &labels.decision)
            && is(model, &labels.model)
            && owner.as_ref().is_none_or(|wanted| labels.owner.as_ref() == Some(wanted))
            && older_than_seconds.is_none_or(|least| age_seconds >= least)
    }
}

impl NewAnswer {
    /// What it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let worded = self.worded.as_ref().map_or(0, |it| it.text.len() + 5 * it.vector.len());
        self.body.len() + worded + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { entries: 3, bytes: 1 << 20, eviction: CacheEviction::Fifo };

    fn answer(id: &str, key: &str) -> NewAnswer {
        NewAnswer {
            id: id.to_owned(),
            exact: key.to_owned(),
            worded: None,
            labels: Labels { model: "m".to_owned(), ..Labels::default() },
            body: Arc::from(id.as_bytes()),
            ttl_ms: 1000,
        }
    }

    fn worded(partition: &str, text: &str, vector: [f32; 2]) -> Worded {
        Worded {
            partition: partition.to_owned(),
            text: text.to_owned(),
            language: None,
            vector: vector.to_vec(),
        }
    }

    fn found(answers: &Answers, key: &str, now: u64) -> Option<String> {
        answers.exact(key, now, None).map(|it| it.id)
    }

    #[test]
    fn an_answer_is_good_for_its_time_and_replaces_its_forerunner() {
        let mut answers = Answers::default();
        assert!(answers.put(answer("a", "k"), BOUNDS, 0));
        assert_eq!(found(&answers, "k", 999).as_deref(), Some("a"));
        assert_eq!(found(&answers, "k", 1000), None);
        assert!(answers.exact("k", 500, Some(400)).is_none());
        assert!(answers.put(answer("b", "k"), BOUNDS, 500));
        assert_eq!(found(&answers, "k", 600).as_deref(), Some("b"));
        assert_eq!(answers.tally().entries, 1);
        assert!(answers.put(answer("c", "other"), BOUNDS, 2000));
        assert_eq!((answers.tally().entries, answers.tally().expired), (1, 1));
    }

    #[test]
    fn the_first_or_the_least_recently_used_makes_room() {
        for (eviction, gone) in [(CacheEviction::Fifo, "a"), (CacheEviction::Lru, "b")] {
            let (mut answers, bounds) = (Answers::default(), Bounds { eviction, ..BOUNDS });
            for id in ["a", "b", "c"] {
                answers.put(answer(id, id), bounds, 0);
            }
            answers.used("a", eviction);
            answers.put(answer("d", "d"), bounds, 0);
            let left: Vec<&str> =
                ["a", "b", "c", "d"].into_iter().filter(|id| found(&answers, id, 1).is_some()).collect();
            assert!(!left.contains(&gone) && left.len() == 3, "{left:?}");
        }
    }

    #[test]
    fn bytes_are_bounded_and_what_is_larger_is_not_kept() {
        let (mut answers, bounds) = (Answers::default(), Bounds { bytes: 2 * OVERHEAD_BYTES + 2, ..BOUNDS });
        for id in ["a", "b", "c"] {
            assert!(answers.put(answer(id, id), bounds, 0));
        }
        assert_eq!((answers.tally().entries, answers.tally().evicted), (2, 1));
        let large = NewAnswer { body: Arc::from(vec![0; 4096]), ..answer("d", "d") };
        assert!(!answers.put(large, bounds, 0));
        assert_eq!(answers.tally().entries, 2);
    }

    #[test]
    fn f01_a_lookup_by_meaning_sees_one_partition() {
        let mut answers = Answers::default();
        let when = "When is my next dentist visit?";
        answers.put(
            NewAnswer { worded: Some(worded("t1", when, [1.0, 0.0])), ..answer("a", "1") },
            BOUNDS,
            0,
        );
        let look = |partition: &str| {
            let worded = worded(partition, when, [1.0, 0.0]);
            answers
                .alike(Question { worded: &worded, least: Least::of(0.8, |it| it), max_age_ms: None }, 1)
                .found
                .map(|it| it.id)
        };
        assert_eq!((look("t1").as_deref(), look("t2")), (Some("a"), None));
    }

    #[test]
    fn f02_a_refused_neighbour_is_told_and_the_next_one_looked_at() {
        let mut answers = Answers::default();
        for (id, text, vector) in [
            ("opposite", "How do I disable guest access?", [1.0, 0.0]),
            ("same", "How can I enable guest access?", [0.96, 0.28]),
            ("far", "How do I bake bread?", [0.0, 1.0]),
        ] {
            answers.put(NewAnswer { worded: Some(worded("p", text, vector)), ..answer(id, id) }, BOUNDS, 0);
        }
        let asked = worded("p", "How do I enable guest access?", [1.0, 0.0]);
        let looked =
            answers.alike(Question { worded: &asked, least: Least::of(0.8, |it| it), max_age_ms: None }, 1);
        assert_eq!(looked.found.map(|it| it.id).as_deref(), Some("same"));
        let [refused] = looked.refused.as_slice() else { panic!("{:?}", looked.refused) };
        assert_eq!((refused.entry.as_str(), refused.differs), ("opposite", Difference::Polarity));
    }

    #[test]
    fn f09_what_a_filter_names_is_taken_out_and_a_dry_run_takes_nothing() {
        let mut answers = Answers::default();
        for id in ["a", "b"] {
            let worded = Some(worded("p", id, [1.0, 0.0]));
            answers.put(NewAnswer { worded, ..answer(id, id) }, BOUNDS, 0);
        }
        let only = Filter { id: Some("a".to_owned()), ..Filter::default() };
        assert_eq!(answers.invalidate(&only, 1, true).len(), 1);
        assert_eq!((answers.tally().entries, answers.neighbours("p")), (2, 2));
        assert_eq!(answers.invalidate(&only, 1, false).len(), 1);
        assert_eq!((answers.tally().entries, answers.neighbours("p")), (1, 1));
        let old = Filter { older_than_seconds: Some(5), ..Filter::default() };
        assert_eq!(answers.list(&old, 1000, 10).len(), 0);
        assert_eq!(answers.list(&Filter::default(), 1000, 10).len(), 1);
    }
}
