//! Records as rows: writing one, reading one, and the queries behind a list.
//!
//! A row has the record as JSON, and the number of its kind (`kinds.rs`). Beside the table there are two indexes: ids, and ids
//! of a kind. Ids sort by the time of their making: each index also gives the order of a list.

use crate::kinds::{self, Kind, Kinds};
use crate::{Page, RunFilter, RunId, RunRecord, StoreFault};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, ToSql, params};

/// Room for the JSON of a usual record, in bytes.
const USUAL_BYTES: usize = 4096;

/// No id sorts after it.
const AFTER_ALL: &str = "~";

/// Most kinds whose latest runs are put together. Of more, which only clients that ask for ever other models
/// make, all runs are looked through from the latest on.
const MERGED: usize = 256;

/// How much earlier than its run an id may have been made, by a clock that was set meanwhile: in milliseconds.
const EARLIER_MS: u64 = 60_000;

/// The latest time that an id can tell. Source: RFC 9562 §5.7, 48 bits.
const LATEST_MS: u64 = (1 << 48) - 1;

/// A record as it is written.
pub(crate) struct Row {
    pub(crate) id: RunId,
    started_at_ms: u64,
    kind: Kind,
    json: Vec<u8>,
}

impl Row {
    /// That of a record, of which no more is needed.
    ///
    /// # Errors
    /// [`StoreFault::Json`].
    pub(crate) fn of(record: Box<RunRecord>) -> Result<Self, StoreFault> {
        let mut json = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut json, &record)?;
        let RunRecord { id, started_at_ms, decision, requested_model, status, spec_digest, .. } = *record;
        Ok(Self { id, started_at_ms, kind: Kind { decision, requested_model, status, spec_digest }, json })
    }
}

/// Rows on their way into a file, within one transaction.
pub(crate) struct Insertion<'a> {
    change: &'a Connection,
    insert: CachedStatement<'a>,
    kinds: &'a mut Kinds,
    most_bytes: Option<u64>,
}

impl<'a> Insertion<'a> {
    /// Into a file whose records may take so many bytes, where there is a bound.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn begin(
        change: &'a Connection,
        kinds: &'a mut Kinds,
        most_bytes: Option<u64>,
    ) -> rusqlite::Result<Self> {
        let insert = change
            .prepare_cached("INSERT INTO runs (id, kind, started_at_ms, record) VALUES (?1, ?2, ?3, ?4)")?;
        Ok(Self { change, insert, kinds, most_bytes })
    }

    /// Writes one row. Within a bound, a record may end above it; none begins there.
    ///
    /// # Errors
    /// [`StoreFault::Duplicate`], [`StoreFault::Full`], or what SQLite says.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), StoreFault> {
        if let Some(most) = self.most_bytes
            && used_bytes(self.change)? >= most
        {
            return Err(StoreFault::Full(most));
        }
        let kind = self.kinds.number(self.change, &row.kind).map_err(|e| fault(&e))?;
        // What serde_json wrote is UTF-8.
        let json = ToSqlOutput::Borrowed(ValueRef::Text(&row.json));
        match self.insert.execute(params![row.id.as_str(), kind, integer(row.started_at_ms), json]) {
            Ok(_) => Ok(()),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Err(StoreFault::Duplicate(row.id.clone()))
            }
            Err(e) => Err(fault(&e)),
        }
    }
}

