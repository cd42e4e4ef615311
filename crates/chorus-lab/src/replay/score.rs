//! Runs a poll over recorded questions and counts: right answers, calls, costs.

use super::bootstrap::{Interval, interval};
use super::prices::Prices;
use super::record::Row;
use super::recorded::Recorded;
use crate::fault::LabFault;
use chorus_collab::Answer;
use chorus_collab::extract::final_answer;
use chorus_collab::poll::{PollPolicy, PollTrace, poll};
use chorus_wire::{ChatRequest, Message, Role};
use futures_util::FutureExt as _;
use std::path::Path;

/// One way to answer, over a set of questions.
#[derive(Debug, Clone)]
pub struct StrategyRow {
    /// What it is.
    pub name: String,
    /// Share of right answers.
    pub accuracy: f64,
    /// Accuracy minus that of the best fixed model.
    pub gain: f64,
    /// Where the gain of other questions of this kind would lie.
    pub gain_interval: Interval,
    /// Cost as a share of the best fixed model's, every answer taken as equally long.
    pub cost: f64,
    /// Where the cost of other questions of this kind would lie.
    pub cost_interval: Interval,
    /// The same by the recorded lengths of the answers.
    pub cost_by_length: f64,
    /// Model calls a question.
    pub calls: f64,
}

/// What became of one question.
#[derive(Debug, Clone)]
pub(super) struct Scored {
    pub(super) right: bool,
    calls: usize,
    /// US dollars for a million answers of one token each.
    pub(super) price: f64,
    /// The same, times the answers' characters.
    price_by_length: f64,
    /// The account of the run.
    pub(super) trace: PollTrace,
}

/// The policy over those questions. The topic is the question's category, as a domain signal would tell it.
///
/// # Errors
/// When the policy makes no plan.
pub(super) fn run(policy: &PollPolicy, rows: &[&Row], prices: &Prices) -> Result<Vec<Scored>, LabFault> {
    rows.iter().map(|row| question(policy, row, prices)).collect()
}

fn question(policy: &PollPolicy, row: &Row, prices: &Prices) -> Result<Scored, LabFault> {
    let plan = policy
        .plan(Some(&row.category))
        .map_err(|fault| LabFault::content(Path::new("the learned policy"), 1, &fault))?;
    let ask = ChatRequest::new("recorded", vec![Message::new(Role::User, "?")]);
    let calls = Recorded::new(row);
    let mut trace = PollTrace::default();
    // Recorded answers are there at once: the run never waits.
    let answer = poll(&plan, &ask, &calls, &mut trace, &()).now_or_never().and_then(Result::ok);
    let letter = match answer {
        Some(Answer::Finished(reply)) => final_answer(&reply.reply.content),
        Some(Answer::Live(_)) | None => None,
    };
    let asked = calls.asked();
    Ok(Scored {
        right: row.is_right(letter.as_deref()),
        calls: asked.len(),
        price: asked.iter().map(|model| prices.of(model)).sum(),
        price_by_length: asked.iter().map(|model| prices.of(model) * row.chars(model) as f64).sum(),
        trace,
    })
}

/// The row of a strategy beside the best fixed model, question by question.
pub(super) fn row(name: &str, scored: &[Scored], fixed: &[Scored]) -> StrategyRow {
    let count = scored.len().max(1) as f64;
    let mean = |value: &dyn Fn(&Scored) -> f64, of: &[Scored]| of.iter().map(value).sum::<f64>() / count;
    let right = |scored: &Scored| f64::from(scored.right);
    let gain = mean(&right, scored) - mean(&right, fixed);
    let share = |value: &dyn Fn(&Scored) -> f64| mean(value, scored) / mean(value, fixed);
    let differences: Vec<f64> =
        scored.iter().zip(fixed).map(|(one, other)| right(one) - right(other)).collect();
    let shares: Vec<(f64, f64)> =
        scored.iter().zip(fixed).map(|(one, other)| (one.price, other.price)).collect();
    let gain_of = |drawn: &[usize]| drawn.iter().filter_map(|at| differences.get(*at)).sum::<f64>() / count;
    let cost_of = |drawn: &[usize]| {
        let pairs = || drawn.iter().filter_map(|at| shares.get(*at));
        pairs().map(|(one, _)| one).sum::<f64>() / pairs().map(|(_, other)| other).sum::<f64>()
    };
    StrategyRow {
        name: name.to_owned(),
        accuracy: mean(&right, scored),
        gain,
        gain_interval: interval(scored.len(), gain_of),
        cost: share(&|scored| scored.price),
        cost_interval: interval(scored.len(), cost_of),
        cost_by_length: share(&|scored| scored.price_by_length),
        calls: mean(&|scored| scored.calls as f64, scored),
    }
}

/// The share of questions that some model answers rightly.
pub(super) fn oracle(rows: &[&Row]) -> f64 {
    let solved = rows.iter().filter(|row| row.pred.values().any(|letter| row.is_right(letter.as_deref())));
    solved.count() as f64 / rows.len().max(1) as f64
}
