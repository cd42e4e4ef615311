//! `chorus lab train-head`: a head over the encoder, from labelled data.

use crate::cli::{Head, Lab, Source};
use crate::setup;
use crate::terminal::{note, say};
use chorus_lab::{Report, Task, TrainHead};
use std::process::ExitCode;

/// Trains.
pub(crate) async fn run(command: Lab) -> anyhow::Result<ExitCode> {
    let Lab::TrainHead { task, data, out, models_dir } = command;
    let source = Source { small: false, offline: false, models_dir, runs_file: None };
    let encoder = setup::encoder(&source).await?;
    let task = match task {
        Head::Domain => Task::Domain,
        Head::Complexity => Task::Complexity,
    };
    let work = TrainHead { task, data_dir: data, out_dir: out };
    let report = tokio::task::spawn_blocking(move || work.run(&*encoder, &mut |text| note(text))).await??;
    say(&summary(&report));
    Ok(ExitCode::SUCCESS)
}

fn summary(report: &Report) -> String {
    let mut lines = vec![format!("trained on {} examples, L2 penalty {}", report.trained_on, report.penalty)];
    lines.extend(report.sets.iter().map(|set| {
        let auroc = set.auroc.map(|area| format!(", AUROC {area:.3}")).unwrap_or_default();
        format!("  {}: top-1 {:.3} of {}{auroc}", set.name, set.metrics.top1, set.metrics.count)
    }));
    lines.join("\n")
}
