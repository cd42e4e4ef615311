//! A recipe's policy: what must be asked, and who wins.
//!
//! Knows nothing of how signals are measured or what a decision does. Evaluation stops as soon as the winner is
//! certain; which decision wins never depends on how much was asked.
//!
//! **Invariant:** for the same request, [`Policy::decide`] and [`Policy::explain`] name the same winner and block on
//! the same decision.

use crate::facts::{Facts, State};
use crate::partition::Resolution;
use crate::program::{DecisionStep, Gate, Program, Source};
use crate::proof::Prover;
use crate::rank::{self, Standing};
use crate::reach::Reach;
use crate::score::Total;
use crate::{Ask, Blocked, Evidence, Progress, ProjectionTrace, Proof, Scope, Verdict, Won};
use crate::{belief::Belief, belief::Outcomes, compile, partition, score};
use chorus_spec::{Family, Recipe};
use std::sync::Arc;

/// One recipe's policy, compiled; a clone shares it.
#[derive(Debug, Clone)]
pub struct Policy {
    program: Arc<Program>,
    /// What every decision about all of them begins with.
    opening: Arc<[Ask]>,
}

impl Policy {
    /// Compiles a checked recipe. `cost` gives the tier of a family: signals of a smaller tier are asked first.
    #[must_use]
    pub fn compile(recipe: &Recipe, cost: &dyn Fn(Family) -> u8) -> Self {
        let program = compile::compile(recipe, cost);
        let opening = Look::new(&program, &Evidence::default()).next(&Scope::All).1.into();
        Self { program: Arc::new(program), opening }
    }

    /// Says who wins, or asks for the cheapest signals that the winner still depends on.
    ///
    /// Unasked signals are never missed: a decision that could still outrank the winner keeps asking. Confidence is
    /// asked for only where it ranks, so the winner's may be a lower bound ([`Won::confidence_complete`]).
    #[must_use]
    pub fn decide(&self, evidence: &Evidence, scope: &Scope) -> Progress {
        if evidence.is_empty() && matches!(scope, Scope::All) && !self.opening.is_empty() {
            return Progress::Need(self.opening.to_vec());
        }
        let look = Look::new(&self.program, evidence);
        let (standings, asks) = look.next(scope);
        if asks.is_empty() {
            Progress::Done(Box::new(look.verdict(&standings, scope)))
        } else {
            Progress::Need(asks)
        }
    }

    /// Asks for every signal of the recipe, cheapest tier first, then proves every decision, also those out of scope.
    #[must_use]
    pub fn explain(&self, evidence: &Evidence, scope: &Scope) -> Progress {
        let look = Look::new(&self.program, evidence);
        let open = (0..self.program.asks.len()).filter(|ask| !look.facts.is_answered(&self.program, *ask));
        let asks = look.cheapest(open.collect());
        if asks.is_empty() {
            Progress::Done(Box::new(look.verdict(&look.standings(scope), &Scope::All)))
        } else {
            Progress::Need(asks)
        }
    }
}

/// One look at the evidence: every stage up to the scores has run.
struct Look<'a> {
    program: &'a Program,
    evidence: &'a Evidence,
    facts: Facts,
    partitions: Vec<Option<Resolution>>,
    totals: Vec<Total>,
}

impl<'a> Look<'a> {
    fn new(program: &'a Program, evidence: &'a Evidence) -> Self {
        let mut facts = Facts::observe(program, evidence);
        let partitions = program.partitions.iter().map(|p| partition::resolve(p, &mut facts)).collect();
        program.gates.iter().for_each(|gate| compose(gate, program, &mut facts));
        let mut totals = Vec::with_capacity(program.scores.len());
        for step in &program.scores {
            totals.push(score::resolve(step, &totals, &mut facts));
        }
        Self { program, evidence, facts, partitions, totals }
    }

    /// How decisions stand, and the cheapest signals that the winner still depends on.
    fn next(&self, scope: &Scope) -> (Vec<Standing>, Vec<Ask>) {
        let standings = self.standings(scope);
        let asks = self.asks(&rank::contenders(&standings));
        (standings, asks)
    }

    fn standings(&self, scope: &Scope) -> Vec<Standing> {
        let standing = |(decision, step): (usize, &DecisionStep)| {
            let everything = Belief::certain(Outcomes::TRUE);
            let belief = step.rule.as_ref().map_or(everything, |rule| rule.belief(&self.facts));
            Standing { decision, belief, rank: step.rank }
        };
        let decisions = self.program.decisions.iter().enumerate();
        decisions.filter(|(decision, _)| scope.admits(*decision)).map(standing).collect()
    }

    /// What the ranking of `contenders` depends on.
    fn asks(&self, contenders: &[Standing]) -> Vec<Ask> {
        let mut reach = Reach::new(self.program, &self.facts, State::Pending);
        for contender in contenders {
            let Some(rule) = self.decision(*contender).and_then(|d| d.rule.as_ref()) else {
                continue;
            };
            if contender.is_tied(contenders) {
                reach.confidence(rule);
            } else {
                reach.truth(rule);
            }
        }
        self.cheapest(reach.found().filter_map(|slot| self.ask_for(slot)).collect())
    }

