//! Run records: one per request, kept in one embedded file; workflow runs that wait for tools; and responses that wait
//! to be asked for again.
//!
//! This crate knows what a record holds and how it survives a crash. It does not know requests, HTTP, configuration
//! or where the file lies.
//!
//! **Invariant:** a record whose append was acknowledged is there after any stop of the process, clean or not; and a
//! record has no field for a header, a credential or an address.

pub mod keys;
mod migrate;
pub mod outcomes;
pub mod record;
pub mod responses;
mod rows;
pub mod sqlite;
pub mod store;
pub mod workflow_state;

pub use keys::{ApiKey, KeyFault, KeyStore, NewKey};
pub use outcomes::{
    Outcome, OutcomeFault, OutcomeStore, OutcomeTarget, OutcomeVerdict, SqliteOutcomes, Told,
};
pub use record::{
    CallRecord, CallStatus, CheckRecord, Content, ProjectionRecord, Proof, Purpose, RunId, RunRecord,
    RunStatus, SignalRecord, SignalState,
};
pub use responses::{
    KeptResponse, MemoryResponses, ResponseFault, ResponseLimits, ResponseStore, SqliteResponses,
};
pub use sqlite::SqliteRunStore;
pub use store::{Page, Receipt, RunFilter, RunStore, StoreFault};
pub use workflow_state::{FileStates, MemoryStates, RedisPlace, RedisPlaceFault, RedisStates};
