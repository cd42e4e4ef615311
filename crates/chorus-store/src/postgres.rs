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
pub use runs::PostgresRuns;

use crate::postgres_line::PostgresLine;

/// PostgreSQL's text has no zero character; JSON escapes it, a column cannot.
fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Longest name that a column with an index holds, in bytes; a longer one is found by its beginning. Source: PostgreSQL, "B-Tree
/// Implementation": an entry takes a third of a page at most, 2,704 bytes, and more would fail its whole batch.
const NAME_BYTES: usize = 512;

fn name(text: &str) -> String {
    plain(text.get(..text.floor_char_boundary(NAME_BYTES)).unwrap_or(text))
}
