//! `chorus ask "…"`: the engine without a server; the answer streams to the terminal.

use crate::cli::Ask;
use crate::printer::Printer;
use crate::terminal::{question, say};
use crate::trace;
use crate::{setup, stock, stores};
use anyhow::Context;
use chorus_engine::Inbound;
use chorus_store::RunId;
use chorus_wire::{ChatRequest, Message, Role};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Asks, streams, and shows the trace.
pub(crate) async fn run(flags: Ask) -> anyhow::Result<ExitCode> {
    let question = question(&flags.question)?;
    let spec = setup::spec(flags.config.as_deref(), &flags.source).await?;
    let records = stores::records(&spec.global.kept_where, flags.source.runs_file.clone()).await?;
    let engine =
        stock::engine_with(spec, flags.config.as_deref(), &flags.source, Some(Arc::clone(&records))).await?;
    let mut request = ChatRequest::new(&flags.model, vec![Message::new(Role::User, &question)]);
    request.set_stream(!flags.json, true);
    let run = engine.run(Inbound { progress: true, budget: flags.budget, ..Inbound::of(request) });
    let id = run.id.clone();
    let printed = tokio::select! {
        printed = Printer::streaming(flags.trace).print(run) => printed,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    engine.drain(Duration::from_secs(5)).await;
    let looper = printed?;
    if flags.trace {
        let record = records.get(&RunId::parse(&id).context("a run without an id")?).await?;
        say(&trace::picture(looper.as_ref(), record.as_ref()));
    }
    Ok(ExitCode::SUCCESS)
}
