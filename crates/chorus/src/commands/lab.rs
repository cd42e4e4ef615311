//! `chorus lab`: a head over the encoder, from labelled data; an encoder's calibration, from pairs of texts.

use crate::cli::{Head, Lab, Selector, Source};
use crate::setup;
use crate::terminal::{note, say};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::encoder_for;
use chorus_lab::{
    Calibrate, CalibrateFloor, EvalCache, EvalInjection, EvalNli, EvalPii, InjectionReport, LabFault, Replay,
    Report, SelectorKind, Task, TrainHead, TrainInjection, TrainNames, TrainSelector,
};
use chorus_spec::Permille;
use std::path::PathBuf;
use std::process::ExitCode;

/// Trains a head, or fits a calibration.
pub(crate) async fn run(command: Lab) -> anyhow::Result<ExitCode> {
    match command {
        Lab::TrainHead { task, data, out, encoder, longest, models_dir } => {
            let task = task_of(task);
            let work = TrainHead { task, data_dir: data, longest_bytes: longest, out_dir: out };
            train(work, &encoder, models_dir).await
        }
        Lab::Calibrate { encoder, data, out, models_dir } => {
            calibrate(Calibrate { encoder, data_dir: data, out_dir: out }, &offline_work(models_dir)).await
        }
        Lab::TrainSelector { kinds, data, out, encoder, models_dir } => {
            let kinds = kinds.into_iter().map(selector_of).collect();
            selectors(TrainSelector { kinds, data_dir: data, out_dir: out }, &encoder, models_dir).await
        }
        Lab::TrainInjection { data, out, encoder, models_dir } => {
            let work = TrainInjection { data_dir: data, out_dir: out };
            injection(&encoder, models_dir, move |encoder| work.run(encoder, &mut |text| note(text))).await
        }
        Lab::EvalInjection { data, encoder, models_dir } => {
            let work = EvalInjection { data_dir: data };
            injection(&encoder, models_dir, move |encoder| work.run(encoder, &mut |text| note(text))).await
        }
        Lab::CalibrateFloor { file, risk, confidence } => {
            say(&CalibrateFloor { file, risk, confidence }.run()?.to_string());
            Ok(ExitCode::SUCCESS)
        }
        Lab::Halu => {
            say(&chorus_lab::measure_halu().to_string());
            Ok(ExitCode::SUCCESS)
        }
        Lab::Nli { encoder, models_dir } => {
            let encoder = setup::encoder_named(&offline_work(models_dir), encoder_for(&encoder)).await?;
            let report = tokio::task::spawn_blocking(move || EvalNli.run(Some(&*encoder))).await??;
            say(report.to_string().trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Lab::TrainNames { data, out } => {
            let report = TrainNames { data_dir: data, out_dir: out }.run(&mut |text| note(text))?;
            say(&format!("learnt from {} texts", report.learnt));
            Ok(ExitCode::SUCCESS)
        }
        Lab::Replay { data, out } => {
            let report = Replay { data_dir: data, out_dir: out }.run(&mut |text| note(text))?;
            say(&report.to_string());
            Ok(ExitCode::SUCCESS)
        }
        Lab::CacheEval { encoder, threshold, data, wrong, models_dir } => {
            let work = EvalCache { threshold: threshold.map(Permille::of), data };
            cache(work, &encoder, wrong, models_dir).await
        }
        Lab::EvalPii { data } => {
            say(&EvalPii { data_dir: data }.run()?.to_string());
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn cache(
    work: EvalCache,
    name: &str,
    wrong: bool,
    models_dir: Option<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let encoder = setup::encoder_named(&offline_work(models_dir), encoder_for(name)).await?;
    let report = tokio::task::spawn_blocking(move || work.run(&*encoder, &mut |text| note(text))).await??;
    say(report.to_string().trim_end());
    if wrong {
        for (relation, kept, asked, differs, similarity) in &report.wrong {
            say(&format!("{}\t{similarity:.3}\t{differs:?}\t{kept}\t{asked}", relation.as_str()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn injection(
    name: &str,
    models_dir: Option<PathBuf>,
    work: impl FnOnce(&dyn TextEncoder) -> Result<InjectionReport, LabFault> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let encoder = setup::encoder_named(&offline_work(models_dir), encoder_for(name)).await?;
    let report = tokio::task::spawn_blocking(move || work(&*encoder)).await??;
    say(&report.to_string());
    Ok(ExitCode::SUCCESS)
}

async fn selectors(work: TrainSelector, name: &str, models_dir: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let encoder = setup::encoder_named(&offline_work(models_dir), encoder_for(name)).await?;
    let reports = tokio::task::spawn_blocking(move || work.run(&*encoder, &mut |text| note(text))).await??;
    reports.iter().for_each(|report| say(&report.to_string()));
    Ok(ExitCode::SUCCESS)
}

fn selector_of(kind: Selector) -> SelectorKind {
    match kind {
        Selector::Knn => SelectorKind::Knn,
        Selector::Kmeans => SelectorKind::Kmeans,
        Selector::Svm => SelectorKind::Svm,
        Selector::Mlp => SelectorKind::Mlp,
        Selector::Elo => SelectorKind::Elo,
    }
}

fn offline_work(models_dir: Option<PathBuf>) -> Source {
    Source { small: false, offline: false, base: None, models_dir, runs_file: None, knowledge: None }
}

async fn calibrate(work: Calibrate, source: &Source) -> anyhow::Result<ExitCode> {
    let encoder = setup::encoder_named(source, encoder_for(&work.encoder)).await?;
    let report = tokio::task::spawn_blocking(move || work.run(&*encoder, &mut |text| note(text))).await??;
    say(&report.card);
    Ok(ExitCode::SUCCESS)
}

async fn train(work: TrainHead, name: &str, models_dir: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let encoder = setup::encoder_named(&offline_work(models_dir), encoder_for(name)).await?;
    let report = tokio::task::spawn_blocking(move || work.run(&*encoder, &mut |text| note(text))).await??;
    say(&summary(&report));
    Ok(ExitCode::SUCCESS)
}

fn task_of(head: Head) -> Task {
    match head {
        Head::Domain => Task::Domain,
        Head::Complexity => Task::Complexity,
        Head::FactCheck => Task::FactCheck,
        Head::UserFeedback => Task::UserFeedback,
        Head::Modality => Task::Modality,
    }
}

fn summary(report: &Report) -> String {
    let mut lines = vec![format!("trained on {} examples, L2 penalty {}", report.trained_on, report.penalty)];
    lines.extend(report.sets.iter().map(|set| {
        let auroc = set.auroc.map(|area| format!(", AUROC {area:.3}")).unwrap_or_default();
        format!("  {}: top-1 {:.3} of {}{auroc}", set.name, set.metrics.top1, set.metrics.count)
    }));
    lines.join("\n")
}
