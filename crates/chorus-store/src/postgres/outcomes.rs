//! Outcomes in the database that replicas share.

use super::{PostgresFault, PostgresLine, PostgresPlace, plain};
use crate::database::integer;
use crate::{Outcome, OutcomeFault, OutcomeStore, RunId, Told};
use futures_util::future::BoxFuture;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

const TELL: &str = "INSERT INTO chorus_outcomes (key, run, judged, outcome)
    VALUES ($1, $2, $3, $4::text::json) ON CONFLICT DO NOTHING";

/// Outcomes of one database.
pub struct PostgresOutcomes(PostgresLine);

impl PostgresOutcomes {
    /// Those at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`PostgresFault::Tls`].
    pub fn new(place: &PostgresPlace) -> Result<Self, PostgresFault> {
        Ok(Self(PostgresLine::new(place)?))
    }

    async fn told(&self, key: &str, outcome: &Outcome) -> Result<Told, PostgresFault> {
        let key = plain(key);
        let text = serde_json::to_string(outcome)?;
        let judged = serde_json::to_string(&(outcome.target, &outcome.target_ref))?;
        let values: [(&(dyn ToSql + Sync), Type); 4] = [
            (&key, Type::TEXT),
            (&outcome.run.as_str(), Type::TEXT),
            (&judged, Type::TEXT),
            (&text, Type::TEXT),
        ];
        let client = self.0.client().await?;
        if self.0.answered(client.execute_typed(TELL, &values)).await? > 0 {
            return Ok(Told::New);
        }
        let sql = "SELECT outcome::text FROM chorus_outcomes WHERE key = $1";
        let kept = self.all(sql, (&key, Type::TEXT)).await?;
        let same = kept.first().is_some_and(|kept| outcome.says(kept));
        Ok(if same { Told::Again } else { Told::Other })
    }

    async fn all(&self, sql: &str, by: (&(dyn ToSql + Sync), Type)) -> Result<Vec<Outcome>, PostgresFault> {
        let client = self.0.client().await?;
        let rows = self.0.answered(client.query_typed(sql, &[by])).await?;
        rows.iter().map(read).collect()
    }
}

impl OutcomeStore for PostgresOutcomes {
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
        Box::pin(async move { Ok(self.told(&key, &outcome).await?) })
    }

    fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        let run = run.clone();
        Box::pin(async move {
            let sql = "SELECT outcome::text FROM chorus_outcomes WHERE run = $1 ORDER BY told";
            Ok(self.all(sql, (&run.as_str(), Type::TEXT)).await?)
        })
    }

    fn latest(&self, most: usize) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        Box::pin(async move {
            let sql = "SELECT outcome::text FROM chorus_outcomes ORDER BY told DESC LIMIT $1";
            Ok(self.all(sql, (&integer(most as u64), Type::INT8)).await?)
        })
    }
}

fn read(row: &Row) -> Result<Outcome, PostgresFault> {
    Ok(serde_json::from_str(row.try_get(0)?)?)
}
