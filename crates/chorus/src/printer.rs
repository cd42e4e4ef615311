//! A run as it comes: progress on standard error, the answer on standard output.

use crate::terminal::{is_watched, note, say, stream};
use anyhow::bail;
use chorus_engine::loopers::TRACE_FIELDS;
use chorus_engine::{AnswerHead, Fault, Part, Progress, RouteHead, Run};
use chorus_wire::{Chunk, RawObject};
use serde_json::Value;
use std::time::Duration;

/// Prints a run as it comes: progress on standard error, the answer on standard output.
pub(crate) struct Printer {
    progress: bool,
    trace: Option<LooperTrace>,
    wrote: bool,
}

impl Printer {
    /// A printer; `progress` shows the panel at work even where nobody watches.
    pub(crate) fn streaming(progress: bool) -> Self {
        Self { progress: progress || is_watched(), trace: None, wrote: false }
    }

    /// Prints it whole; returns the trace of the looper, if one worked.
    pub(crate) async fn print(mut self, mut run: Run) -> anyhow::Result<Option<LooperTrace>> {
        let mut told = false;
        while let Some(part) = run.next().await {
            if let Some(head) = run.route().filter(|_| !std::mem::replace(&mut told, true)) {
                self.tell(&routed(head));
            }
            match part {
                Part::Progress(progress) => self.tell(&working(&progress)),
                Part::Begin(_) | Part::Forward(_) => {}
                Part::Chunk(chunk) => self.chunk(&chunk),
                Part::Reply(_, reply) => {
                    say(&String::from_utf8_lossy(&reply.to_bytes()));
                    self.trace = looper_trace(reply.body());
                }
                Part::End(head) => {
                    self.end_line();
                    self.tell(&ended(&head));
                }
                Part::Fault(fault) => {
                    self.end_line();
                    bail!(failure(&fault));
                }
            }
        }
        Ok(self.trace)
    }

    fn chunk(&mut self, chunk: &Chunk) {
        if let Some(trace) = looper_trace(chunk.body()) {
            self.trace = Some(trace);
        }
        for text in
            chunk.choices.iter().filter_map(|choice| choice.content.as_deref()).filter(|t| !t.is_empty())
        {
            if !self.wrote && self.progress {
                note("");
            }
            self.wrote = true;
            stream(text);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.wrote) {
            say("");
        }
    }

    fn tell(&self, text: &str) {
        if self.progress {
            note(text);
        }
    }
}

/// A looper's trace, with the field of the body that it stood in.
pub(crate) type LooperTrace = (&'static str, Value);

fn looper_trace(body: &RawObject) -> Option<LooperTrace> {
    TRACE_FIELDS.iter().find_map(|field| Some((*field, body.read(field).ok().flatten()?)))
}

fn routed(head: &RouteHead) -> String {
    let decision = head.decision.as_deref().unwrap_or("none");
    format!("route    {} → {} ({}): {}", head.requested_model, decision, head.algorithm, head.reason)
}

fn working(progress: &Progress) -> String {
    let seconds = |millis: &u64| Duration::from_millis(*millis).as_secs_f32();
    match progress {
        Progress::RoundStarted { rounds: 1, seats, .. } => format!("panel    {}", seats.join(", ")),
        Progress::RoundStarted { round, rounds, seats } => {
            format!("round    {round} of {rounds}: {}", seats.join(", "))
        }
        Progress::MemberDone { model, failure: None, millis, .. } => {
            format!("  ✓ {model} answered after {:.1} s", seconds(millis))
        }
        Progress::MemberDone { model, failure: Some(why), millis, .. } => {
            format!("  ✗ {model} failed after {:.1} s: {why}", seconds(millis))
        }
        Progress::RoundFinished { usable, seats, .. } => format!("  {usable} of {seats} answers count"),
        Progress::JudgeStarted { model } => format!("judge    {model} compares the answers"),
        Progress::JudgeFinished { analysed: false, .. } => "  no analysis could be read".to_owned(),
        Progress::JudgeFinished { disagreements: 0, .. } => "  no contradiction found".to_owned(),
        Progress::JudgeFinished { disagreements, .. } => format!("  {disagreements} contradiction(s) found"),
        Progress::Tried { model, confidence, accepted } => tried(model, *confidence, *accepted),
        Progress::Planned { steps } => format!("plan     {steps} step(s)"),
        Progress::StepStarted { step, workers } => format!("step     {step}: {}", workers.join(", ")),
        Progress::SynthesisStarted { model } => format!("writer   {model}"),
    }
}

/// One model of a cascade: how sure it was, and whether that was enough.
fn tried(model: &str, confidence: Option<f64>, accepted: bool) -> String {
    let sure = confidence.map_or_else(|| "no evidence".to_owned(), |c| format!("confidence {c:.2}"));
    let (mark, then) = if accepted { ('✓', "accepted") } else { ('↑', "not enough") };
    format!("  {mark} {model}: {sure}, {then}")
}

fn ended(head: &AnswerHead) -> String {
    let seconds = Duration::from_millis(head.latency_ms).as_secs_f32();
    let tokens = head.usage.total_tokens;
    format!("\n{} call(s) to {}, {tokens} tokens, {seconds:.1} s", head.calls, head.models_used.join(", "))
}

fn failure(fault: &Fault) -> String {
    format!("{} ({})", fault.public, fault.code.as_str())
}
