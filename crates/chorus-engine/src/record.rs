//! The run record of a request, drafted as its life goes on and finished whatever way it ends.

use crate::account::{Ended, account};
use crate::artifact::Artifact;
use crate::budget::Budget;
use crate::constrain::Removed;
use crate::fault::Code;
use crate::ledger::{Attempt, AttemptEnd, models_of, total_of};
use crate::mom::Mom;
use crate::plugins::notes::Notes;
use crate::route::{Choice, Routed};
use crate::selection::Trace;
use chorus_collab::{CallRole, FaultKind};
use chorus_policy::{AbsentReason, NodeType, Observation, ProofNode, Truth};
use chorus_spec::{Digest, Spec};
use chorus_store::{
    CallRecord, CallStatus, CheckRecord, ProjectionRecord, Proof, RunId, RunRecord, RunStatus, SignalRecord,
    SignalState,
};
use chorus_wire::ChatRequest;
use smol_str::SmolStr;
use std::sync::Arc;
use std::time::Duration;

/// Room for a rule in one line.
const BECAUSE_BYTES: usize = 96;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With an answer.
    Answered,
    /// With an error.
    Failed(Code),
    /// The client left.
    Cancelled,
}

/// A run record in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    /// In a box, because it is handed on whole, from the life to whoever keeps it.
    record: Box<RunRecord>,
    routed: Option<Arc<Routed>>,
    budget: Option<(Arc<Budget>, Ended)>,
    /// What plugins did.
    pub(crate) notes: Notes,
}

impl Draft {
    /// The record of a request that has just come in.
    #[must_use]
    pub(crate) fn new(id: &str, spec: &Spec, request: &ChatRequest, since_1970: Duration) -> Self {
        Self {
            routed: None,
            budget: None,
            notes: Notes::default(),
            record: Box::new(RunRecord {
                started_at_ms: millis(since_1970),
                requested_model: request.model().into(),
                spec_digest: spec.digest.word(),
                streaming: request.stream(),
                ..RunRecord::of(RunId::parse(id).unwrap_or_default())
            }),
        }
    }

    /// What was decided, and on what evidence.
    pub(crate) fn routed(&mut self, routed: Arc<Routed>) {
        self.record.degraded.extend(routed.warnings.iter().cloned());
        self.routed = Some(routed);
    }

    /// The rows of it: written at the end, because no model needs to wait for them.
    fn write_route(&mut self, mom: &Mom, routed: &Routed) {
        let record = &mut self.record;
        record.recipe = routed.recipe_name(mom);
        record.decision = routed.won(mom);
        record.algorithm = Some(routed.algorithm(mom).into());
        record.path = Some(SmolStr::new_static(word(&routed.choice)));
        let Some(decided) = &routed.decided else { return };
        mom.meters.signals(&decided.timings);
        for timing in &decided.timings {
            match record.signals_us.get_mut(timing.family.as_str()) {
                Some(all) => *all += timing.micros,
                None => {
                    record.signals_us.insert(timing.family.as_str().into(), timing.micros);
                }
            }
        }
        record.signals =
            decided.evidence.iter().map(|(key, seen)| signal(SmolStr::new(key.shown()), seen)).collect();
        let trace = &decided.verdict.projections;
        let partitions = trace.partitions.iter().map(|p| (p.group_name.clone(), None, p.winner.clone()));
        let scores = trace.scores.iter().map(|s| (s.name.clone(), Some(s.total), None));
        let mappings = trace
            .mappings
            .iter()
            .map(|m| (m.mapping_name.clone(), Some(m.score_value), m.selected_output.clone()));
        let all = partitions.chain(scores).chain(mappings);
        record.projections =
            all.map(|(name, score, chosen)| ProjectionRecord { name, score, chosen }).collect();
        record.proof = decided.verdict.proofs.iter().map(proof).collect();
    }