/// Bytes of the pages that hold something; the file keeps the others for later.
fn used_bytes(connection: &Connection) -> Result<u64, StoreFault> {
    let sql = "SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    let mut pages = connection.prepare_cached(sql).map_err(|e| fault(&e))?;
    let bytes: i64 = pages.query_row([], |row| row.get(0)).map_err(|e| fault(&e))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Reads one record.
///
/// # Errors
/// What SQLite says, or [`StoreFault::Json`].
pub(crate) fn get(connection: &Connection, id: &RunId) -> Result<Option<RunRecord>, StoreFault> {
    let json = json_of(connection, id.as_str()).map_err(|e| fault(&e))?;
    json.map(|json| Ok(serde_json::from_str(&json)?)).transpose()
}

fn json_of(connection: &Connection, id: &str) -> rusqlite::Result<Option<String>> {
    let mut query = connection.prepare_cached("SELECT record FROM runs WHERE id = ?1")?;
    query.query_row([id], |row| row.get(0)).optional()
}

/// Removes records.
///
/// # Errors
/// What SQLite says.
pub(crate) fn remove(connection: &Connection, ids: &[RunId]) -> Result<(), StoreFault> {
    let removed = connection.unchecked_transaction().and_then(|change| {
        let mut delete = change.prepare_cached("DELETE FROM runs WHERE id = ?1")?;
        for id in ids {
            delete.execute([id.as_str()])?;
        }
        drop(delete);
        change.commit()
    });
    removed.map_err(|e| fault(&e))
}

/// Reads a page of records, latest first.
///
/// # Errors
/// What SQLite says, or [`StoreFault::Json`].
pub(crate) fn list(
    connection: &Connection,
    filter: &RunFilter,
    page: &Page,
) -> Result<Vec<RunRecord>, StoreFault> {
    let span = Span {
        before: page.before.as_ref().map_or(AFTER_ALL, RunId::as_str),
        since_ms: filter.since_ms,
        limit: page.limit.clamp(1, 1000) as u64,
    };
    let kinds = kinds::matching(connection, filter).map_err(|e| fault(&e))?;
    let found = match kinds {
        Some(kinds) if kinds.len() > MERGED => {
            // The sign keeps the index of kinds out of it: ids give the order.
            let among = "SELECT record FROM runs WHERE +kind IN (SELECT value FROM json_each(?1)) AND";
            span.texts(connection, among, serde_json::to_string(&kinds)?)
        }
        Some(kinds) => latest_of(connection, &kinds, &span).and_then(|ids| {
            // One that another process has removed meanwhile is none any more.
            ids.iter().filter_map(|id| json_of(connection, id).transpose()).collect()
        }),
        None => span.texts(connection, "SELECT record FROM runs WHERE", None::<i64>),
    };
    let found = found.map_err(|e| fault(&e))?;
    found.iter().map(|json| Ok(serde_json::from_str(json)?)).collect()
}

/// Which part of all runs.
struct Span<'a> {
    /// Only ids before this one.
    before: &'a str,
    since_ms: Option<u64>,
    limit: u64,
}

impl Span<'_> {
    /// What a query finds of it, latest first; `kind` where the query asks for one, or for some.
    fn texts(
        &self,
        connection: &Connection,
        select: &str,
        kind: impl ToSql,
    ) -> rusqlite::Result<Vec<String>> {
        // Earlier ids need not be looked at: an id is as old as its run.
        let from = self.since_ms.map(|since| since.saturating_sub(EARLIER_MS).min(LATEST_MS));
        let from = from.map_or(String::new(), |from| format!("run_{from:012x}"));
        let mut query = connection.prepare_cached(&span_query(select))?;
        let since = integer(self.since_ms.unwrap_or(0));
        let rows = query
            .query_map(params![kind, self.before, from, since, integer(self.limit)], |row| row.get(0))?;
        rows.collect()
    }
}

fn span_query(select: &str) -> String {
    format!("{select} id < ?2 AND id >= ?3 AND started_at_ms >= ?4 ORDER BY id DESC LIMIT ?5")
}

/// Ids of runs of any of these kinds, latest first: the latest of each kind, put together.
fn latest_of(connection: &Connection, kinds: &[i64], span: &Span<'_>) -> rusqlite::Result<Vec<String>> {
    let mut ids = Vec::new();
    for kind in kinds {
        ids.extend(span.texts(connection, "SELECT id FROM runs WHERE kind = ?1 AND", Some(*kind))?);
    }
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.truncate(usize::try_from(span.limit).unwrap_or(usize::MAX));
    Ok(ids)
}

/// Takes prompts and answers out of a decision's records, except the latest `keep`, among the `window` before those.
///
/// # Errors
/// What SQLite says.
pub(crate) fn trim_content(
    connection: &Connection,
    decision: &str,
    keep: u64,
    window: u64,
) -> Result<u64, StoreFault> {
    let of_it = RunFilter { decision: Some(decision.to_owned()), ..RunFilter::default() };
    let span = Span { before: AFTER_ALL, since_ms: None, limit: keep.saturating_add(window) };
    let trimmed = kinds::matching(connection, &of_it).and_then(|kinds| {
        let ids = latest_of(connection, &kinds.unwrap_or_default(), &span)?;
        let past = ids.iter().skip(usize::try_from(keep).unwrap_or(usize::MAX));
        without_content(connection, past)
    });
    trimmed.map_err(|e| fault(&e))
}

/// Takes prompts and answers out of these records, and says of how many.
fn without_content<'a>(
    connection: &Connection,
    ids: impl Iterator<Item = &'a String>,
) -> rusqlite::Result<u64> {
    let change = connection.unchecked_transaction()?;
    let mut update = change.prepare_cached(
        "UPDATE runs SET record = json_remove(record, '$.content')
         WHERE id = ?1 AND json_type(record, '$.content') IS NOT NULL",
    )?;
    let mut changed = 0;
    for id in ids {
        changed += update.execute([id])? as u64;
    }
    drop(update);
    change.commit()?;
    Ok(changed)
}

