//! Every file of `examples` loads without an error, and the recipes' own cases reach their routes.
//!
//! It knows the binary and nothing inside it. No model, network or server is used: a recipe whose signals need an encoder
//! is checked here, and asked by `acceptance/run.sh`.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Recipes whose signals are heuristics only.
const WITHOUT_ENCODER: [&str; 3] = ["code.dsl", "exam.dsl", "research.dsl"];

fn chorus(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command.args(words).env_remove("CHORUS_RUNS").env_remove("CHORUS_MODELS").output().unwrap()
}

fn good(words: &[&str]) {
    let out = chorus(words);
    let said = [out.stdout.as_slice(), out.stderr.as_slice()].map(String::from_utf8_lossy).concat();
    assert!(out.status.success(), "{words:?}\n{said}");
}

/// The files of a folder below `examples` that end so, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == ending)).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

#[test]
fn every_configuration_loads() {
    for path in files("", "yaml") {
        // Other programs' configurations stand here too.
        if std::fs::read_to_string(&path).unwrap().contains("\nversion: v0.3") {
            good(&["check", &path.display().to_string()]);
        }
    }
}

#[test]
fn every_recipe_is_formatted_and_loads_and_reaches_its_routes() {
    for path in files("recipes", "dsl") {
        let base = path.with_file_name("team.base.yaml").display().to_string();
        let policy = path.display().to_string();
        good(&["policy", "fmt", "--check", &policy]);
        good(&["policy", "check", "--strict", &policy, "--base", &base]);
        if WITHOUT_ENCODER.iter().any(|name| path.ends_with(name)) {
            good(&["policy", "test", "--offline", &policy, "--base", &base]);
        }
    }
}
