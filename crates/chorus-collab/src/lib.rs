//! Loopers: algorithms that make several models work together, one folder each, over the trait [`ModelCalls`].
//!
//! A looper knows no HTTP, no clock, no runtime and no price; it asks its [`ModelCalls`] for calls and reads like the
//! algorithm it implements. The same code serves live traffic, replayed answers and a simulation.
//!
//! **Invariant:** no call is made but through [`ModelCalls`], which asks the budget first and counts every attempt.

pub mod calls;
pub mod fusion;

pub use calls::{
    Answer, Call, CallFault, CallRole, Chunks, FaultKind, GatherRule, Gathered, Live, Member, ModelCalls,
    Reply,
};
pub use fusion::{
    Analysis, FusionEvents, FusionOverlay, FusionPlan, FusionTrace, LoopFault, PlanFault, fusion,
    unsupported_param,
};
