//! Reports of other systems' users about the command line, each as a test that is named by its case.
//!
//! It knows the binary and nothing inside it. No model or network is used.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

/// Starts the binary offline with an empty model store, behind a proxy that would see whatever it sends.
fn offline(proxy: &str, models: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, proxy);
    }
    let runs = models.join("runs.sqlite");
    command.env_remove("CHORUS_MODELS").env_remove("CHORUS_LOG").args(words).arg("--offline");
    command.arg("--models-dir").arg(models).arg("--runs-file").arg(runs).output().unwrap()
}

#[test]
fn h10_offline_names_what_is_missing_and_opens_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    // A part of a model is no model.
    let half = folder.path().join("smollm2-135m-instruct");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("tokenizer.json"), "{}").unwrap();
    let learned = folder.path().join("learned.yaml");
    let policy = "version: v0.3
providers:
  models: [{ name: a, backend_refs: [{ endpoint: \"127.0.0.1:1\" }] }]
routing:
  signals: { embeddings: [{ name: tides, threshold: 0.5, candidates: [when is high tide] }] }
  decisions: [{ name: d, rules: { type: embedding, name: tides }, modelRefs: [{ model: a }] }]
";
    std::fs::write(&learned, policy).unwrap();
    let learned = learned.display().to_string();
    let rows: [(&[&str], &str); 4] = [
        (&["serve", "--small", "--port", "0", "--management-port", "0"], "smollm2-135m-instruct"),
        (&["ask", "--small", "hello"], "smollm2-135m-instruct"),
        (&["serve", &learned, "--port", "0", "--management-port", "0"], "all-minilm-l6-v2"),
        (&["explain", &learned, "hello"], "all-minilm-l6-v2"),
    ];
    for (words, missing) in rows {
        let out = offline(&address, folder.path(), words);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(missing) && said.contains("--offline"), "{words:?}: {said}");
    }
    assert!(proxy.accept().is_err(), "nobody may have called");
}
