//! One row of the table of signals. It knows no signal; each signal's file fills its own row.
//!
//! **Invariant:** a row's texts stand word for word in the head of the signal's file (a test compares them).

use chorus_spec::Family;

/// What a person should know about a signal.
#[derive(Debug, Clone, Copy)]
pub struct SignalDoc {
    /// The family; its text form is the signal's name.
    pub family: Family,
    /// What it measures.
    pub measures: &'static str,
    /// What it reads of a request.
    pub inputs: &'static str,
    /// Cost tier, see [`crate::cost`].
    pub cost: u8,
    /// When it says nothing, or is known to err.
    pub fails_when: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
}