/// SQLite knows signed integers only.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What SQLite says, in our words.
pub(crate) fn fault(error: &rusqlite::Error) -> StoreFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreFault::Damaged(error.to_string()),
        _ => StoreFault::Io(error.to_string()),
    }
}

#[cfg(test)]
pub(crate) fn insert(connection: &Connection, record: &RunRecord) -> Result<(), StoreFault> {
    let mut kinds = Kinds::default();
    let row = Row::of(Box::new(record.clone()))?;
    Insertion::begin(connection, &mut kinds, None).map_err(|e| fault(&e))?.write(&row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunStatus;
    use crate::migrate::migrate;
    use std::path::Path;

    #[test]
    fn only_the_latest_records_of_a_decision_keep_their_content() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let record = |decision: &str| RunRecord {
            decision: Some(decision.into()),
            content: Some(crate::Content { prompt: "p".to_owned(), ..Default::default() }),
            ..RunRecord::default()
        };
        let records: Vec<RunRecord> = ["d", "other", "d", "d", "d"].map(record).to_vec();
        records.iter().for_each(|record| insert(&connection, record).unwrap());
        assert_eq!(trim_content(&connection, "d", 2, 10).unwrap(), 2);
        assert_eq!(trim_content(&connection, "d", 2, 10).unwrap(), 0);
        let kept = records.iter().map(|it| get(&connection, &it.id).unwrap().unwrap().content.is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [false, true, false, true, true]);
    }

    #[test]
    fn each_filter_reads_an_index_and_no_record_that_it_does_not_want() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let plans = [
            (
                "SELECT id FROM runs WHERE kind = ?1 AND",
                "COVERING INDEX runs_by_kind (kind=? AND id>? AND id<?)",
            ),
            ("SELECT record FROM runs WHERE", "INDEX sqlite_autoindex_runs_1 (id>? AND id<?)"),
        ];
        for (select, index) in plans {
            let explained = format!("EXPLAIN QUERY PLAN {}", span_query(select));
            let mut query = connection.prepare(&explained).unwrap();
            let plan = query.query_map(params![1, "b", "a", 0, 1], |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = plan.map(Result::unwrap).collect();
            assert!(plan.len() == 1 && plan[0].contains(index), "{plan:?}");
        }
    }

    #[test]
    fn runs_of_several_kinds_are_one_list() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let records: Vec<RunRecord> = (0..40)
            .map(|at| RunRecord {
                requested_model: format!("m{}", at % 7).into(),
                decision: Some(if at % 2 == 0 { "even" } else { "odd" }.into()),
                ..RunRecord::default()
            })
            .collect();
        records.iter().for_each(|record| insert(&connection, record).unwrap());
        let even = RunFilter { decision: Some("even".to_owned()), ..RunFilter::default() };
        let (mut found, mut page) = (Vec::new(), Page { limit: 6, before: None });
        loop {
            let part = list(&connection, &even, &page).unwrap();
            let Some(last) = part.last() else { break };
            page.before = Some(last.id.clone());
            found.extend(part);
        }
        let expected: Vec<RunRecord> = records.into_iter().step_by(2).rev().collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn runs_of_very_many_kinds_are_one_list_too() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let record = |at: usize| RunRecord {
            requested_model: format!("m{at}").into(),
            status: if at.is_multiple_of(3) { RunStatus::Failed } else { RunStatus::Ok },
            ..RunRecord::default()
        };
        let records: Vec<RunRecord> = (0..4 * MERGED).map(record).collect();
        records.iter().for_each(|record| insert(&connection, record).unwrap());
        let failed = RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() };
        let found = list(&connection, &failed, &Page { limit: 1000, before: None }).unwrap();
        let expected: Vec<RunRecord> = records.into_iter().step_by(3).rev().collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_list_since_a_time_begins_with_ids_of_that_time() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let made_ms = 1_700_000_000_000;
        let record = RunRecord {
            id: RunId::parse(&format!("run_{made_ms:012x}70008000000000000000")).unwrap(),
            started_at_ms: made_ms + 1,
            ..RunRecord::default()
        };
        insert(&connection, &record).unwrap();
        let since = [made_ms - 1, made_ms + 1, made_ms + 2, u64::MAX].map(|since_ms| {
            let filter = RunFilter { since_ms: Some(since_ms), ..RunFilter::default() };
            list(&connection, &filter, &Page::default()).unwrap().len()
        });
        assert_eq!(since, [1, 1, 0, 0]);
    }
}
