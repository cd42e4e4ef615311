//! `cargo xtask fusion-page`: runs one real question through Fusion and writes `docs/fusion.md` from what came back.
//!
//! Nothing on the page is written by hand but the sentences around it.

use crate::markdown::{items, number, quote, text};
use crate::say;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const QUESTION: &str = "How do I check in Python whether a word is a palindrome?";

/// Asks, then writes the page.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let reply = chorus(root, &["ask", QUESTION, "--model", "vllm-sr/fusion", "--json"])?;
    let id = text(&reply, "id").trim_start_matches("chatcmpl-").to_owned();
    let record = chorus(root, &["runs", "show", &format!("run_{id}"), "--json"])?;
    let page = page(&reply, &record)?;
    let path = root.join("docs/fusion.md");
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    say("docs/fusion.md is written");
    Ok(())
}

fn chorus(root: &Path, words: &[&str]) -> anyhow::Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--release", "--package", "chorus", "--"]).args(words).current_dir(root);
    let out = cargo.stderr(std::process::Stdio::inherit()).output().context("cargo does not start")?;
    ensure!(out.status.success(), "chorus {} failed", words.join(" "));
    serde_json::from_slice(&out.stdout).context("chorus did not print JSON")
}

fn page(reply: &Value, record: &Value) -> anyhow::Result<String> {
    let trace = reply.get("fusion").context("the reply has no trace")?;
    let mut page = String::new();
    writeln!(page, "# One Fusion run\n")?;
    writeln!(
        page,
        "Made by `cargo xtask fusion-page` from one real run of the built-in configuration; run it again for"
    )?;
    writeln!(
        page,
        "another. The models are small and run on a CPU: the page shows the machinery, not what large models say.\n"
    )?;
    writeln!(page, "## Question\n\n> {QUESTION}\n")?;
    writeln!(page, "## Panel\n\nEach member saw the question and nothing of the others.\n")?;
    for answer in items(trace, "responses") {
        writeln!(
            page,
            "**Answer {}**, by `{}`:\n\n{}\n",
            text(answer, "label"),
            text(answer, "model"),
            quote(text(answer, "content"))
        )?;
    }
    for failed in items(trace, "failed_models") {
        writeln!(page, "`{}` gave no answer: {}\n", text(failed, "model"), text(failed, "error"))?;
    }
    analysis(trace, &mut page)?;
    writeln!(page, "## Answer\n\nThe writer saw the question, the fenced answers and the analysis.\n")?;
    let answer = reply.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default();
    writeln!(page, "{}\n", quote(answer))?;
    calls(record, &mut page)?;
    writeln!(page, "## Trace\n\nThe field `fusion` of the reply, without the texts above:\n")?;
    let mut bare = trace.clone();
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("responses");
        fields.remove("analysis");
    }
    writeln!(page, "```json\n{}\n```", serde_json::to_string_pretty(&bare)?)?;
    Ok(page)
}

fn analysis(trace: &Value, page: &mut String) -> anyhow::Result<()> {
    writeln!(
        page,
        "## Analysis\n\nBy `{}`, which was shown the answers fenced and labelled.\n",
        text(trace, "judge_model")
    )?;
    let Some(analysis) = trace.get("analysis") else {
        writeln!(page, "The judge gave none; the writer worked from the answers alone.\n")?;
        return Ok(());
    };
    if analysis.get("parse_failed").and_then(Value::as_bool) == Some(true) {
        writeln!(page, "It could not be read as an analysis; the run went on with what it had. It began:\n")?;
        writeln!(page, "{}\n", quote(text(analysis, "raw")))?;
        return Ok(());
    }
    for key in ["consensus", "contradictions", "partial_coverage", "unique_insights", "blind_spots"] {
        let findings: Vec<String> =
            items(analysis, key).map(|f| f.as_str().map_or_else(|| f.to_string(), str::to_owned)).collect();
        let shown = if findings.is_empty() { "none".to_owned() } else { findings.join("; ") };
        writeln!(page, "- *{key}*: {shown}")?;
    }
    writeln!(page)?;
    Ok(())
}

fn calls(record: &Value, page: &mut String) -> anyhow::Result<()> {
    writeln!(page, "## Calls and cost\n")?;
    writeln!(page, "| role | model | status | prompt tokens | completion tokens | cost, µ$ | ms |")?;
    writeln!(page, "|---|---|---|---:|---:|---:|---:|")?;
    for call in items(record, "calls") {
        let (prompt, completion) =
            (number(call, "/usage/prompt_tokens"), number(call, "/usage/completion_tokens"));
        let (cost, latency) = (number(call, "/cost_micro_usd"), number(call, "/latency_ms"));
        let (role, model, status) = (text(call, "role"), text(call, "model"), text(call, "status"));
        writeln!(page, "| {role} | {model} | {status} | {prompt} | {completion} | {cost} | {latency} |")?;
    }
    writeln!(
        page,
        "\nTogether {} tokens, {} µ$ (local models have no price), {} ms. Configuration `{}`.\n",
        number(record, "/usage/total_tokens"),
        number(record, "/cost_micro_usd"),
        number(record, "/duration_ms"),
        text(record, "spec_digest"),
    )?;
    Ok(())
}
