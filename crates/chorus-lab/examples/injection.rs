//! Trains or measures the injection head: `injection train ENCODER DATA MODELS OUT [VECTORS]`,
//! `injection eval ENCODER DATA MODELS`.
//!
//! `ENCODER` is the catalog's name of an encoder that the model store in the folder `MODELS` holds; `DATA` holds `safety/`,
//! `intents/` and `tasks/`; `OUT` gets the head and its card; `VECTORS` is a file that keeps vectors between runs. It knows
//! the lab's public functions only. Invariant: it writes nothing but `OUT`, `VECTORS` and the converted encoder in `MODELS`.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "an example speaks to the terminal")]

use std::path::PathBuf;
use std::process::ExitCode;

use chorus_infer::encoder;
use chorus_infer::store::{Catalog, ModelStore};
use chorus_lab::{CachedEncoder, EvalInjection, InjectionReport, TrainInjection};

type Fault = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<InjectionReport, Fault> {
    let [work, name, data, models, rest @ ..] = arguments else {
        return Err(
            "usage: injection train ENCODER DATA MODELS OUT [VECTORS] | injection eval ENCODER DATA MODELS"
                .into(),
        );
    };
    let encoder = encoder::open(&ModelStore::open(PathBuf::from(models), Catalog::builtin()), name)?;
    let mut progress = |line: &str| eprintln!("{line}");
    match (work.as_str(), rest) {
        ("train", [out, rest @ ..]) => {
            let run = TrainInjection { data_dir: data.into(), out_dir: out.into() };
            Ok(match rest.first() {
                Some(vectors) => run.run(&CachedEncoder::open(&encoder, vectors.as_ref())?, &mut progress)?,
                None => run.run(&encoder, &mut progress)?,
            })
        }
        ("eval", []) => Ok(EvalInjection { data_dir: data.into() }.run(&encoder, &mut progress)?),
        _ => Err("expected `train` with OUT, or `eval` without".into()),
    }
}
