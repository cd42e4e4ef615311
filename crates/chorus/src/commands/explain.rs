//! `chorus explain [FILE] "…"`: signals, projections, every decision's proof. No model is called.

use crate::cli::Explain;
use crate::terminal::{question, say, table};
use crate::{setup, stock};
use anyhow::Context;
use chorus_engine::Evaluation;
use chorus_policy::{
    AbsentReason, Evidence, NodeType, Observation, ProjectionTrace, Proof, ProofNode, Truth,
};
use chorus_signals::KnowledgeUse;
use chorus_spec::SignalKey;
use chorus_wire::{ChatRequest, Message, Role};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Evaluates and prints.
pub(crate) async fn run(flags: Explain) -> anyhow::Result<ExitCode> {
    let (file, text) = match flags.words.as_slice() {
        [file, text] => (Some(PathBuf::from(file)), text),
        [text] => (None, text),
        _ => anyhow::bail!("a question is needed"),
    };
    let question = question(text)?;
    let spec = setup::spec(file.as_deref(), &flags.source).await?;
    let engine = stock::engine_with(spec, file.as_deref(), &flags.source, None).await?;
    let request = ChatRequest::new(&flags.model, vec![Message::new(Role::User, &question)]);
    let evaluation = engine.evaluate(request).await.map_err(|fault| anyhow::anyhow!(fault.public))?;
    say(&if flags.json { as_json(&evaluation)? } else { as_text(&flags.model, &evaluation) });
    Ok(ExitCode::SUCCESS)
}

fn as_json(evaluation: &Evaluation) -> anyhow::Result<String> {
    let verdict = evaluation.routed.decided.as_ref().map(|d| &d.verdict);
    let report = json!({
        "recipe": evaluation.recipe, "decision": evaluation.decision, "algorithm": evaluation.algorithm,
        "plugins": evaluation.plugins, "candidates": evaluation.recommended, "selected_model": evaluation.selected,
        "status": evaluation.status, "reason": evaluation.reason,
        "token_counters": evaluation.counters,
        "cosines": evaluation.cosines.iter().map(|(key, cosine)| (key.to_string(), *cosine)).collect::<BTreeMap<_, _>>(),
        "knowledge": evaluation.knowledge.iter().map(|base| json!({
            "name": base.name, "file": base.file, "digest": base.digest, "labels": base.labels,
            "exemplars": base.exemplars,
        })).collect::<Vec<_>>(),
        "error": evaluation.fault.as_ref().map(|f| &f.public), "verdict": verdict,
    });
    serde_json::to_string_pretty(&report).context("the evaluation does not serialise")
}

fn as_text(model: &str, evaluation: &Evaluation) -> String {
    let mut lines = vec![
        format!("model      {model}"),
        format!("recipe     {}", evaluation.recipe.as_deref().unwrap_or("none: a concrete model")),
        format!("decision   {}", evaluation.decision.as_deref().unwrap_or("none")),
        format!("algorithm  {}", evaluation.algorithm),
        format!("candidates {}", evaluation.recommended.join(", ")),
        format!("answers    {}", evaluation.selected.as_deref().unwrap_or("known only when it runs")),
        format!("because    {}", evaluation.reason),
    ];
    if let Some(fault) = &evaluation.fault {
        lines.push(format!("but        {} ({})", fault.public, fault.code.as_str()));
    }
    lines.push(match evaluation.counters.as_slice() {
        [] => "tokens     estimated: not every model that may answer has its vocabulary here".to_owned(),
        models => format!("tokens     counted by the vocabulary of {}", models.join(", ")),
    });
    lines.extend(evaluation.knowledge.iter().map(knowledge));
    if let Some(decided) = &evaluation.routed.decided {
        lines.push(format!("\nsignals\n{}", signals(&decided.evidence, &evaluation.cosines)));
        projections(&decided.verdict.projections, &mut lines);
        lines.push("\ndecisions".to_owned());
        for proof in &decided.verdict.proofs {
            decision(proof, &mut lines);
        }
    }
    lines.join("\n")
}

