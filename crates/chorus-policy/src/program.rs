//! A recipe compiled for speed: every key is a position in one table, every rule reads positions.
//!
//! Only data; knows neither evidence nor how it is read.
//!
//! **Invariant:** slots are sorted by key, asks by family and name, so that nothing depends on the order in which a
//! file lists its signals.

use crate::Ask;
use crate::rank::Rank;
use chorus_spec::{
    Calibration, Family, MappingMethod, NumericPredicate, OnAbsent, PartitionSemantics, SignalKey,
    ValueSource,
};
use std::sync::Arc;

/// Position in [`Program::slots`].
pub(crate) type SlotId = usize;

/// A compiled recipe.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) slots: Vec<Slot>,
    pub(crate) asks: Vec<AskEntry>,
    pub(crate) partitions: Vec<PartitionStep>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) scores: Vec<ScoreStep>,
    pub(crate) decisions: Vec<DecisionStep>,
}

/// One key that something reads or a rule emits.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: SignalKey,
    /// The key's name, for proofs.
    pub(crate) name: Arc<str>,
    pub(crate) source: Source,
    /// The partitions it is a member of.
    pub(crate) partitions: Vec<usize>,
    /// The composer that guards it.
    pub(crate) gate: Option<usize>,
}

/// Where a key's observation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A signal rule that emits it by its own name.
    Rule(usize),
    /// A domain rule that counts this category as its own.
    Category(usize),
    /// A mapping of this score.
    Score(usize),
    /// Nobody that this version runs.
    Nobody,
}

/// One signal rule, or one metric of a knowledge base.
#[derive(Debug)]
pub(crate) struct AskEntry {
    pub(crate) ask: Ask,
    pub(crate) cost: u8,
    /// The slots that the rule fills under its own name.
    pub(crate) emits: Vec<SlotId>,
}

/// A boolean rule over slots.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    Leaf(SlotId),
    /// A leaf with a test of its own.
    Tested(TestStep),
    All(Vec<Rule>),
    Any(Vec<Rule>),
    Not(Box<Rule>),
}

/// What a leaf asks of a slot beyond whether it matched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TestStep {
    pub(crate) slot: SlotId,
    /// Bounds of the raw value; `None` asks whether it matched.
    pub(crate) predicate: Option<NumericPredicate>,
    pub(crate) on_absent: OnAbsent,
}

/// An exclusive group.
#[derive(Debug)]
pub(crate) struct PartitionStep {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) semantics: PartitionSemantics,
    pub(crate) members: Vec<SlotId>,
    pub(crate) default: Option<SlotId>,
}

/// A composer: its labels hold only where its rule does.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) rule: Rule,
    pub(crate) labels: Vec<SlotId>,
}

/// A weighted sum, with the mappings that read it.
#[derive(Debug)]
pub(crate) struct ScoreStep {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) mappings: Vec<MappingStep>,
}

/// One term.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) from: InputFrom,
    pub(crate) weight: f64,
    pub(crate) value: ValueSource,
    /// What the trace calls the source's type.
    pub(crate) kind: &'static str,
}

/// Where a term's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputFrom {
    Slot(SlotId),
    /// An earlier score.
    Score(usize),
}

/// Named bands of a score.
#[derive(Debug)]
pub(crate) struct MappingStep {
    pub(crate) name: String,
    /// Its position in the recipe.
    pub(crate) index: usize,
    pub(crate) method: MappingMethod,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) outputs: Vec<Output>,
}

/// One band.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) slot: SlotId,
    pub(crate) name: String,
    pub(crate) band: NumericPredicate,
}

/// A decision.
#[derive(Debug)]
pub(crate) struct DecisionStep {
    pub(crate) name: Arc<str>,
    pub(crate) tier: i64,
    pub(crate) priority: i64,
    /// `None` holds for every request.
    pub(crate) rule: Option<Rule>,
    pub(crate) rank: Rank,
}
