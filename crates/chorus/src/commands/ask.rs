//! `chorus ask "…"`: the engine without a server; the answer streams to the terminal.

use crate::cli::Ask;
use crate::setup;
use crate::terminal::{is_watched, note, say, stream};
use anyhow::{Context, bail};
use chorus_engine::{AnswerHead, Fault, Inbound, Part, Progress, RouteHead, Run};
use chorus_store::RunStore;
use chorus_wire::{ChatRequest, Chunk, Message, Role};
use serde_json::Value;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Asks, streams, and shows the trace.
pub(crate) async fn run(flags: Ask) -> anyhow::Result<ExitCode> {
    let question = question(&flags.question)?;
    let spec = setup::spec(flags.config.as_deref(), &flags.source).await?;
    let records = Arc::new(setup::records(flags.source.runs_file.clone())?);
    let engine =
        setup::engine_with(spec, &flags.source, Some(Arc::clone(&records) as Arc<dyn RunStore>)).await?;
    let mut request = ChatRequest::new(&flags.model, vec![Message::new(Role::User, &question)]);
    request.set_stream(!flags.json, true);
    let run = engine.run(Inbound { request, progress: true });
    let id = run.id.clone();
    let printed = tokio::select! {
        printed = Printer::streaming(flags.trace).print(run) => printed,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    engine.drain(Duration::from_secs(5)).await;
    let trace = printed?;
    if flags.trace {
        let record = records.get(&chorus_store::RunId::parse(&id).context("a run without an id")?).await?;
        say(&crate::trace::picture(trace.as_ref(), record.as_ref()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The question itself, or standard input for `-`.
pub(crate) fn question(given: &str) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the question from standard input")?;
    Ok(text.trim_end().to_owned())
}

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
        while let Some(part) = run.next().await {
            match part {
                Part::Routed(head) => self.tell(&routed(&head)),
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
