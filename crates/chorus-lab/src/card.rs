//! The card beside a head: what it was made from, how good it is, how to make it again.
//!
//! It knows Markdown and the report. Invariant: it holds no figure that is not in the report.

use std::fmt::Write;

use crate::report::{EvaluatedSet, Report};
use crate::task::Task;

/// A smaller set has no confusion table: its figures say all there is.
const CONFUSION_FROM: usize = 40;

/// The card's text.
pub(crate) fn write(task: Task, report: &Report) -> String {
    let mut text = format!(
        "# Head: {}\n\n{}\n\n\
         | | |\n|---|---|\n\
         | labels | {} |\n| encoder | `{}` |\n| training data | `{}` |\n| training examples | {} |\n\
         | L2 penalty | {:e} |\n| temperature | {:.3} |\n\n",
        task.name(),
        task.purpose(),
        report.head.labels().join(", "),
        report.head.encoder_digest(),
        report.head.card().data_digest,
        report.trained_on,
        report.penalty,
        report.head.card().temperature,
    );
    text.push_str("Repeat with `cargo run --release -p chorus-lab --example train_head -- ");
    let _ = write!(text, "{} DATA MODELS OUT`.\n\n## Measured\n\n", task.name());
    text.push_str(
        "| set | examples | top-1 | macro-F1 | calibration error | AUROC |\n|---|---|---|---|---|---|\n",
    );
    for set in &report.sets {
        let metrics = &set.metrics;
        let auroc = set.auroc.map_or_else(|| "–".to_owned(), |auroc| format!("{auroc:.3}"));
        let _ = writeln!(
            text,
            "| {} | {} | {:.3} | {:.3} | {:.3} | {auroc} |",
            set.name, metrics.count, metrics.top1, metrics.macro_f1, metrics.calibration_error
        );
    }
    reported(&mut text, report);
    for set in report.sets.iter().filter(|set| set.metrics.count >= CONFUSION_FROM) {
        confusion(&mut text, set, report.head.labels());
    }
    text
}

/// What a signal would report at its threshold.
fn reported(text: &mut String, report: &Report) {
    let rows: Vec<_> =
        report.sets.iter().filter_map(|set| Some((&set.name, set.reported.as_ref()?))).collect();
    let Some((_, first)) = rows.first() else {
        return;
    };
    let _ = write!(
        text,
        "\n## Reported at a probability of {}\n\n| set | precision | recall |\n|---|---|---|\n",
        first.threshold
    );
    for (name, reported) in rows {
        let _ = writeln!(text, "| {name} | {:.3} | {:.3} |", reported.precision, reported.recall);
    }
}

/// One table: rows are true classes, columns predicted ones by their first letters.
fn confusion(text: &mut String, set: &EvaluatedSet, labels: &[String]) {
    let _ = write!(text, "\n## Confusion: {}\n\n| true \\ predicted |", set.name);
    for label in labels {
        let short: String = label.chars().take(4).collect();
        let _ = write!(text, " {short} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(labels.len()));
    for (label, row) in labels.iter().zip(&set.metrics.confusion) {
        let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "| {label} | {} |", cells.join(" | "));
    }
}