    /// Who may not be called.
    pub(crate) fn removed(&mut self, removed: &[Removed]) {
        let removed = removed.iter().map(|removed| CheckRecord {
            name: removed.constraint.into(),
            held: false,
            detail: Some(format!("{} removed: {}", removed.model, removed.reason)),
        });
        self.record.checks.extend(removed);
    }

    /// How the candidate was chosen, where there was something to choose.
    pub(crate) fn selected(&mut self, trace: Option<&Trace>) {
        let told = trace.filter(|it| it.scores.len() > 1 || it.session.is_some());
        let value = told.and_then(|it| serde_json::to_value(it).ok());
        self.record.traces.extend(value.map(|it| ("selection".to_owned(), it)));
    }

    /// What a looper did, by its name; answers' texts stay out of the record.
    pub(crate) fn looped(&mut self, looper: &str, trace: Option<serde_json::Value>, degraded: Vec<String>) {
        self.record.traces.extend(trace.map(|trace| (looper.to_owned(), trace)));
        self.record.degraded.extend(degraded);
    }

    /// What may be spent, and whether it was; the account is made at the end, when all is settled.
    pub(crate) fn budget(&mut self, budget: Arc<Budget>, ended: Ended) {
        self.budget = Some((budget, ended));
    }

    /// What the door's translation left behind.
    pub(crate) fn lost(&mut self, lost: &[String]) {
        self.record.degraded.extend(lost.iter().map(|word| format!("protocol: {word}")));
    }

    /// Whether anything was given up on the way; what a door's translation left behind is the client's own affair.
    pub(crate) fn is_degraded(&self) -> bool {
        let mut words = self.record.degraded.iter().chain(self.notes.warnings());
        words.any(|word| !word.starts_with("protocol: "))
    }

    /// What was given up on the way.
    pub(crate) fn degraded(&mut self, why: Option<String>) {
        self.record.degraded.extend(why);
    }

    fn write_notes(&mut self) {
        let (trace, warnings, content) = std::mem::take(&mut self.notes).into_record();
        self.record.traces.extend(trace.map(|trace| ("plugins".to_owned(), trace)));
        self.record.degraded.extend(warnings);
        self.record.content = content.or(self.record.content.take());
    }

    /// The whole record, with all attempts at calls.
    #[must_use]
    pub(crate) fn finish(
        mut self,
        ending: Ending,
        mom: &Mom,
        attempts: Vec<Attempt>,
        elapsed: Duration,
    ) -> Box<RunRecord> {
        if let Some(routed) = self.routed.take() {
            self.write_route(mom, &routed);
        }
        if let Some((budget, ended)) = self.budget.take() {
            self.record.traces.insert("budget".to_owned(), account(&budget, &attempts, ended));
        }
        self.write_notes();
        let record = &mut self.record;
        name_artifact(record, &mom.artifact);
        record.duration_ms = millis(elapsed);
        let (usage, cost) = total_of(attempts.iter());
        record.usage = usage;
        record.cost_micro_usd = cost.0;
        record.models = models_of(attempts.iter());
        record.calls = attempts.into_iter().map(call).collect();
        (record.status, record.error_code) = match ending {
            Ending::Answered => (RunStatus::Ok, None),
            Ending::Failed(code) => (RunStatus::Failed, Some(code.as_str().into())),
            Ending::Cancelled => (RunStatus::Cancelled, None),
        };
        mom.meters.run(&self.record);
        self.record
    }
}

fn name_artifact(record: &mut RunRecord, artifact: &Artifact) {
    let text = |digest: &Option<Digest>| digest.as_ref().map(Digest::word);
    record.bundle = text(&artifact.bundle);
    record.binding = text(&artifact.binding);
    record.lock = text(&artifact.lock);
    record.operating_point = artifact.point(&record.requested_model).map(|it| it.name.as_str().into());
}

fn word(choice: &Choice) -> &'static str {
    match choice {
        Choice::Decision(_) => "decision",
        Choice::RequestPanel => "request_panel",
        Choice::Default(_) => "default",
        Choice::Direct(_) => "direct",
        Choice::Nobody(_) => "nobody",
    }
}

