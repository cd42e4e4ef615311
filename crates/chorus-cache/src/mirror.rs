//! What answers of a shared store are to questions of like meaning: their texts and vectors, read from the store partition by
//! partition and compared here. The answers themselves stay in the store.
//!
//! It knows no store, and no time but the order of use. **Invariants:** a lookup sees one partition alone; rows of another
//! epoch than the store's are gone; and the bytes stay within their bound after every call. A row may be of an answer that the
//! store has no longer: whoever takes one asks the store for it.

use crate::answers::{CANDIDATES, OVERHEAD_BYTES, Worded};
use crate::guard::{Difference, Least, Reading, objection};
use chorus_vectors::Coded;
use std::collections::{BTreeMap, BTreeSet};

/// A row of a partition, as the store gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The key of the very same request, by which the store has the answer.
    pub exact: String,
    /// The answer's name.
    pub id: String,
    /// The last message of its request.
    pub text: String,
    /// The language of the message, where it can be told.
    pub language: Option<&'static str>,
    /// Its unit vector.
    pub vector: Vec<f32>,
}

/// An answer that may fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// By what the store has it.
    pub exact: String,
    /// Its name.
    pub id: String,
    /// How alike the requests are, in 0..=1.
    pub similarity: f64,
    /// What differs; `None` where nothing does.
    pub differs: Option<Difference>,
}

#[derive(Default)]
struct Partition {
    /// Rows of the store later than this one are new.
    after: u64,
    vectors: Coded,
    rows: Vec<Row>,
    known: BTreeSet<String>,
    bytes: usize,
    used: u64,
}

/// Rows of partitions that were looked at lately.
#[derive(Default)]
pub struct Mirror {
    epoch: u64,
    partitions: BTreeMap<String, Partition>,
    turns: u64,
    bytes: usize,
}

impl Mirror {
    /// The row of the store after which reading that partition goes on.
    #[must_use]
    pub fn after(&self, partition: &str) -> u64 {
        self.partitions.get(partition).map_or(0, |it| it.after)
    }

    /// Rows of that partition.
    #[must_use]
    pub fn len(&self, partition: &str) -> usize {
        self.partitions.get(partition).map_or(0, |it| it.rows.len())
    }

    /// Takes in what the store said of a partition: its epoch, how many rows it has, and the new ones in order, the
    /// last of them `after`. Partitions that were not used for the longest time make room.
    pub fn take_in(
        &mut self,
        partition: &str,
        epoch: u64,
        stored: usize,
        new: Vec<Row>,
        after: u64,
        most_bytes: usize,
    ) {
        if epoch != self.epoch {
            (self.epoch, self.bytes) = (epoch, 0);
            self.partitions.clear();
        }
        self.turns += 1;
        let it = self.partitions.entry(partition.to_owned()).or_default();
        it.used = self.turns;
        it.after = after;
        self.bytes -= it.bytes;
        new.into_iter().for_each(|row| it.push(row));
        self.bytes += it.bytes;
        // Most of what is here was taken out there: it is read anew.
        if it.rows.len() > 2 * stored + CANDIDATES {
            self.drop_partition(partition);
        }
        while self.bytes > most_bytes {
            let oldest = self.partitions.iter().min_by_key(|(_, it)| it.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            self.drop_partition(&oldest);
        }
    }

    /// The nearest rows, nearest first, a few at most; each with what a guard has against it.
    #[must_use]
    pub fn alike(&self, asked: &Worded, least: Least) -> Vec<Candidate> {
        let Some(it) = self.partitions.get(&asked.partition) else { return Vec::new() };
        let near = it.vectors.alike(&asked.vector, least.of_any()).into_iter();
        let mut near: Vec<(&Row, f64)> = near.filter_map(|(at, how)| Some((it.rows.get(at)?, how))).collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        held(asked, near, least)
    }

    /// Forgets a row that the store has no longer.
    pub fn forget(&mut self, partition: &str, exact: &str) {
        let Some(it) = self.partitions.get_mut(partition) else { return };
        self.bytes -= it.bytes;
        it.take_out(exact);
        self.bytes += it.bytes;
    }

    fn drop_partition(&mut self, partition: &str) {
        if let Some(it) = self.partitions.remove(partition) {
            self.bytes -= it.bytes;
        }
    }
}

/// Neighbours of a message, nearest first with their cosines: those that are near enough, a few at most, each with what a guard
/// has against it.
pub fn held<'a>(
    asked: &Worded,
    near: impl IntoIterator<Item = (&'a Row, f64)>,
    least: Least,
) -> Vec<Candidate> {
    let reading = Reading::of(&asked.text, asked.language);
    let candidate = |(row, similarity): (&Row, f64)| Candidate {
        exact: row.exact.clone(),
        id: row.id.clone(),
        similarity,
        differs: objection(&reading, &Reading::of(&row.text, row.language), similarity, &least),
    };
    let near = near.into_iter().filter(|(_, similarity)| *similarity >= least.of_any());
    near.take(CANDIDATES).map(candidate).collect()
}

impl Partition {
    fn push(&mut self, row: Row) {
        if !self.known.insert(row.exact.clone()) {
            self.take_out(&row.exact);
            self.known.insert(row.exact.clone());
        }
        if self.rows.is_empty() {
            self.vectors = Coded::of_width(row.vector.len());
        }
        if self.vectors.width() != row.vector.len() {
            self.known.remove(&row.exact);
            return;
        }
        self.vectors.push(&row.vector);
        self.bytes += bytes_of(&row);
        // It is there in a quarter of the bytes now.
        self.rows.push(Row { vector: Vec::new(), ..row });
    }

