//! A connection to a PostgreSQL database that replicas share: where it is, how it is protected, and the tables it finds.
//!
//! It knows no configuration: address and password come resolved. **Invariant:** no fault repeats an address or a password, and
//! tables are those of the present schema before anything is asked of them.

mod line;
mod place;
mod schema;
mod tls;

pub(crate) use line::PostgresLine;
pub use place::{PostgresFault, PostgresPlace, PostgresTls};

/// Makes sure that the database can be used: reaches it, and brings its tables to the present schema.
///
/// # Errors
/// [`PostgresFault`]; whether waiting helps, [`PostgresFault::is_absence`] says.
pub async fn prepare(place: &PostgresPlace) -> Result<(), PostgresFault> {
    PostgresLine::new(place)?.client().await.map(drop)
}
