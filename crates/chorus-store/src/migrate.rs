//! The schema of the file, and how an older one becomes the present one.
//!
//! Every version is one script; `user_version` counts those that ran. A version that was released is never edited: a
//! change is a further script.

use crate::StoreFault;
use crate::rows::fault;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// "CHRS": tells our files from other SQLite files.
pub(crate) const APPLICATION_ID: i32 = 0x4348_5253;

/// One script a version, from version 1.
pub(crate) const SCRIPTS: [&str; 3] = [
    "CREATE TABLE runs (
        id TEXT NOT NULL PRIMARY KEY,
        started_at_ms INTEGER NOT NULL,
        requested_model TEXT NOT NULL,
        decision TEXT,
        status TEXT NOT NULL,
        spec_digest TEXT NOT NULL,
        record TEXT NOT NULL
    ) STRICT;",
    // Ids sort by time: each index also gives the order of a list.
    "CREATE INDEX runs_by_start ON runs (started_at_ms);
    CREATE INDEX runs_by_model ON runs (requested_model, id);
    CREATE INDEX runs_by_decision ON runs (decision, id);
    CREATE INDEX runs_by_status ON runs (status, id);
    CREATE INDEX runs_by_spec ON runs (spec_digest, id);",
    // What lists look for is written once a kind, and one index of kinds takes the place of five.
    "ALTER TABLE runs RENAME TO runs_before;
    CREATE TABLE kinds (
        number INTEGER PRIMARY KEY,
        requested_model TEXT NOT NULL,
        decision TEXT,
        status TEXT NOT NULL,
        spec_digest TEXT NOT NULL
    ) STRICT;
    CREATE INDEX kinds_by_words ON kinds (requested_model, decision, status, spec_digest);
    INSERT INTO kinds (requested_model, decision, status, spec_digest)
        SELECT DISTINCT requested_model, decision, status, spec_digest FROM runs_before;
    CREATE TABLE runs (
        id TEXT NOT NULL PRIMARY KEY,
        kind INTEGER NOT NULL,
        started_at_ms INTEGER NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    INSERT INTO runs (rowid, id, kind, started_at_ms, record)
        SELECT before.rowid, before.id, kinds.number, before.started_at_ms, before.record
        FROM runs_before AS before CROSS JOIN kinds
        ON kinds.requested_model = before.requested_model AND kinds.decision IS before.decision
            AND kinds.status = before.status AND kinds.spec_digest = before.spec_digest
        ORDER BY before.rowid;
    DROP TABLE runs_before;
    CREATE INDEX runs_by_kind ON runs (kind, id, started_at_ms);",
];

/// Checks that the file is ours and brings it to the present version.
///
/// # Errors
/// [`StoreFault::NotAStore`], [`StoreFault::TooNew`], or what SQLite says.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreFault> {
    let path = path.display().to_string();
    // Immediate: two processes that open a new file at once must not both create the table.
    let change =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|e| at(&e, &path))?;
    let number = |sql: &str| change.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|e| at(&e, &path));
    let application_id = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    if application_id != i64::from(APPLICATION_ID) && (application_id != 0 || tables != 0) {
        return Err(StoreFault::NotAStore { path, detail: "another program's database".to_owned() });
    }
    let found = u32::try_from(number("PRAGMA user_version")?).unwrap_or(u32::MAX);
    let known = u32::try_from(SCRIPTS.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(StoreFault::TooNew { path, found, known });
    }
    for script in SCRIPTS.iter().skip(found as usize) {
        change.execute_batch(script).map_err(|e| fault(&e))?;
    }
    change.pragma_update(None, "application_id", APPLICATION_ID).map_err(|e| fault(&e))?;
    change.pragma_update(None, "user_version", known).map_err(|e| fault(&e))?;
    change.commit().map_err(|e| fault(&e))
}

fn at(error: &rusqlite::Error, path: &str) -> StoreFault {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            StoreFault::NotAStore { path: path.to_owned(), detail: "not a database".to_owned() }
        }
        _ => fault(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;
    use crate::{Page, RunFilter, RunRecord, RunStatus};
    use rusqlite::params;

    /// As version 1 and 2 wrote a record.
    fn insert_before(old: &Connection, record: &RunRecord) {
        let json = serde_json::to_string(record).unwrap();
        let columns = "id, started_at_ms, requested_model, decision, status, spec_digest, record";
        let insert = format!("INSERT INTO runs ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
        let (id, at, status) = (record.id.as_str(), record.started_at_ms as i64, record.status.as_str());
        let (model, digest) = (record.requested_model.as_str(), record.spec_digest.as_str());
        let row = params![id, at, model, record.decision.as_deref(), status, digest, json];
        old.execute(&insert, row).unwrap();
    }

    #[test]
    fn every_older_version_keeps_its_records() {
        let decisions = [None, Some("d".into()), None];
        let mut kept = decisions.map(|decision| RunRecord { decision, ..RunRecord::default() });
        kept[2].status = RunStatus::Failed;
        for version in 1..=SCRIPTS.len() {
            let mut old = Connection::open_in_memory().unwrap();
            SCRIPTS[..version].iter().for_each(|script| old.execute_batch(script).unwrap());
            old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
            old.pragma_update(None, "user_version", version as u32).unwrap();
            for record in &kept {
                if version < 3 {
                    insert_before(&old, record);
                } else {
                    rows::insert(&old, record).unwrap();
                }
            }
            migrate(&mut old, Path::new("old.db")).unwrap();
            let indexes =
                "SELECT group_concat(name) FROM sqlite_master WHERE type = 'index' AND name LIKE 'runs_by_%'";
            let indexes: String = old.query_row(indexes, [], |row| row.get(0)).unwrap();
            assert_eq!(indexes, "runs_by_kind", "from {version}");
            let list = |filter| rows::list(&old, &filter, &Page::default()).unwrap();
            let latest_first: Vec<RunRecord> = kept.iter().rev().cloned().collect();
            assert_eq!(list(RunFilter::default()), latest_first, "from {version}");
            let of_d = RunFilter { decision: Some("d".into()), ..RunFilter::default() };
            assert_eq!(list(of_d), kept[1..2], "from {version}");
            let failed = RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() };
            assert_eq!(list(failed), kept[2..], "from {version}");
        }
    }
}
