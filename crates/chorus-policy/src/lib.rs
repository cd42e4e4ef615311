//! Evidence → projections → decision, with its proof; three-valued and lazy.
//!
//! Pure: no runtime, no clock, no I/O, no randomness. The engine feeds evidence in; [`Policy::decide`] says what it
//! still needs, cheapest first, or who has won and why. The same evidence gives the same answer, byte for byte.
//!
//! A request goes through these stages, in this order (contract v0.3): observations, partitions, composers, scores
//! and mappings, decisions, ranking. Each stage reads only what stands before it.
//!
//! **Invariant:** an absent signal is never "no": what depends on it is unknown, and an unknown decision never wins.

mod belief;
mod compile;
pub mod evidence;
mod facts;
pub mod manual;
mod partition;
mod policy;
mod program;
mod proof;
mod rank;
mod reach;
mod rule;
mod score;
mod trace;
mod verdict;

pub use evidence::{AbsentReason, Ask, Evidence, Observation};
pub use policy::Policy;
pub use proof::{NodeType, Proof, ProofNode, Truth};
pub use trace::{
    InputPart, MappingDecision, OutputStep, PartitionContender, PartitionResolution, ProjectionTrace,
    ScoreBreakdown,
};
pub use verdict::{Blocked, Progress, Scope, Verdict, Won};