    fn decision(&self, standing: Standing) -> Option<&'a DecisionStep> {
        self.program.decisions.get(standing.decision)
    }

    fn ask_for(&self, slot: usize) -> Option<usize> {
        match self.program.slots.get(slot)?.source {
            Source::Rule(ask) | Source::Category(ask) => Some(ask),
            Source::Score(_) | Source::Nobody => None,
        }
    }

    /// Those of the smallest cost, sorted, each once.
    fn cheapest(&self, mut asks: Vec<usize>) -> Vec<Ask> {
        asks.sort_unstable();
        asks.dedup();
        let entries = || asks.iter().filter_map(|ask| self.program.asks.get(*ask));
        let least = entries().map(|entry| entry.cost).min();
        entries().filter(|entry| Some(entry.cost) == least).map(|entry| entry.ask.clone()).collect()
    }

    fn verdict(&self, standings: &[Standing], proven: &Scope) -> Verdict {
        Verdict {
            winner: rank::winner(standings).and_then(|it| self.won(it)),
            blocked: self.blocked(rank::contenders(standings)),
            proofs: self.proofs(proven),
            projections: self.projections(),
            matched: self.facts.matched(self.program, self.evidence),
        }
    }

    fn won(&self, winner: Standing) -> Option<Won> {
        let step = self.decision(winner)?;
        let mut open = Reach::new(self.program, &self.facts, State::Pending);
        step.rule.iter().for_each(|rule| open.confidence(rule));
        Some(Won {
            decision: winner.decision,
            name: Arc::clone(&step.name),
            confidence: winner.belief.low,
            confidence_complete: open.found().next().is_none(),
            tier: step.tier,
            priority: step.priority,
        })
    }

    /// The best contender that stays undecided for want of unsupported signals.
    fn blocked(&self, mut contenders: Vec<Standing>) -> Option<Blocked> {
        contenders.retain(|it| !it.belief.holds());
        contenders.sort_unstable_by_key(|it| (it.rank.group, it.rank.tie));
        contenders.into_iter().find_map(|it| {
            let step = self.decision(it)?;
            let mut missing = Reach::new(self.program, &self.facts, State::Unsupported);
            missing.truth(step.rule.as_ref()?);
            let missing: Vec<_> = missing
                .found()
                .filter_map(|slot| self.program.slots.get(slot))
                .map(|s| s.key.clone())
                .collect();
            (!missing.is_empty()).then(|| Blocked { decision: Arc::clone(&step.name), missing })
        })
    }

    fn proofs(&self, proven: &Scope) -> Vec<Proof> {
        let prover = Prover { program: self.program, facts: &self.facts, evidence: self.evidence };
        let decisions = self.program.decisions.iter().enumerate();
        decisions
            .filter(|(at, _)| proven.admits(*at))
            .map(|(_, decision)| prover.decision(decision))
            .collect()
    }

    fn projections(&self) -> ProjectionTrace {
        let mut trace = ProjectionTrace::default();
        let partitions = self.program.partitions.iter().zip(&self.partitions);
        let settled = partitions.filter_map(|(step, it)| Some((step, it.as_ref()?)));
        trace.partitions = settled.map(|(step, it)| partition::trace(step, it, self.program)).collect();
        let mut mappings = Vec::new();
        for (step, total) in self.program.scores.iter().zip(&self.totals) {
            let Some(total) = total.known() else { continue };
            trace.scores.push(score::trace(step, total, &self.totals, &self.facts, self.program));
            let read = |m| score::trace_mapping(step, m, total, &self.facts);
            mappings.extend(step.mappings.iter().map(|m| (m.index, read(m))));
        }
        mappings.sort_by_key(|(index, _)| *index);
        trace.mappings = mappings.into_iter().map(|(_, mapping)| mapping).collect();
        trace
    }
}

/// A label holds where it was measured and its composer holds.
///
/// A composer that fails settles the label without measuring it.
fn compose(gate: &Gate, program: &Program, facts: &mut Facts) {
    let belief = gate.rule.belief(facts);
    let waits = {
        let mut open = Reach::new(program, facts, State::Pending);
        open.truth(&gate.rule);
        open.found().next().is_some()
    };
    let composer = match belief.can {
        Outcomes::TRUE => return,
        Outcomes::FALSE => State::Unmatched,
        _ if waits => State::Pending,
        Outcomes::UNKNOWN => State::Failed,
        _ => State::Unsupported,
    };
    for label in &gate.labels {
        let state = match (facts.state(*label), composer) {
            (State::Unmatched, _) | (_, State::Unmatched) => State::Unmatched,
            (State::Pending, _) | (_, State::Pending) => State::Pending,
            (State::Failed, _) | (_, State::Failed) => State::Failed,
            _ => State::Unsupported,
        };
        facts.settle(*label, state);
    }
}
