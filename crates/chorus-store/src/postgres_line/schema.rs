//! The tables, and how older ones become the present ones.
//!
//! Every version is one script; the table `chorus_schema` counts those that ran. A version that was released is never
//! edited: a change is a further script. **Invariant:** of replicas that start at once, one changes the tables and the others
//! wait for it.

use super::PostgresFault;
use tokio_postgres::{Client, GenericClient};

/// "CHRS", the number of our lock among those of a database.
const LOCK: i64 = 0x4348_5253;

/// One script a version, from version 1. Ids sort by time, byte by byte: each index also gives the order of a list. Prompts
/// and answers stand in a column of their own, so that they can be taken out of a record that cannot be changed: `json` keeps
/// what `jsonb` cannot hold, an escaped zero.
const SCRIPTS: [&str; 1] = [r#"
CREATE TABLE chorus_runs (
    id text COLLATE "C" PRIMARY KEY,
    started_at_ms bigint NOT NULL,
    requested_model text NOT NULL,
    decision text,
    status text NOT NULL,
    spec_digest text NOT NULL,
    record json NOT NULL,
    content json
);
CREATE INDEX chorus_runs_by_start ON chorus_runs (started_at_ms);
CREATE INDEX chorus_runs_by_model ON chorus_runs (requested_model, id);
CREATE INDEX chorus_runs_by_decision ON chorus_runs (decision, id);
CREATE INDEX chorus_runs_by_status ON chorus_runs (status, id);
CREATE INDEX chorus_runs_by_spec ON chorus_runs (spec_digest, id);
CREATE TABLE chorus_outcomes (
    told bigint GENERATED ALWAYS AS IDENTITY,
    key text PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    judged text NOT NULL,
    outcome json NOT NULL,
    UNIQUE (run, judged)
);
CREATE INDEX chorus_outcomes_by_order ON chorus_outcomes (told);
CREATE TABLE chorus_api_keys (
    id text PRIMARY KEY,
    hash text NOT NULL,
    name text NOT NULL,
    user_name text NOT NULL,
    group_names text[] NOT NULL,
    created_at_ms bigint NOT NULL,
    revoked_at_ms bigint
);
"#];

/// Brings the tables to the present version.
///
/// # Errors
/// [`PostgresFault::TooNew`], or what the server says.
pub(super) async fn migrate(client: &mut Client) -> Result<(), PostgresFault> {
    let known = i32::try_from(SCRIPTS.len()).unwrap_or(i32::MAX);
    let found = version(client).await?;
    if found > known {
        return Err(PostgresFault::TooNew { found, known });
    }
    if found == known {
        return Ok(());
    }
    let change = client.transaction().await?;
    change.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let found = usize::try_from(version(&change).await?).unwrap_or(0);
    if found == 0 {
        change.batch_execute("CREATE TABLE chorus_schema (version integer NOT NULL)").await?;
        change.batch_execute("INSERT INTO chorus_schema VALUES (0)").await?;
    }
    for script in SCRIPTS.iter().skip(found) {
        change.batch_execute(script).await?;
    }
    change.execute("UPDATE chorus_schema SET version = $1", &[&known]).await?;
    Ok(change.commit().await?)
}

/// Read from the catalog itself: a session may remember that a table was not there, also after another has made it.
const IS_THERE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class
    WHERE relname = 'chorus_schema' AND pg_catalog.pg_table_is_visible(oid))";

/// The version of the tables; 0 where there are none.
async fn version(client: &impl GenericClient) -> Result<i32, PostgresFault> {
    let there = client.query_one(IS_THERE, &[]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    Ok(client.query_one("SELECT version FROM chorus_schema", &[]).await?.try_get(0)?)
}
