//! Trains a head: `train_head TASK ENCODER DATA MODELS OUT [VECTORS [LONGEST]]`.
//!
//! `TASK` is domain, complexity, fact_check, user_feedback or modality; `ENCODER` is the catalog's name of an encoder that
//! the model store in the folder `MODELS` holds; `DATA` holds `outcomes/`, `intents/` and `tasks/`; `OUT` gets the head and
//! its card; `VECTORS` is a file that keeps vectors between runs; `LONGEST` is the
//! length in bytes of the longest text that is learnt. It knows the lab's public functions only. Invariant: it
//! writes nothing but `OUT`, `VECTORS` and the converted encoder in `MODELS`.

#![expect(clippy::print_stderr, reason = "an example speaks to the terminal")]

use std::path::PathBuf;
use std::process::ExitCode;

use chorus_infer::encoder;
use chorus_infer::store::{Catalog, ModelStore};
use chorus_lab::{CachedEncoder, Report, Task, TrainHead};

type Fault = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(report) => {
            for set in &report.sets {
                let auroc = set.auroc.map_or_else(String::new, |auroc| format!(", AUROC {auroc:.4}"));
                let metrics = &set.metrics;
                eprintln!(
                    "{}: {} examples, top-1 {:.4}, macro-F1 {:.4}, calibration error {:.4}{auroc}",
                    set.name, metrics.count, metrics.top1, metrics.macro_f1, metrics.calibration_error
                );
            }
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Report, Fault> {
    let [task, name, data, models, out, rest @ ..] = arguments else {
        return Err("usage: train_head TASK ENCODER DATA MODELS OUT [VECTORS [LONGEST]]".into());
    };
    let task = Task::ALL
        .into_iter()
        .find(|known| known.name() == task)
        .ok_or_else(|| format!("no task {task}: {}", Task::ALL.map(Task::name).join(", ")))?;
    let encoder = encoder::open(&ModelStore::open(PathBuf::from(models), Catalog::builtin()), name)?;
    let longest_bytes = rest.get(1).map(|bytes| bytes.parse()).transpose()?;
    let run = TrainHead { task, data_dir: data.into(), longest_bytes, out_dir: out.into() };
    let mut progress = |line: &str| eprintln!("{line}");
    let report = match rest.first() {
        Some(vectors) => run.run(&CachedEncoder::open(&encoder, vectors.as_ref())?, &mut progress)?,
        None => run.run(&encoder, &mut progress)?,
    };
    Ok(report)
}
