//! Run records as rows of the database: writing many at once, reading, and the query behind a list.

use super::{PostgresFault, PostgresLine, PostgresPlace, name};
use crate::database::integer;
use crate::{Page, RunFilter, RunId, RunRecord};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// One statement is one transaction. A record that is there already is left as it is.
const INSERT: &str = "INSERT INTO chorus_runs
    (id, started_at_ms, requested_model, decision, status, spec_digest, record, content)
    SELECT r.id, r.started, r.model, r.decision, r.status, r.spec, r.record::json, r.content::json
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS r (id, started, model, decision, status, spec, record, content)
    ON CONFLICT (id) DO NOTHING RETURNING id";

const TRIM: &str = "UPDATE chorus_runs SET content = NULL WHERE content IS NOT NULL AND id IN
    (SELECT id FROM chorus_runs WHERE decision = $1 ORDER BY id DESC OFFSET $2 LIMIT $3)";

/// By the server's clock, a part at a time.
const FORGET: &str = "WITH old AS (SELECT id FROM chorus_runs
        WHERE started_at_ms < (extract(epoch FROM now()) * 1000)::bigint - $1 ORDER BY started_at_ms LIMIT 5000),
    runs AS (DELETE FROM chorus_runs USING old WHERE chorus_runs.id = old.id)
    DELETE FROM chorus_outcomes USING old WHERE run = old.id";

/// The rows of one database.
pub struct PostgresRuns(PostgresLine);

/// Records column by column.
#[derive(Default)]
struct Columns<'r> {
    ids: Vec<&'r str>,
    started: Vec<i64>,
    models: Vec<String>,
    decisions: Vec<Option<String>>,
    statuses: Vec<&'static str>,
    specs: Vec<&'r str>,
    records: Vec<String>,
    contents: Vec<Option<String>>,
}

impl PostgresRuns {
    /// Those at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`PostgresFault::Tls`].
    pub fn new(place: &PostgresPlace) -> Result<Self, PostgresFault> {
        Ok(Self(PostgresLine::new(place)?))
    }

    /// Writes records in one transaction; returns the ids of those that were not there before.
    ///
    /// # Errors
    /// [`PostgresFault`]: then none is written, or it is not known.
    pub(super) async fn insert(&self, records: &mut [RunRecord]) -> Result<BTreeSet<String>, PostgresFault> {
        let contents: Vec<_> = records.iter_mut().map(|record| record.content.take()).collect();
        let bare: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
        let full = contents.iter().map(|content| content.as_ref().map(serde_json::to_string).transpose());
        let full: Result<Vec<Option<String>>, _> = full.collect();
        records.iter_mut().zip(contents).for_each(|(record, content)| record.content = content);
        let mut columns = Columns { records: bare?, contents: full?, ..Columns::default() };
        for record in records.iter() {
            columns.ids.push(record.id.as_str());
            columns.started.push(integer(record.started_at_ms));
            columns.models.push(name(&record.requested_model));
            columns.decisions.push(record.decision.as_deref().map(name));
            columns.statuses.push(record.status.as_str());
            columns.specs.push(&record.spec_digest);
        }
        let values: [(&(dyn ToSql + Sync), Type); 8] = [
            (&columns.ids, Type::TEXT_ARRAY),
            (&columns.started, Type::INT8_ARRAY),
            (&columns.models, Type::TEXT_ARRAY),
            (&columns.decisions, Type::TEXT_ARRAY),
            (&columns.statuses, Type::TEXT_ARRAY),
            (&columns.specs, Type::TEXT_ARRAY),
            (&columns.records, Type::TEXT_ARRAY),
            (&columns.contents, Type::TEXT_ARRAY),
        ];
        let client = self.0.client().await?;
        let rows = self.0.answered(client.query_typed(INSERT, &values)).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(super) async fn reached(&self) -> Result<(), PostgresFault> {
        self.0.client().await.map(drop)
    }

    /// One record.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(super) async fn get(&self, id: &RunId) -> Result<Option<RunRecord>, PostgresFault> {
        let client = self.0.client().await?;
        let sql = "SELECT record::text, content::text FROM chorus_runs WHERE id = $1";
        let rows = self.0.answered(client.query_typed(sql, &[(&id.as_str(), Type::TEXT)])).await?;
        rows.first().map(read).transpose()
    }

    /// Records, latest first.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(super) async fn list(
        &self,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<Vec<RunRecord>, PostgresFault> {
        let (sql, values) = list_query(filter, page);
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect();
        let client = self.0.client().await?;
        self.0.answered(client.query_typed(&sql, &values)).await?.iter().map(read).collect()
    }

    /// Takes prompts and answers out of a decision's records, except the latest `keep`, among the `window` before those.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(super) async fn trim_content(
        &self,
        decision: &str,
        keep: u64,
        window: u64,
    ) -> Result<u64, PostgresFault> {
        let (decision, keep, window) = (name(decision), integer(keep), integer(window));
        let client = self.0.client().await?;
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&decision, Type::TEXT), (&keep, Type::INT8), (&window, Type::INT8)];
        self.0.answered(client.execute_typed(TRIM, &values)).await
    }

    /// Removes runs that are older than that, and their outcomes; not all at once.
    ///
    /// # Errors
    /// [`PostgresFault`].
    pub(super) async fn forget(&self, older: Duration) -> Result<(), PostgresFault> {
        let millis = i64::try_from(older.as_millis()).unwrap_or(i64::MAX);
        let client = self.0.client().await?;
        self.0.answered(client.execute_typed(FORGET, &[(&millis, Type::INT8)])).await.map(drop)
    }
}

fn read(row: &Row) -> Result<RunRecord, PostgresFault> {
    let mut record: RunRecord = serde_json::from_str(row.try_get(0)?)?;
    let content: Option<&str> = row.try_get(1)?;
    record.content = content.map(serde_json::from_str).transpose()?;
    Ok(record)
}

type Value = Box<dyn ToSql + Send + Sync>;

fn list_query(filter: &RunFilter, page: &Page) -> (String, Vec<(Value, Type)>) {
    let text = |text: &str| (Box::new(name(text)) as Value, Type::TEXT);
    let number = |number: i64| (Box::new(number) as Value, Type::INT8);
    let conditions = [
        ("decision =", filter.decision.as_deref().map(text)),
        ("requested_model =", filter.requested_model.as_deref().map(text)),
        ("status =", filter.status.map(|status| text(status.as_str()))),
        ("spec_digest =", filter.spec_digest.as_deref().map(text)),
        ("started_at_ms >=", filter.since_ms.map(|since| number(integer(since)))),
        ("id <", page.before.as_ref().map(|id| text(id.as_str()))),
    ];
    let mut sql = "SELECT record::text, content::text FROM chorus_runs".to_owned();
    let mut values = Vec::new();
    for (condition, value) in conditions {
        let Some(value) = value else { continue };
        sql.push_str(if values.is_empty() { " WHERE " } else { " AND " });
        values.push(value);
        sql.push_str(&format!("{condition} ${}", values.len()));
    }
    values.push(number(integer(page.limit.clamp(1, 1000) as u64)));
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", values.len()));
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_number() {
        let filter = RunFilter { decision: Some("d".to_owned()), since_ms: Some(7), ..RunFilter::default() };
        let (sql, values) = list_query(&filter, &Page { limit: 5, before: Some(RunId::new()) });
        assert!(
            sql.ends_with(
                "WHERE decision = $1 AND started_at_ms >= $2 AND id < $3 ORDER BY id DESC LIMIT $4"
            )
        );
        assert_eq!(values.len(), 4);
    }
}
