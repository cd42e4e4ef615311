//! Fits a calibration from the source tree: `calibrate ENCODER DATA MODELS OUT`; `chorus lab calibrate` does the same.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use chorus_infer::encoder;
use chorus_infer::store::{Catalog, ModelStore};
use chorus_lab::Calibrate;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, data, models, out] = arguments.as_slice() else {
        eprintln!("usage: calibrate ENCODER DATA MODELS OUT");
        return ExitCode::FAILURE;
    };
    let store = ModelStore::open(models.into(), Catalog::builtin());
    let work = Calibrate { encoder: name.clone(), data_dir: data.into(), out_dir: out.into() };
    let opened = encoder::open(&store, name).map_err(chorus_lab::LabFault::from);
    match opened.and_then(|encoder| work.run(&encoder, &mut |text| eprintln!("{text}"))) {
        Ok(report) => {
            println!("{}", report.card);
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
