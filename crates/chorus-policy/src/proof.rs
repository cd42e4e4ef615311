//! Why a decision holds, does not, or cannot be said.
//!
//! The tree mirrors the decision's rule. Knows nothing of other decisions. Source of the JSON shape: contract v0.3,
//! Appendix B, `decision/trace.go`; `truth` and `absent` are our additions.
//!
//! **Invariant:** `matched` is true exactly when `truth` is [`Truth::True`].

use crate::belief::{Belief, Outcomes};
use crate::facts::{Facts, State};
use crate::program::{DecisionStep, Program, Rule, SlotId};
use crate::{AbsentReason, Evidence, Observation};
use chorus_spec::Family;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// Kleene's three truths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be said, or has not been asked.
    Unknown,
}

impl Truth {
    fn of(belief: Belief) -> Self {
        match belief.can {
            Outcomes::TRUE => Self::True,
            Outcomes::FALSE => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// Why one decision came out as it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Its name.
    #[serde(rename = "decision_name")]
    pub decision: Arc<str>,
    /// The truth of its rule.
    pub truth: Truth,
    /// Whether it holds.
    pub matched: bool,
    /// In 0..=1; 0 unless it holds.
    pub confidence: f64,
    /// Its rule.
    #[serde(rename = "root_trace")]
    pub tree: ProofNode,
}

/// What a node of a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NodeType {
    /// One fact.
    #[serde(rename = "leaf")]
    Leaf,
    /// All of its children.
    #[serde(rename = "AND")]
    And,
    /// Any of its children.
    #[serde(rename = "OR")]
    Or,
    /// Not its child.
    #[serde(rename = "NOT")]
    Not,
    /// A decision without rules: holds for every request, with confidence 0.
    #[serde(rename = "fallback")]
    Fallback,
}

/// One node of a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProofNode {
    /// What it is.
    pub node_type: NodeType,
    /// The family, of a leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_type: Option<Family>,
    /// The emitted name, of a leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_name: Option<Arc<str>>,
    /// Its truth.
    pub truth: Truth,
    /// Whether it holds.
    pub matched: bool,
    /// In 0..=1; 0 unless it holds.
    pub confidence: f64,
    /// Why a leaf is unknown, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<Cow<'static, str>>,
    /// Its parts, in the rule's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ProofNode>,
}

/// Writes proofs over one set of facts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prover<'a> {
    pub(crate) program: &'a Program,
    pub(crate) facts: &'a Facts,
    pub(crate) evidence: &'a Evidence,
}

impl Prover<'_> {
    pub(crate) fn decision(&self, decision: &DecisionStep) -> Proof {
        let tree = match &decision.rule {
            Some(rule) => self.node(rule).0,
            None => inner(NodeType::Fallback, Belief::certain(Outcomes::TRUE), Vec::new()),
        };
        Proof {
            decision: Arc::clone(&decision.name),
            truth: tree.truth,
            matched: tree.matched,
            confidence: tree.confidence,
            tree,
        }
    }

    /// The belief comes along so that no part is evaluated once more by each of its parents.
    fn node(&self, rule: &Rule) -> (ProofNode, Belief) {
        match rule {
            Rule::Leaf(slot) => {
                let belief = rule.belief(self.facts);
                (self.leaf(*slot, belief), belief)
            }
            Rule::Tested(test) => {
                let belief = rule.belief(self.facts);
                (self.leaf(test.slot, belief), belief)
            }
            Rule::All(parts) => self.connective(NodeType::And, parts, |beliefs| Belief::all(beliefs)),
            Rule::Any(parts) => self.connective(NodeType::Or, parts, |beliefs| Belief::any(beliefs)),
            Rule::Not(part) => {
                let (child, belief) = self.node(part);
                (inner(NodeType::Not, belief.not(), vec![child]), belief.not())
            }
        }
    }

    fn connective(
        &self,
        node_type: NodeType,
        parts: &[Rule],
        join: impl Fn(&mut dyn Iterator<Item = Belief>) -> Belief,
    ) -> (ProofNode, Belief) {
        let mut children = Vec::with_capacity(parts.len());
        let belief = join(&mut parts.iter().map(|part| {
            let (child, belief) = self.node(part);
            children.push(child);
            belief
        }));
        (inner(node_type, belief, children), belief)
    }

    fn leaf(&self, slot: SlotId, belief: Belief) -> ProofNode {
        let slot_of = self.program.slots.get(slot);
        ProofNode {
            signal_type: slot_of.map(|s| s.key.family),
            signal_name: slot_of.map(|s| Arc::clone(&s.name)),
            absent: self.absence(slot),
            ..inner(NodeType::Leaf, belief, Vec::new())
        }
    }

    fn absence(&self, slot: SlotId) -> Option<Cow<'static, str>> {
        Some(match self.facts.state(slot) {
            State::Pending => "not asked".into(),
            State::Unsupported => "not supported".into(),
            State::Failed => match self.failure(slot) {
                Some(why) => why.to_owned().into(),
                None => "depends on a signal that could not run".into(),
            },
            State::Unmatched | State::Holds { .. } | State::Matched(_) => return None,
        })
    }

    fn failure(&self, slot: SlotId) -> Option<&str> {
        match self.evidence.get(&self.program.slots.get(slot)?.key)? {
            Observation::Absent(AbsentReason::Failed(reason)) => Some(reason),
            _ => None,
        }
    }
}

fn inner(node_type: NodeType, belief: Belief, children: Vec<ProofNode>) -> ProofNode {
    let truth = Truth::of(belief);
    let matched = truth == Truth::True;
    ProofNode {
        node_type,
        signal_type: None,
        signal_name: None,
        truth,
        matched,
        confidence: if matched { belief.low } else { 0.0 },
        absent: None,
        children,
    }
}
