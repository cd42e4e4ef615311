//! Loopers: algorithms that make several models work together, one folder each, over the trait [`ModelCalls`].
//!
//! A looper knows no HTTP, no clock, no runtime and no price; it asks its [`ModelCalls`] for calls and reads like the
//! algorithm it implements. The same code serves live traffic, replayed answers and a simulation.
//!
//! **Invariant:** no call is made but through [`ModelCalls`], which asks the budget first and counts every attempt.

mod answers;
pub mod calls;
mod candidate;
mod compact;
pub mod confidence;
pub mod contract;
mod events;
pub mod extract;
mod fault;
mod fence;
mod finish;
pub mod fusion;
mod member;
pub mod poll;
mod question;
pub mod ratings;
pub mod remom;
mod salvage;
mod template;
mod window;
pub mod workflows;

/// What prompts are made of and their answers read with, also for prompts of other rooms.
pub mod prompting {
    pub use crate::fence::Fence;
    pub use crate::salvage::{objects, split_thinking};
    pub use crate::template::{Slots, fill};
}

pub use calls::{
    Answer, Call, CallFault, CallRole, Chunks, Enough, FaultKind, GatherRule, Gathered, Live, Member,
    ModelCalls, Reply,
};
pub use candidate::Candidate;
pub use confidence::{ConfidencePlan, ConfidencePlanFault, ConfidenceTrace, Scorer, Verifier, confidence};
pub use events::{LoopEvent, LoopEvents};
pub use fault::{LoopFault, MemberFailure};
pub use fusion::{Analysis, FusionOverlay, FusionPlan, FusionTrace, PlanFault, fusion};
pub use question::unsupported_param;
pub use ratings::{RatingsPlan, RatingsPlanFault, RatingsTrace, ratings};
pub use remom::{RemomPlan, RemomPlanFault, RemomTrace, remom};
pub use workflows::{Suspension, WorkflowPlan, WorkflowPlanFault, WorkflowStates, WorkflowTrace, workflows};
