//! Outcomes in the database that replicas share.

use super::{PostgresFault, PostgresLine, PostgresPlace, plain};
use crate::database::integer;
use crate::{Outcome, OutcomeFault, OutcomeMark, OutcomeStore, RunId, Told};
use futures_util::future::BoxFuture;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Whoever tells holds a lock until the outcome is kept, so that places in the order become visible in that order: without
/// it an outcome could be kept below a mark that a reader has passed already. The lock is taken before the place is drawn: a
/// row of `turn` is needed first. Source: PostgreSQL, "Sequence Manipulation Functions" and "Advisory Locks".
const TELL: &str = "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock($5))
    INSERT INTO chorus_outcomes (key, run, judged, outcome)
    SELECT $1, $2, $3, $4::text::json FROM turn ON CONFLICT DO NOTHING";

/// "CHRO", the number of the lock among those of a database.
const TURN: i64 = 0x4348_524f;

const OF: &str = "SELECT outcome::text, told FROM chorus_outcomes WHERE run = $1 ORDER BY told";
const BY_KEY: &str = "SELECT outcome::text, told FROM chorus_outcomes WHERE key = $1";
const LATEST: &str = "SELECT outcome::text, told FROM chorus_outcomes ORDER BY told DESC LIMIT $1";
const AFTER: &str = "SELECT outcome::text, told FROM chorus_outcomes WHERE told > $1 ORDER BY told LIMIT $2";

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
        let values: [(&(dyn ToSql + Sync), Type); 5] = [
            (&key, Type::TEXT),
            (&outcome.run.as_str(), Type::TEXT),
            (&judged, Type::TEXT),
            (&text, Type::TEXT),
            (&TURN, Type::INT8),
        ];
        let client = self.0.client().await?;
        if self.0.answered(client.execute_typed(TELL, &values)).await? > 0 {
            return Ok(Told::New);
        }
        let kept = self.all(BY_KEY, &[(&key, Type::TEXT)]).await?;
        let same = kept.first().is_some_and(|(kept, _)| outcome.says(kept));
        Ok(if same { Told::Again } else { Told::Other })
    }

    async fn all(
        &self,
        sql: &str,
        by: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<(Outcome, i64)>, PostgresFault> {
        let client = self.0.client().await?;
        self.0.answered(client.query_typed(sql, by)).await?.iter().map(read).collect()
    }
}

impl OutcomeStore for PostgresOutcomes {
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
        Box::pin(async move { Ok(self.told(&key, &outcome).await?) })
    }

    fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        let run = run.clone();
        Box::pin(async move {
            let rows = self.all(OF, &[(&run.as_str(), Type::TEXT)]).await?;
            Ok(rows.into_iter().map(|(outcome, _)| outcome).collect())
        })
    }

    fn latest(&self, most: usize) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        Box::pin(async move {
            let rows = self.all(LATEST, &[(&integer(most as u64), Type::INT8)]).await?;
            Ok(OutcomeMark::default().on(rows))
        })
    }

    fn after(
        &self,
        mark: OutcomeMark,
        most: usize,
    ) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        Box::pin(async move {
            let most = integer(most as u64);
            let rows = self.all(AFTER, &[(&mark.0, Type::INT8), (&most, Type::INT8)]).await?;
            Ok(mark.on(rows))
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}

fn read(row: &Row) -> Result<(Outcome, i64), PostgresFault> {
    Ok((serde_json::from_str(row.try_get(0)?)?, row.try_get(1)?))
}