fn knowledge(base: &KnowledgeUse) -> String {
    let file = base.file.as_ref().map(|file| file.display().to_string());
    let from = file.unwrap_or_else(|| "the built-in exemplars".to_owned());
    format!("knowledge  {} from {from}: {} labels, {} exemplars", base.name, base.labels, base.exemplars)
}

fn signals(evidence: &Evidence, cosines: &BTreeMap<SignalKey, f64>) -> String {
    let mut rows = vec![["  signal", "state", "confidence", "value", "cosine"].map(str::to_owned)];
    rows.extend(evidence.iter().map(|(key, seen)| {
        let number = |value: Option<f64>| value.map(|v| format!("{v:.4}")).unwrap_or_default();
        let (state, confidence, raw) = match seen {
            Observation::Matched { confidence, raw } => ("matched".to_owned(), Some(*confidence), *raw),
            Observation::Unmatched { raw } => ("unmatched".to_owned(), None, *raw),
            Observation::Absent(AbsentReason::Unsupported) => {
                ("absent: not supported yet".to_owned(), None, None)
            }
            Observation::Absent(AbsentReason::Failed(why)) => (format!("absent: {why}"), None, None),
        };
        [format!("  {key}"), state, number(confidence), number(raw), number(cosines.get(key).copied())]
    }));
    table(&rows)
}

fn projections(trace: &ProjectionTrace, lines: &mut Vec<String>) {
    if !trace.partitions.is_empty() || !trace.scores.is_empty() || !trace.mappings.is_empty() {
        lines.push("\nprojections".to_owned());
    }
    for partition in &trace.partitions {
        let winner = partition.winner.as_deref().unwrap_or("none");
        lines.push(format!("  partition {} → {winner}", partition.group_name));
    }
    for score in &trace.scores {
        lines.push(format!("  score {} = {:.4}", score.name, score.total));
        let parts = score.inputs.iter().filter(|part| part.contribution != 0.0);
        lines.extend(parts.map(|p| {
            format!("    {:+.4}  {} × {:.4}  {}:{}", p.contribution, p.weight, p.value, p.kind, p.name)
        }));
    }
    for mapping in &trace.mappings {
        let output = mapping.selected_output.as_deref().unwrap_or("none");
        lines.push(format!(
            "  mapping {} ({} = {:.4}) → {output}",
            mapping.mapping_name, mapping.source_score, mapping.score_value
        ));
    }
}

fn decision(proof: &Proof, lines: &mut Vec<String>) {
    lines.push(format!("  {} {}  confidence {:.3}", mark(proof.truth), proof.decision, proof.confidence));
    node(&proof.tree, 2, lines);
}

fn node(it: &ProofNode, depth: usize, lines: &mut Vec<String>) {
    lines.push(format!("{}{} {}", "  ".repeat(depth), mark(it.truth), title(it)));
    for child in &it.children {
        node(child, depth + 1, lines);
    }
}

fn title(it: &ProofNode) -> String {
    match (it.node_type, it.signal_type, &it.signal_name) {
        (NodeType::Leaf, Some(family), Some(name)) => {
            let confidence = if it.matched { format!("  {:.3}", it.confidence) } else { String::new() };
            let absent = it.absent.as_ref().map(|why| format!("  ({why})")).unwrap_or_default();
            format!("{family}:{name}{confidence}{absent}")
        }
        (NodeType::And, ..) => "all of".to_owned(),
        (NodeType::Or, ..) => "any of".to_owned(),
        (NodeType::Not, ..) => "not".to_owned(),
        _ => "no rules: matches every request".to_owned(),
    }
}

fn mark(truth: Truth) -> &'static str {
    match truth {
        Truth::True => "✓",
        Truth::False => "✗",
        Truth::Unknown => "?",
    }
}
