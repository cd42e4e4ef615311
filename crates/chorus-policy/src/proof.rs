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
    pub decision: String,
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
    pub signal_name: Option<String>,
    /// Its truth.
    pub truth: Truth,
    /// Whether it holds.
    pub matched: bool,
    /// In 0..=1; 0 unless it holds.
    pub confidence: f64,
    /// Why a leaf is unknown, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
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
            decision: decision.name.clone(),
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
            Rule::All(parts) => self.connective(NodeType::And, parts, |b| Belief::all(b.iter().copied())),
            Rule::Any(parts) => self.connective(NodeType::Or, parts, |b| Belief::any(b.iter().copied())),
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
        join: impl Fn(&[Belief]) -> Belief,
    ) -> (ProofNode, Belief) {
        let (children, beliefs): (Vec<_>, Vec<_>) = parts.iter().map(|part| self.node(part)).unzip();
        let belief = join(&beliefs);
        (inner(node_type, belief, children), belief)
    }

    fn leaf(&self, slot: SlotId, belief: Belief) -> ProofNode {
        let key = self.program.slots.get(slot).map(|s| &s.key);
        ProofNode {
            signal_type: key.map(|k| k.family),
            signal_name: key.map(|k| k.name.clone()),
            absent: self.absence(slot),
            ..inner(NodeType::Leaf, belief, Vec::new())
        }
    }

    fn absence(&self, slot: SlotId) -> Option<String> {
        let why = match self.facts.state(slot) {
            State::Pending => "not asked",
            State::Unsupported => "not supported",
            State::Failed => self.failure(slot).unwrap_or("depends on a signal that could not run"),
            State::Unmatched | State::Holds { .. } | State::Matched(_) => return None,
        };
        Some(why.to_owned())
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