fn signal(key: SmolStr, seen: &Observation) -> SignalRecord {
    let (state, reason, confidence, raw) = match seen {
        Observation::Matched { confidence, raw } => (SignalState::Matched, None, Some(*confidence), *raw),
        Observation::Unmatched { raw } => (SignalState::Unmatched, None, None, *raw),
        Observation::Absent(AbsentReason::Unsupported) => {
            (SignalState::Absent, Some(SmolStr::new_static("not supported yet")), None, None)
        }
        Observation::Absent(AbsentReason::Failed(why)) => (SignalState::Absent, Some(why.into()), None, None),
    };
    SignalRecord { key, state, reason, confidence, raw }
}

fn proof(proof: &chorus_policy::Proof) -> Proof {
    let verdict = match proof.truth {
        Truth::True => "true",
        Truth::False => "false",
        Truth::Unknown => "unknown",
    };
    let mut because = String::with_capacity(BECAUSE_BYTES);
    tell(&proof.tree, &mut because);
    Proof { decision: (*proof.decision).into(), verdict: SmolStr::new_static(verdict), because }
}

/// The rule in one line, each fact marked `+` (holds), `-` (does not) or `?` (unknown).
fn tell(node: &ProofNode, line: &mut String) {
    let mark = match node.truth {
        Truth::True => '+',
        Truth::False => '-',
        Truth::Unknown => '?',
    };
    match (node.node_type, &node.signal_type, &node.signal_name) {
        (NodeType::Leaf, Some(family), Some(name)) => {
            line.push(mark);
            line.push_str(family.as_str());
            line.push(':');
            line.push_str(name);
        }
        (NodeType::And, ..) => tell_all(&node.children, " and ", line),
        (NodeType::Or, ..) => tell_all(&node.children, " or ", line),
        (NodeType::Not, ..) => {
            line.push_str("not ");
            node.children.iter().for_each(|child| tell(child, line));
        }
        _ => line.push_str("no rules: every request"),
    }
}

fn tell_all(nodes: &[ProofNode], word: &str, line: &mut String) {
    line.push('(');
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            line.push_str(word);
        }
        tell(node, line);
    }
    line.push(')');
}

fn call(attempt: Attempt) -> CallRecord {
    let (status, error) = match &attempt.end {
        AttemptEnd::Answered => (CallStatus::Ok, None),
        AttemptEnd::Open | AttemptEnd::Failed(FaultKind::Cancelled, _) => (CallStatus::Cancelled, None),
        AttemptEnd::Failed(kind, _) => (CallStatus::Failed, Some(SmolStr::new_static(fault_word(*kind)))),
    };
    CallRecord {
        role: SmolStr::new_static(role_word(attempt.role)),
        model: attempt.model,
        backend: Some(attempt.backend),
        cause: attempt.cause,
        status,
        usage: attempt.usage,
        cost_micro_usd: attempt.cost.0,
        began_ms: millis(attempt.began),
        latency_ms: millis(attempt.latency),
        first_token_ms: attempt.first_output.map(millis),
        error,
    }
}

fn role_word(role: CallRole) -> &'static str {
    match role {
        CallRole::Direct => "direct",
        CallRole::Attempt => "attempt",
        CallRole::Verifier => "verifier",
        CallRole::Rater => "rater",
        CallRole::Planner => "planner",
        CallRole::Worker => "worker",
        CallRole::Panel => "panel",
        CallRole::Judge => "judge",
        CallRole::Synthesis => "synthesis",
        CallRole::Repair => "repair",
        CallRole::Signal => "signal",
        CallRole::Vectors => "vectors",
    }
}

fn fault_word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Timeout => "timeout",
        FaultKind::Transport => "transport",
        FaultKind::Status => "status",
        FaultKind::Empty => "empty",
        FaultKind::Cancelled => "cancelled",
        FaultKind::Budget => "budget",
        FaultKind::Ineligible => "ineligible",
        FaultKind::Misconfigured => "misconfigured",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
