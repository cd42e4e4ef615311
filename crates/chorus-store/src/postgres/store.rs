//! The database as the place of run records that replicas share.

use super::runs::PostgresRuns;
use crate::shared_runs::RunsPlace;
use crate::{Page, RunFilter, RunId, RunRecord, StoreFault};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::time::Duration;

impl RunsPlace for PostgresRuns {
    fn name(&self) -> &'static str {
        "the database of run records"
    }

    fn reached(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        async { Ok(self.reached().await?) }.boxed()
    }

    fn insert<'a>(
        &'a self,
        records: &'a mut [RunRecord],
    ) -> BoxFuture<'a, Result<BTreeSet<String>, StoreFault>> {
        async { Ok(self.insert(records).await?) }.boxed()
    }

    fn get<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreFault>> {
        async { Ok(self.get(id).await?) }.boxed()
    }

    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreFault>> {
        async { Ok(self.list(filter, page).await?) }.boxed()
    }

    fn trim_content<'a>(
        &'a self,
        decision: &'a str,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'a, Result<u64, StoreFault>> {
        async move { Ok(self.trim_content(decision, keep, window).await?) }.boxed()
    }

    fn forget(&self, older: Duration) -> BoxFuture<'_, Result<(), StoreFault>> {
        async move { Ok(self.forget(older).await?) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PostgresFault, PostgresPlace, PostgresTls, RunStore as _, SharedRunStore, SqliteRunStore};
    use std::sync::Arc;

    /// A place where nobody listens.
    async fn nowhere() -> PostgresPlace {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        PostgresPlace {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            database: "chorus".to_owned(),
            user: "router".to_owned(),
            password: Some("hunter2".to_owned()),
            tls: PostgresTls::Off,
        }
    }

    #[tokio::test]
    async fn while_the_database_is_away_records_are_safe_in_the_spool() {
        let spool = SqliteRunStore::in_memory().unwrap();
        let store = {
            let runs: Arc<dyn RunsPlace> = Arc::new(PostgresRuns::new(&nowhere().await).unwrap());
            SharedRunStore::new(Arc::clone(&runs), runs, spool.clone(), None)
        };
        let records: Vec<RunRecord> = (0..3).map(|_| RunRecord::default()).collect();
        for record in &records {
            store.append(record.clone()).await.unwrap();
        }
        assert_eq!(store.get(&records[1].id).await.unwrap(), Some(records[1].clone()));
        assert_eq!(spool.list(RunFilter::default(), Page::default()).await.unwrap().len(), 3);
        // A part of a list would be a wrong answer.
        let fault = store.list(RunFilter::default(), Page::default()).await.unwrap_err();
        assert!(matches!(&fault, StoreFault::Database(PostgresFault::Unreachable)), "{fault}");
        assert!(!fault.to_string().contains("127.0.0.1"), "{fault}");
        assert!(store.append(records[0].clone()).await.is_err(), "the same id twice");
    }
}
