//! Run records: one per request, kept in one embedded file or a database that replicas share; workflow runs that wait for tools; and responses that wait
//! to be asked for again; memories of users, files and their passages, and originals of what was shortened.
//!
//! This crate knows what a record holds and how it survives a crash. It does not know requests, HTTP, configuration
//! or where the file lies.
//!
//! **Invariant:** a record whose append was acknowledged is there after any stop of the process, clean or not; and a
//! record has no field for a header, a credential or an address.

mod database;
pub mod documents;
pub mod keys;
mod kinds;
pub mod memories;
mod migrate;
pub mod originals;
pub mod outcomes;
pub mod postgres;
mod postgres_line;
pub mod qdrant;
mod recall;
mod recall_fault;
pub mod record;
mod redis_line;
pub mod responses;
mod rest;
mod rows;
pub mod shared_answers;
pub mod shared_limits;
pub mod shared_runs;
pub mod shared_sessions;
pub mod sqlite;
pub mod store;
pub mod workflow_state;

pub use documents::{DocumentLimits, Documents, Whose};
pub use keys::{ApiKey, KeyFault, KeyStore, NewKey, SqliteKeys};
pub use memories::{
    CachedMemories, KeepRule, Kept, Memory, MemoryStore, QdrantMemories, SqliteMemories, Statement,
};
pub use originals::{Originals, OriginalsRule};
pub use outcomes::{
    Outcome, OutcomeFault, OutcomeMark, OutcomeStore, OutcomeTarget, OutcomeVerdict, RedisOutcomes,
    SqliteOutcomes, Told,
};
pub use postgres::{PostgresFault, PostgresKeys, PostgresOutcomes, PostgresPlace, PostgresRuns, PostgresTls};
pub use qdrant::{ForeignCollection, QdrantAsk, QdrantFault, QdrantLink};
pub use recall::Recall;
pub use recall_fault::RecallFault;
pub use record::{
    CallRecord, CallStatus, CheckRecord, Content, Excerpt, ProjectionRecord, Proof, Purpose, RunId,
    RunRecord, RunStatus, SignalRecord, SignalState, ToolStep,
};
pub use redis_line::{RedisFault, RedisPlace, RedisPlaceFault};
pub use responses::{
    KeptResponse, MemoryResponses, RedisResponses, ResponseFault, ResponseLimits, ResponseStore,
    SqliteResponses,
};
pub use shared_answers::{AnswersFault, QdrantAnswers, RedisAnswers, SharedAnswers};
pub use shared_limits::{Admission, LimitCounter, LimitsFault, RedisLimits, Window};
pub use shared_runs::{MAX_SPOOL_BYTES, QdrantRuns, RedisRuns, RunsPlace, SharedRunStore};
pub use shared_sessions::{RedisSessions, SessionsFault};
pub use sqlite::SqliteRunStore;
pub use store::{Losses, Page, Receipt, RunFilter, RunStore, StoreFault};
pub use workflow_state::{FileStates, MemoryStates, RedisStates};
