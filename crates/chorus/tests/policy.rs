//! `chorus policy …` on the manual's own example: what the manual shows is what the commands do.
//!
//! It knows the binary and nothing inside it. No model, network or server is used.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn chorus(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command.args(words).env_remove("CHORUS_RUNS").env_remove("CHORUS_MODELS").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of the manual.
fn manual(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "policy", name].iter().collect();
    path.display().to_string()
}

fn file(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[test]
fn the_example_of_the_manual_is_formatted_loads_and_reaches_its_routes() {
    let (policy, base) = (manual("helpdesk.dsl"), manual("helpdesk.base.yaml"));
    for words in [
        vec!["policy", "fmt", "--check", &policy],
        vec!["policy", "check", "--strict", &policy, "--base", &base],
        vec!["policy", "test", "--offline", &policy, "--base", &base],
        vec!["policy", "test", "--offline", &policy],
    ] {
        let out = chorus(&words);
        assert!(out.status.success(), "{words:?}\n{}{}", text(&out.stdout), text(&out.stderr));
    }
}

#[test]
fn the_picture_of_the_manual_is_what_graph_draws() {
    let out = chorus(&["policy", "graph", &manual("helpdesk.dsl")]);
    let shown = std::fs::read_to_string(manual("helpdesk.svg")).unwrap();
    assert_eq!(
        text(&out.stdout),
        shown,
        "draw it again: chorus policy graph docs/policy/helpdesk.dsl -o docs/policy/helpdesk.svg"
    );
}

#[test]
fn what_is_compiled_is_served_and_decompiles_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.yaml").display().to_string();
    let out = chorus(&[
        "policy",
        "compile",
        &manual("helpdesk.dsl"),
        "--base",
        &manual("helpdesk.base.yaml"),
        "-o",
        &whole,
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let checked = chorus(&["check", "--json", &whole]);
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["ok"], true, "{report}");
    let again = folder.path().join("again.dsl").display().to_string();
    assert!(chorus(&["policy", "decompile", &whole, "-o", &again]).status.success());
    let of = |policy: &str| text(&chorus(&["policy", "compile", policy, "--base", &whole]).stdout);
    assert!(!of(&again).is_empty());
    assert_eq!(of(&again), std::fs::read_to_string(&whole).unwrap());
}

#[test]
fn a_case_that_goes_elsewhere_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file(
        folder.path(),
        "p.dsl",
        "MODEL m {}\nSIGNAL keyword hi { keywords: [\"hello\"] }\nROUTE greet { PRIORITY 2 WHEN keyword(\"hi\") MODEL \"m\" }\n\
         ROUTE rest { MODEL \"m\" }\nTEST t {\n  \"hello\" -> greet\n  \"hello again\" -> rest\n}\n",
    );
    let out = chorus(&["policy", "test", "--offline", &policy]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    assert!(said.contains("✓ t: \"hello\" → greet"), "{said}");
    assert!(said.contains(&format!("✗ t: \"hello again\" → greet, not rest ({policy}:7:3)")), "{said}");
    assert!(said.contains("1 of 2 cases"), "{said}");
}

#[test]
fn check_speaks_json_and_says_which_file_a_problem_is_of() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file(folder.path(), "p.dsl", "MODEL m {}\nROUTE r { WHEN keyword(\"x\") MODEL \"m\" }\n");
    let base = file(
        folder.path(),
        "b.yaml",
        "version: v0.3\nproviders:\n  models: [{ name: m, backend_refs: [{ endpoint: 'h:1', wieght: 1 }] }]\n",
    );
    let out = chorus(&["policy", "check", "--json", &policy, "--base", &base]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (out.status.code(), report["ok"].as_bool(), report["errors"].as_u64()),
        (Some(1), Some(false), Some(2))
    );
    assert_eq!(report["files"][0]["diagnostics"][0]["code"], "unknown-reference");
    assert_eq!(report["files"][1]["diagnostics"][0]["code"], "unknown-key");
}

#[test]
fn fmt_rewrites_in_place_and_refuses_what_does_not_parse() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(folder.path(), "good.dsl", "ROUTE  r{PRIORITY 1 MODEL m} # last\n");
    let bad = file(folder.path(), "bad.dsl", "ROUTE r {\n");
    assert_eq!(chorus(&["policy", "fmt", "--check", &good]).status.code(), Some(1));
    assert!(chorus(&["policy", "fmt", &good]).status.success());
    assert_eq!(std::fs::read_to_string(&good).unwrap(), "ROUTE r {\n  PRIORITY 1\n  MODEL \"m\"\n} # last\n");
    let out = chorus(&["policy", "fmt", &bad]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("error[open-block]"), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "ROUTE r {\n");
}

#[test]
fn verify_says_when_its_data_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = chorus(&["policy", "verify", &folder.path().display().to_string()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("no recipes"), "{}", text(&out.stderr));
}

#[test]
fn a_policy_is_checked_explained_and_served_as_it_is() {
    let (policy, base) = (manual("helpdesk.dsl"), manual("helpdesk.base.yaml"));
    let out = chorus(&["check", &policy, "--base", &base]);
    assert!(
        out.status.success() && text(&out.stdout).contains("helpdesk.dsl loads"),
        "{}",
        text(&out.stdout)
    );
    let explained = |words: &[&str]| {
        let out = chorus(&[&["explain", "--offline", "--json"], words].concat());
        serde_json::from_slice::<Value>(&out.stdout).unwrap_or_else(|_| Value::String(text(&out.stderr)))
    };
    let question = "I forgot my password";
    let one = explained(&[&policy, question, "--base", &base]);
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.yaml").display().to_string();
    assert!(chorus(&["policy", "compile", &policy, "--base", &base, "-o", &whole]).status.success());
    assert_eq!(one["decision"], explained(&[&whole, question])["decision"], "{one}");
    assert!(one["decision"].is_string(), "{one}");
}

#[test]
fn a_policy_that_does_not_load_is_not_served_and_each_text_shows_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file(folder.path(), "p.dsl", "ROUTE all {\n  MODEL \"nobody\"\n}\n");
    let base = file(
        folder.path(),
        "base.yaml",
        "version: v0.3\nproviders:\n  modls: []\n  models: [{ name: m, backend_refs: [{ endpoint: \"h:1\" }] }]\n",
    );
    let runs = folder.path().join("runs.sqlite").display().to_string();
    let ports = ["--port", "0", "--management-port", "0", "--runs-file", &runs];
    let out = chorus(&[&["serve", &policy, "--base", &base], &ports[..]].concat());
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("p.dsl:2:") && said.contains("base.yaml:3:"), "{said}");
    let bare = chorus(&[&["serve", &policy], &ports[..]].concat());
    assert!(text(&bare.stderr).contains("name a --base"), "{}", text(&bare.stderr));
    let strange = chorus(&["explain", &base, "hello", "--base", &base]);
    assert!(text(&strange.stderr).contains("--base is for a policy"), "{}", text(&strange.stderr));
}
