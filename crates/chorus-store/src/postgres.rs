//! One PostgreSQL database that replicas share: run records, outcomes and API keys.
//!
//! Each store has a connection of its own, so that a look-up of a key never waits behind records that are being written. It
//! knows no configuration. **Invariant:** as of the connection and of each store's trait.

mod keys;
mod outcomes;
mod runs;
mod store;

pub use crate::postgres_line::{PostgresFault, PostgresPlace, PostgresTls, prepare};
pub use keys::PostgresKeys;
pub use outcomes::PostgresOutcomes;
pub use store::PostgresRunStore;

use crate::postgres_line::PostgresLine;

/// PostgreSQL's text has no zero character; JSON escapes it, a column cannot.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
