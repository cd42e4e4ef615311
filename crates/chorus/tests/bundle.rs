//! `chorus new | build | inspect | verify | diff | save | load`, as a person meets them.
//!
//! It knows the binary and nothing inside it. No model, network or server is used.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn chorus(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command.args(words).current_dir(folder).env_remove("CHORUS_LOG").output().unwrap()
}

fn good(folder: &Path, words: &[&str]) -> String {
    let output = chorus(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let output = chorus(folder, words);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_new_source_is_built_carried_about_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = chorus(at, &["new", "helpdesk"]);
    assert!(made.status.success() && made.stderr.is_empty(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(refused(at, &["new", "helpdesk"]).contains("there already"));
    let built = good(at, &["build", "helpdesk"]);
    let digest = built.lines().last().unwrap();
    assert!(good(at, &["build", "helpdesk", "--out", "again.tar"]).ends_with(&format!("{digest}\n")));
    good(at, &["save", "helpdesk.bundle", "helpdesk.tar"]);
    assert_eq!(fs::read(at.join("helpdesk.tar")).unwrap(), fs::read(at.join("again.tar")).unwrap());
    good(at, &["load", "helpdesk.tar", "elsewhere"]);
    assert!(good(at, &["verify", "elsewhere", "--digest", digest]).contains("is whole"));
    assert!(good(at, &["diff", "elsewhere", "helpdesk"]).contains("0 change(s)"));
    assert!(good(at, &["inspect", "helpdesk.bundle"]).contains("helpdesk-light"));
    let summary: Value = serde_json::from_str(&good(at, &["inspect", "elsewhere", "--json"])).unwrap();
    assert_eq!(summary["digest"].as_str(), Some(digest));

    edit(&at.join("helpdesk/policy.yaml"), "priority: 20", "priority: 5");
    edit(&at.join("helpdesk/mom.yaml"), "max_calls: 5", "max_calls: 50");
    let told = refused(at, &["diff", "helpdesk.bundle", "helpdesk"]);
    assert!(told.contains("~ decision: routing.decisions[deliberate].priority: 20 → 5"), "{told}");
    assert!(told.contains("~ bound: operating_points[light].bounds.max_calls: 5 → 50"), "{told}");
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    good(at, &["new", "helpdesk", "--family", "acme/helpdesk"]);
    good(at, &["build", "helpdesk", "--out", "one.tar"]);
    let mut bytes = fs::read(at.join("one.tar")).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    if let Some(byte) = bytes.get_mut(last) {
        *byte ^= 1;
    }
    fs::write(at.join("bad.tar"), &bytes).unwrap();
    assert!(refused(at, &["load", "bad.tar", "bad"]).contains("error[bundle-"));
    assert!(!at.join("bad").exists());
    edit(&at.join("helpdesk/policy.yaml"), "model: second", "model: nobody");
    let told = refused(at, &["build", "helpdesk"]);
    assert!(told.contains("helpdesk/policy.yaml:19:"), "{told}");
    assert!(!at.join("helpdesk.bundle").exists());
    fs::create_dir(at.join("full")).unwrap();
    fs::write(at.join("full/letter.txt"), "mine").unwrap();
    assert!(refused(at, &["load", "one.tar", "full"]).contains("is not empty"));
}

#[test]
fn a_configuration_is_imported_with_the_same_routes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/defaults/duo.yaml");
    assert!(good(at, &["import", "--from", config, "duo"]).contains("the routes are the same"));
    for name in ["mom.yaml", "policy.yaml", "binding.yaml", "runtime.yaml"] {
        assert!(at.join("duo").join(name).exists(), "{name}");
    }
    good(at, &["build", "duo", "--check"]);
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    good(at, &["new", "helpdesk"]);
    std::os::unix::fs::symlink("/etc/hostname", at.join("helpdesk/prompts/host.md")).unwrap();
    assert!(refused(at, &["build", "helpdesk"]).contains("is a link"));
}
