//! API keys in the database that replicas share: one look-up a request, so that a key that is revoked anywhere opens nothing
//! from the next request on.

use super::{PostgresFault, PostgresLine, PostgresPlace};
use crate::database::{count, integer};
use crate::keys::{ApiKey, KeyFault, KeyStore, Minted, NewKey, Presented};
use futures_util::future::BoxFuture;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

const COLUMNS: &str = "id, name, user_name, group_names, created_at_ms, revoked_at_ms, hash";

/// Keys of one database.
pub struct PostgresKeys(PostgresLine);

impl PostgresKeys {
    /// Those at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`PostgresFault::Tls`].
    pub fn new(place: &PostgresPlace) -> Result<Self, PostgresFault> {
        Ok(Self(PostgresLine::new(place)?))
    }

    async fn keep(&self, minted: &Minted) -> Result<(), PostgresFault> {
        let key = &minted.key;
        let created = integer(key.created_at_ms);
        let values: [(&(dyn ToSql + Sync), Type); 6] = [
            (&key.id, Type::TEXT),
            (&minted.hash, Type::TEXT),
            (&key.name, Type::TEXT),
            (&key.user, Type::TEXT),
            (&key.groups, Type::TEXT_ARRAY),
            (&created, Type::INT8),
        ];
        let sql = "INSERT INTO chorus_api_keys (id, hash, name, user_name, group_names, created_at_ms)
            VALUES ($1, $2, $3, $4, $5, $6)";
        let client = self.0.client().await?;
        self.0.answered(client.execute_typed(sql, &values)).await.map(drop)
    }

    async fn rows(
        &self,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, PostgresFault> {
        let client = self.0.client().await?;
        self.0.answered(client.query_typed(sql, values)).await
    }
}

impl KeyStore for PostgresKeys {
    fn create<'a>(
        &'a self,
        name: &'a str,
        user: &'a str,
        groups: &'a [String],
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(ApiKey, NewKey), KeyFault>> {
        Box::pin(async move {
            let minted = Minted::new(name, user, groups, now_ms)?;
            self.keep(&minted).await?;
            Ok((minted.key, minted.whole))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApiKey>, KeyFault>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM chorus_api_keys ORDER BY created_at_ms, id");
            let rows = self.rows(&sql, &[]).await?;
            Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
        })
    }

    fn revoke<'a>(&'a self, id: &'a str, now_ms: u64) -> BoxFuture<'a, Result<bool, KeyFault>> {
        Box::pin(async move {
            let sql = "UPDATE chorus_api_keys SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";
            let now = integer(now_ms);
            let client = self.0.client().await?;
            let values: [(&(dyn ToSql + Sync), Type); 2] = [(&id, Type::TEXT), (&now, Type::INT8)];
            Ok(self.0.answered(client.execute_typed(sql, &values)).await? == 1)
        })
    }

    fn find<'a>(&'a self, presented: &'a str) -> BoxFuture<'a, Result<Option<ApiKey>, KeyFault>> {
        Box::pin(async move {
            let Some(presented) = Presented::read(presented) else { return Ok(None) };
            let sql =
                format!("SELECT {COLUMNS} FROM chorus_api_keys WHERE id = $1 AND revoked_at_ms IS NULL");
            let rows = self.rows(&sql, &[(&presented.id, Type::TEXT)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let hash: &str = row.try_get(6).map_err(PostgresFault::from)?;
            Ok(presented.has_hash(hash).then(|| read(row)).transpose()?)
        })
    }
}

fn read(row: &Row) -> Result<ApiKey, PostgresFault> {
    Ok(ApiKey {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        user: row.try_get(2)?,
        groups: row.try_get(3)?,
        created_at_ms: count(row.try_get(4)?),
        revoked_at_ms: row.try_get::<_, Option<i64>>(5)?.map(count),
    })
}