    fn take_out(&mut self, exact: &str) {
        self.known.remove(exact);
        let Some(at) = self.rows.iter().position(|row| row.exact == exact) else { return };
        let row = self.rows.swap_remove(at);
        self.vectors.swap_remove(at);
        let dimension = self.vectors.width();
        self.bytes = self.bytes.saturating_sub(row.text.len() + dimension + OVERHEAD_BYTES);
    }
}

fn bytes_of(row: &Row) -> usize {
    row.text.len() + row.vector.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    fn row(exact: &str, text: &str, vector: [f32; 2]) -> Row {
        let (exact, id) = (exact.to_owned(), format!("id of {exact}"));
        Row { exact, id, text: text.to_owned(), language: None, vector: vector.to_vec() }
    }

    fn asked(partition: &str, text: &str) -> Worded {
        let (partition, text) = (partition.to_owned(), text.to_owned());
        Worded { partition, text, language: None, vector: vec![1.0, 0.0] }
    }

    fn near(mirror: &Mirror, partition: &str) -> Vec<String> {
        let found = mirror.alike(&asked(partition, "How do I enable guest access?"), Least::of(0.8, |it| it));
        found.into_iter().map(|it| it.exact).collect()
    }

    #[test]
    fn f01_f02_a_lookup_sees_one_partition_nearest_first_and_says_what_differs() {
        let mut mirror = Mirror::default();
        let rows = vec![
            row("same", "How can I enable guest access?", [0.96, 0.28]),
            row("opposite", "How do I disable guest access?", [1.0, 0.0]),
            row("far", "How do I bake bread?", [0.0, 1.0]),
        ];
        mirror.take_in("t1", 7, 3, rows, 3, MOST);
        mirror.take_in("t2", 7, 0, Vec::new(), 3, MOST);
        let found = mirror.alike(&asked("t1", "How do I enable guest access?"), Least::of(0.8, |it| it));
        let told: Vec<_> = found.iter().map(|it| (it.exact.as_str(), it.differs)).collect();
        assert_eq!(told, [("opposite", Some(Difference::Polarity)), ("same", None)]);
        assert_eq!(found.first().map(|it| it.id.as_str()), Some("id of opposite"));
        assert_eq!(near(&mirror, "t2"), Vec::<String>::new());
    }

    #[test]
    fn reading_goes_on_where_it_stopped_and_starts_anew_with_an_epoch() {
        let mut mirror = Mirror::default();
        mirror.take_in("p", 7, 1, vec![row("a", "x", [1.0, 0.0])], 4, MOST);
        assert_eq!((mirror.after("p"), mirror.after("q")), (4, 0));
        mirror.take_in("p", 7, 2, vec![row("b", "x", [1.0, 0.0])], 9, MOST);
        assert_eq!((near(&mirror, "p").len(), mirror.after("p")), (2, 9));
        // The answer to the very same request was stored again.
        mirror.take_in("p", 7, 2, vec![row("a", "y", [0.0, 1.0])], 11, MOST);
        assert_eq!(near(&mirror, "p"), ["b"]);
        mirror.take_in("p", 8, 1, vec![row("c", "x", [1.0, 0.0])], 12, MOST);
        assert_eq!(near(&mirror, "p"), ["c"]);
    }

    #[test]
    fn what_the_store_has_no_longer_goes() {
        let mut mirror = Mirror::default();
        let rows = (0..20).map(|n| row(&n.to_string(), "x", [1.0, 0.0])).collect();
        mirror.take_in("p", 1, 20, rows, 20, MOST);
        mirror.forget("p", "3");
        assert_eq!(mirror.len("p"), 19);
        mirror.take_in("p", 1, 2, Vec::new(), 21, MOST);
        assert_eq!((mirror.len("p"), mirror.after("p")), (0, 0), "it is read anew");
    }

    #[test]
    fn partitions_that_nobody_looks_at_make_room() {
        let mut mirror = Mirror::default();
        let of = |name: &str| vec![row(name, "x", [1.0, 0.0])];
        let most = 2 * (OVERHEAD_BYTES + 3);
        for (turn, partition) in ["a", "b", "a", "c"].into_iter().enumerate() {
            mirror.take_in(partition, 1, 1, of(&turn.to_string()), turn as u64, 2 * most);
        }
        assert_eq!(["a", "b", "c"].map(|it| mirror.len(it)), [2, 1, 1]);
        mirror.take_in("d", 1, 1, of("d"), 9, 2 * most);
        assert_eq!(["a", "b", "c", "d"].map(|it| mirror.len(it)), [2, 0, 1, 1]);
        assert!(mirror.bytes <= 2 * most);
    }
}
