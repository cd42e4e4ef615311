//! A run as a picture for the terminal: who said what, what the judge made of it, what it cost.

use crate::printer::LooperTrace;
use crate::terminal::{table, usd};
use chorus_store::RunRecord;
use serde_json::Value;

/// Columns of the picture.
const WIDTH: usize = 96;

/// Most lines of one panel answer that are shown.
const MAX_ANSWER_LINES: usize = 12;

/// The picture: of a looper's trace where there is one, and of the record's calls.
pub(crate) fn picture(trace: Option<&LooperTrace>, record: Option<&RunRecord>) -> String {
    let mut lines = vec![String::new()];
    match trace {
        Some(("fusion", trace)) => {
            panel(trace, &mut lines);
            analysis(trace, &mut lines);
            remarks(trace, &mut lines);
        }
        Some(("reasoning_mom_responses", trace)) => rounds(trace, &mut lines),
        Some(("flow", trace)) => steps(trace, &mut lines),
        Some((looper, trace)) => tried(looper, trace, &mut lines),
        None => {}
    }
    if let Some(record) = record {
        lines.push(rule("calls"));
        lines.push(calls(record));
        lines.push(String::new());
        lines.push(format!("run {}", record.id));
    }
    lines.join("\n")
}

/// Who was called, for what, and what it took.
pub(crate) fn calls(run: &RunRecord) -> String {
    let mut rows = vec![
        ["role", "model", "status", "prompt", "completion", "cost", "first ms", "ms"].map(str::to_owned),
    ];
    rows.extend(run.calls.iter().map(|call| {
        let mark = if call.usage.estimated { "~" } else { "" };
        [
            call.role.to_string(),
            call.model.to_string(),
            call.error
                .as_deref()
                .map(str::to_owned)
                .unwrap_or_else(|| format!("{:?}", call.status).to_lowercase()),
            format!("{mark}{}", call.usage.prompt_tokens),
            format!("{mark}{}", call.usage.completion_tokens),
            usd(call.cost_micro_usd),
            call.first_token_ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string()),
            call.latency_ms.to_string(),
        ]
    }));
    table(&rows)
}

/// The rounds of `ReMoM`, answer by answer.
fn rounds(trace: &Value, lines: &mut Vec<String>) {
    for round in trace.as_array().into_iter().flatten() {
        let number = round.get("round").and_then(Value::as_u64).unwrap_or_default();
        for response in items(round, "responses") {
            answer(&format!("round {number} · {}", text(response, "model")), response, lines);
        }
    }
}

/// The steps of a workflow, worker by worker.
fn steps(trace: &Value, lines: &mut Vec<String>) {
    for step in items(trace, "steps") {
        for response in items(step, "responses") {
            answer(&format!("step {} · {}", text(step, "id"), text(response, "model")), response, lines);
        }
    }
    remarks(trace, lines);
}

/// What other loopers tell, as they tell it.
fn tried(looper: &str, trace: &Value, lines: &mut Vec<String>) {
    lines.push(rule(looper));
    let told = serde_json::to_string_pretty(trace).unwrap_or_default();
    lines.extend(told.lines().map(|line| format!("  {line}")));
    lines.push(String::new());
}

/// One answer under its title, cut after a dozen lines.
fn answer(title: &str, response: &Value, lines: &mut Vec<String>) {
    lines.push(rule(title));
    let wrapped = wrap(text(response, "content"));
    lines.extend(wrapped.iter().take(MAX_ANSWER_LINES).cloned());
    if wrapped.len() > MAX_ANSWER_LINES {
        lines.push(format!("  … {} more lines", wrapped.len() - MAX_ANSWER_LINES));
    }
    lines.push(String::new());
}

fn panel(trace: &Value, lines: &mut Vec<String>) {
    for response in items(trace, "responses") {
        let model = text(response, "model");
        let label = text(response, "label");
        answer(&format!("answer {label} · {model}"), response, lines);
    }
    for failed in items(trace, "failed_models") {
        lines.push(format!("✗ {}: {}", text(failed, "model"), text(failed, "error")));
    }
}

fn analysis(trace: &Value, lines: &mut Vec<String>) {
    let Some(analysis) = trace.get("analysis") else {
        return;
    };
    lines.push(rule(&format!("analysis · {}", text(trace, "judge_model"))));
    if analysis.get("parse_failed").and_then(Value::as_bool) == Some(true) {
        lines.push("  the judge's answer could not be read as an analysis; it began:".to_owned());
        lines.extend(wrap(text(analysis, "raw")).into_iter().take(4));
    }
    for key in ["consensus", "contradictions", "partial_coverage", "unique_insights", "blind_spots"] {
        for finding in items(analysis, key) {
            let said = finding.as_str().map_or_else(|| finding.to_string(), str::to_owned);
            let mut wrapped = wrap(&said).into_iter();
            lines.push(format!("  {key:<16} {}", wrapped.next().unwrap_or_default().trim_start()));
            lines.extend(wrapped.map(|line| format!("{:19}{}", "", line.trim_start())));
        }
    }
    lines.push(String::new());
}

fn remarks(trace: &Value, lines: &mut Vec<String>) {
    for same in items(trace, "identical") {
        let count = same.get("count").and_then(Value::as_u64).unwrap_or_default();
        lines.push(format!("{count} seats gave answer {} alike", text(same, "label")));
    }
    for cut in items(trace, "compacted") {
        let tokens = |key| cut.get(key).and_then(Value::as_u64).unwrap_or_default();
        lines.push(format!(
            "answer {} was cut from about {} to {} tokens",
            text(cut, "label"),
            tokens("from_tokens"),
            tokens("to_tokens")
        ));
    }
    for reason in items(trace, "degraded_by") {
        lines
            .push(format!("degraded: {}", reason.as_str().map_or_else(|| reason.to_string(), str::to_owned)));
    }
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn rule(title: &str) -> String {
    let dashes = WIDTH.saturating_sub(title.chars().count() + 4);
    format!("── {title} {}", "─".repeat(dashes))
}

/// Words in lines of at most [`WIDTH`] columns, two in; a text without blanks is cut where it must be.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut line = String::from("  ");
        for word in paragraph.split_whitespace() {
            if line.len() > 2 && line.chars().count() + word.chars().count() + 1 > WIDTH {
                lines.push(std::mem::replace(&mut line, String::from("  ")));
            }
            if line.len() > 2 {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}
