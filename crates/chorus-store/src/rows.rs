//! Records as rows: writing one, reading one, and the query behind a list.

use crate::{Page, RunFilter, RunId, RunRecord, StoreFault};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params, params_from_iter};

/// Writes one record.
///
/// # Errors
/// [`StoreFault::Duplicate`], or what SQLite says.
pub(crate) fn insert(connection: &Connection, record: &RunRecord) -> Result<(), StoreFault> {
    let json = serde_json::to_string(record)?;
    let mut insert = connection
        .prepare_cached(
            "INSERT INTO runs (id, started_at_ms, requested_model, decision, status, spec_digest, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .map_err(|e| fault(&e))?;
    let row = params![
        record.id.as_str(),
        integer(record.started_at_ms),
        record.requested_model,
        record.decision,
        record.status.as_str(),
        record.spec_digest,
        json
    ];
    match insert.execute(row) {
        Ok(_) => Ok(()),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreFault::Duplicate(record.id.clone()))
        }
        Err(e) => Err(fault(&e)),
    }
}

/// Writes one record where those that are kept take less than so many bytes: a record may end above the bound, none begins
/// there.
///
/// # Errors
/// [`StoreFault::Full`], and those of [`insert`].
pub(crate) fn insert_within(
    connection: &Connection,
    record: &RunRecord,
    most_bytes: u64,
) -> Result<(), StoreFault> {
    if used_bytes(connection)? >= most_bytes {
        return Err(StoreFault::Full(most_bytes));
    }
    insert(connection, record)
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
    let mut query =
        connection.prepare_cached("SELECT record FROM runs WHERE id = ?1").map_err(|e| fault(&e))?;
    let json: Option<String> =
        query.query_row([id.as_str()], |row| row.get(0)).optional().map_err(|e| fault(&e))?;
    json.map(|json| Ok(serde_json::from_str(&json)?)).transpose()
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
    let (sql, values) = list_query(filter, page);
    let mut query = connection.prepare_cached(&sql).map_err(|e| fault(&e))?;
    let rows =
        query.query_map(params_from_iter(values), |row| row.get::<_, String>(0)).map_err(|e| fault(&e))?;
    rows.map(|json| Ok(serde_json::from_str(&json.map_err(|e| fault(&e))?)?)).collect()
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
    let mut update = connection
        .prepare_cached(
            "UPDATE runs SET record = json_remove(record, '$.content')
             WHERE id IN (SELECT id FROM runs WHERE decision = ?1 ORDER BY id DESC LIMIT ?3 OFFSET ?2)
             AND json_type(record, '$.content') IS NOT NULL",
        )
        .map_err(|e| fault(&e))?;
    let changed = update.execute(params![decision, integer(keep), integer(window)]).map_err(|e| fault(&e))?;
    Ok(changed as u64)
}

fn list_query(filter: &RunFilter, page: &Page) -> (String, Vec<Value>) {
    let text = |text: &String| Value::from(text.clone());
    let conditions = [
        ("decision =", filter.decision.as_ref().map(text)),
        ("requested_model =", filter.requested_model.as_ref().map(text)),
        ("status =", filter.status.map(|status| Value::from(status.as_str().to_owned()))),
        ("spec_digest =", filter.spec_digest.as_ref().map(text)),
        ("started_at_ms >=", filter.since_ms.map(|since| Value::from(integer(since)))),
        ("id <", page.before.as_ref().map(|id| Value::from(id.as_str().to_owned()))),
    ];
    let mut sql = "SELECT record FROM runs".to_owned();
    let mut values = Vec::new();
    for (condition, value) in conditions {
        let Some(value) = value else { continue };
        sql.push_str(if values.is_empty() { " WHERE " } else { " AND " });
        sql.push_str(condition);
        sql.push_str(" ?");
        values.push(value);
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?");
    values.push(Value::from(integer(page.limit.clamp(1, 1000) as u64)));
    (sql, values)
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
mod tests {
    use super::*;
    use crate::migrate::migrate;
    use std::path::Path;

    #[test]
    fn only_the_latest_records_of_a_decision_keep_their_content() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let record = |decision: &str| RunRecord {
            decision: Some(decision.to_owned()),
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
    fn each_filter_has_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let word = || Some("x".to_owned());
        let rows = [
            (RunFilter { decision: word(), ..RunFilter::default() }, "runs_by_decision"),
            (RunFilter { requested_model: word(), ..RunFilter::default() }, "runs_by_model"),
            (RunFilter { spec_digest: word(), ..RunFilter::default() }, "runs_by_spec"),
            (RunFilter { status: Some(crate::RunStatus::Ok), ..RunFilter::default() }, "runs_by_status"),
        ];
        for (filter, index) in rows {
            let (sql, values) = list_query(&filter, &Page::default());
            let mut query = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = query.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = plan.map(Result::unwrap).collect();
            assert!(plan.len() == 1 && plan[0].contains(index), "{plan:?}");
        }
    }
}
