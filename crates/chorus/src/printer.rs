//! A run as it comes: progress on standard error, the answer on standard output.

use crate::terminal::{is_watched, note, say, stream};
use anyhow::bail;
use chorus_engine::{AnswerHead, Fault, Part, Progress, RouteHead, Run};
use chorus_wire::Chunk;
use serde_json::Value;
use std::time::Duration;

/// Prints a run as it comes: progress on standard error, the answer on standard output.
pub(crate) struct Printer {
    progress: bool,
    trace: Option<Value>,
    wrote: bool,
}

impl Printer {
    /// A printer; `progress` shows the panel at work even where nobody watches.
    pub(crate) fn streaming(progress: bool) -> Self {
        Self { progress: progress || is_watched(), trace: None, wrote: false }
    }

    /// Prints it whole; returns the trace of the looper, if one worked.
    pub(crate) async fn print(mut self, mut run: Run) -> anyhow::Result<Option<Value>> {
        let mut told = false;
        while let Some(part) = run.next().await {
            if let Some(head) = run.route().filter(|_| !std::mem::replace(&mut told, true)) {
                self.tell(&routed(head));
            }
            match part {
                Part::Progress(progress) => self.tell(&working(&progress)),
                Part::Begin(_) => {}
                Part::Chunk(chunk) => self.chunk(&chunk),
                Part::Reply(_, reply) => {
                    say(&String::from_utf8_lossy(&reply.to_bytes()));
                    self.trace = reply.body().read("fusion").ok().flatten();
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
        if let Ok(Some(trace)) = chunk.body().read("fusion") {
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

fn routed(head: &RouteHead) -> String {
    let decision = head.decision.as_deref().unwrap_or("none");
    format!("route    {} → {} ({}): {}", head.requested_model, decision, head.algorithm, head.reason)
}

fn working(progress: &Progress) -> String {
    let seconds = |millis: &u64| Duration::from_millis(*millis).as_secs_f32();
    match progress {
        Progress::PanelStarted(seats) => format!("panel    {}", seats.join(", ")),
        Progress::MemberDone { model, failure: None, millis, .. } => {
            format!("  ✓ {model} answered after {:.1} s", seconds(millis))
        }
        Progress::MemberDone { model, failure: Some(why), millis, .. } => {
            format!("  ✗ {model} failed after {:.1} s: {why}", seconds(millis))
        }
        Progress::JudgeStarted(model) => format!("judge    {model} compares the answers"),
        Progress::SynthesisStarted(model) => format!("writer   {model}"),
    }
}

fn ended(head: &AnswerHead) -> String {
    let seconds = Duration::from_millis(head.latency_ms).as_secs_f32();
    let tokens = head.usage.total_tokens;
    format!("\n{} call(s) to {}, {tokens} tokens, {seconds:.1} s", head.calls, head.models_used.join(", "))
}

fn failure(fault: &Fault) -> String {
    format!("{} ({})", fault.public, fault.code.as_str())
}
