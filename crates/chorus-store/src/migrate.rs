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
pub(crate) const SCRIPTS: [&str; 2] = [
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
    use crate::{Page, RunFilter, RunRecord};

    #[test]
    fn every_older_version_keeps_its_records() {
        let kept = RunRecord { started_at_ms: 7, ..RunRecord::default() };
        for version in 1..=SCRIPTS.len() {
            let mut old = Connection::open_in_memory().unwrap();
            SCRIPTS[..version].iter().for_each(|script| old.execute_batch(script).unwrap());
            old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
            old.pragma_update(None, "user_version", version as u32).unwrap();
            rows::insert(&old, &kept).unwrap();
            migrate(&mut old, Path::new("old.db")).unwrap();
            let indexes = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE 'runs_by_%'";
            assert_eq!(old.query_row(indexes, [], |row| row.get::<_, i64>(0)).unwrap(), 5, "from {version}");
            let list = rows::list(&old, &RunFilter::default(), &Page::default()).unwrap();
            assert_eq!(list, std::slice::from_ref(&kept), "from {version}");
        }
    }
}
