//! The command line as a person or a script meets it: what it prints, and with which exit status.
//!
//! It knows the binary and nothing inside it. No model, network or server is used.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn chorus(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command.args(words).env_remove("CHORUS_RUNS").env_remove("CHORUS_MODELS").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn file(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

const TYPO: &str = "version: v0.3
providers:
  models:
    - name: a
      backend_refs: [{ endpoint: \"127.0.0.1:1\", wieght: 2 }]
routing:
  decisions:
    - name: d
      rules: { type: keyword, name: nowhere }
      modelRefs: [{ model: a }]
";

#[test]
fn h01_check_names_every_problem_with_its_line_and_the_nearest_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "typo.yaml", TYPO);
    let out = chorus(&["check", &path]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{path}:5:")) && said.contains("`weight`"), "{said}");
    assert!(said.contains(&format!("{path}:9:")) && said.contains("nowhere"), "{said}");
    assert!(said.contains("does not load: 2 errors"), "{said}");
}

#[test]
fn check_speaks_json_to_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "typo.yaml", TYPO);
    let out = chorus(&["check", "--json", &path]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((report["ok"].as_bool(), report["errors"].as_u64()), (Some(false), Some(2)));
    assert_eq!(report["diagnostics"][0]["place"]["line"], 5);
}

#[test]
fn what_ships_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in
        ["defaults/solo.yaml", "defaults/duo.yaml", "defaults/trio.yaml", "../../examples/deep-research.yaml"]
    {
        let out = chorus(&["check", &root.join(path).display().to_string()]);
        assert!(out.status.success(), "{path}: {}", text(&out.stdout));
    }
}

#[test]
fn h09_a_server_refuses_what_check_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "typo.yaml", TYPO);
    let runs = folder.path().join("runs.sqlite").display().to_string();
    let out = chorus(&["serve", &path, "--port", "0", "--management-port", "0", "--runs-file", &runs]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("does not load: 2 error(s)"), "{}", text(&out.stderr));
}

#[test]
fn explain_calls_no_model_and_shows_the_proof() {
    let folder = tempfile::tempdir().unwrap();
    let policy = TYPO.replace(", wieght: 2", "").replace(
        "  decisions:",
        "  signals: { keywords: [{ name: nowhere, keywords: [tide] }] }\n  decisions:",
    );
    let path = file(folder.path(), "policy.yaml", &policy);
    let out = chorus(&["explain", &path, "When is high tide?", "--json"]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((report["decision"].as_str(), report["selected_model"].as_str()), (Some("d"), Some("a")));
    let shown = text(&chorus(&["explain", &path, "When is high tide?"]).stdout);
    assert!(shown.contains("✓ keyword:nowhere"), "{shown}");
}

#[test]
fn what_is_not_there_is_said_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.sqlite").display().to_string();
    let rows: [(&[&str], &str); 4] = [
        (&["runs", "list", "--runs-file", &missing], "there are no run records"),
        (&["runs", "show", "run_1", "--runs-file", &missing], "there are no run records"),
        (&["check", "/nowhere/policy.yaml"], "cannot read /nowhere/policy.yaml"),
        (&["models", "rm", "gpt-17"], "no model is named `gpt-17`"),
    ];
    for (words, want) in rows {
        let out = chorus(words);
        assert_eq!(out.status.code(), Some(1), "{words:?}");
        assert!(text(&out.stderr).contains(want), "{words:?}: {}", text(&out.stderr));
    }
}

#[test]
fn the_known_models_are_listed_for_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let out = chorus(&["models", "list", "--json", "--models-dir", &folder.path().display().to_string()]);
    let models: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert!(models.iter().any(|m| m["id"] == "smollm2-135m-instruct" && m["present"] == false), "{models:?}");
}
