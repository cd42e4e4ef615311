//! Asks the example's team by `chorus ask`, and keeps each reply with its record.

use super::question::Question;
use crate::say;
use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILE: &str = "examples/local-team.yaml";

/// What came back of one question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) reply: Value,
    pub(super) record: Value,
}

impl Run {
    /// The answer.
    pub(super) fn answer(&self) -> &str {
        self.reply.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The kept runs of the first questions, up to the first that was not asked; none without a kept run.
pub(super) fn kept(root: &Path, name: &str, questions: &[Question]) -> anyhow::Result<Vec<Run>> {
    let paths = (1..=questions.len()).map(|number| path(root, name, number));
    paths.take_while(|path| path.exists()).map(|path| read(&path)).collect()
}

/// Every question, put to that model name; those that are kept under `name` are not asked again.
pub(super) fn all(root: &Path, name: &str, model: &str, questions: &[Question]) -> anyhow::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (number, question) in (1..).zip(questions) {
        let path = path(root, name, number);
        if !path.exists() {
            say(&format!("{model}: question {number}"));
            let run = serde_json::to_vec_pretty(&one(root, model, question)?)?;
            let folder = path.parent().unwrap_or(root);
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            std::fs::write(&path, run).with_context(|| format!("cannot write {}", path.display()))?;
        }
        runs.push(read(&path)?);
    }
    Ok(runs)
}

fn path(root: &Path, name: &str, number: usize) -> PathBuf {
    root.join("target/looper-runs").join(name).join(format!("{number:02}.json"))
}

fn read(path: &Path) -> anyhow::Result<Run> {
    let kept = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&kept).with_context(|| format!("{} is no kept run; delete it", path.display()))
}

fn one(root: &Path, model: &str, question: &Question) -> anyhow::Result<Run> {
    let reply = chorus(root, &["ask", &question.prompt(), "--config", FILE, "--model", model, "--json"])?;
    // The newest record is the one of this question.
    let newest = chorus(root, &["runs", "list", "--limit", "1", "--json"])?;
    let id = newest.get("id").and_then(Value::as_str).context("a record without an id")?;
    let record = chorus(root, &["runs", "show", id, "--json"])?;
    Ok(Run { reply, record })
}

/// What the binary prints, as JSON; runs are kept apart from the user's own.
fn chorus(root: &Path, words: &[&str]) -> anyhow::Result<Value> {
    let runs = root.join("target/looper-runs/runs.sqlite");
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--release", "--package", "chorus", "--"]).args(words).current_dir(root);
    let out = cargo.env("CHORUS_RUNS", runs).stderr(Stdio::inherit()).output();
    let out = out.context("cargo does not start")?;
    ensure!(out.status.success(), "chorus {} failed", words.first().unwrap_or(&""));
    serde_json::from_slice(&out.stdout).context("chorus did not print JSON")
}
