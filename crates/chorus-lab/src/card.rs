//! The card beside a head: what it was made from, how good it is, how to make it again.
//!
//! It knows Markdown and the report. Invariant: it holds no figure that is not in the report.

use std::fmt::Write;

use crate::report::{EvaluatedSet, PhraseFigures, Report};
use crate::task::Task;

/// A smaller set has no confusion table: its figures say all there is.
const CONFUSION_FROM: usize = 40;

/// The card's text; texts longer than `longest_bytes` were measured and not learnt.
pub(crate) fn write(task: Task, longest_bytes: Option<usize>, report: &Report) -> String {
    let elsewhere = report.head.card().temperature_elsewhere;
    let elsewhere = elsewhere.map_or_else(String::new, |temperature| {
        format!("| temperature outside of English | {temperature:.3} |\n")
    });
    let mut text = format!(
        "# Head: {}\n\n{}\n\n\
         | | |\n|---|---|\n\
         | labels | {} |\n| encoder | `{}` |\n| training data | `{}` |\n| training examples | {} |\n\
         | L2 penalty | {:e} |\n| temperature | {:.3} |\n{elsewhere}\n",
        task.name(),
        task.purpose(),
        report.head.labels().join(", "),
        report.head.encoder_digest(),
        report.head.card().data_digest,
        report.trained_on,
        report.penalty,
        report.head.card().temperature,
    );
    let longest = longest_bytes.map_or_else(String::new, |bytes| format!(" --longest {bytes}"));
    let _ = write!(
        text,
        "Repeat with `chorus lab train-head {} --encoder ENCODER --data DATA --out OUT{longest}`",
        task.name()
    );
    let _ = match longest_bytes {
        Some(bytes) => write!(text, ": longer texts than of {bytes} bytes were measured and not learnt."),
        None => write!(text, "."),
    };
    text.push_str("\n\n## Measured\n\n");
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
    let rows: Vec<_> = report.sets.iter().filter_map(|set| Some((set, set.reported.as_ref()?))).collect();
    let Some((_, first)) = rows.first() else {
        return;
    };
    let _ = write!(text, "\n## Reported at a probability of {}\n\n", first.threshold);
    if let Some(PhraseFigures { right, wrong }) = report.phrases {
        let _ = write!(
            text,
            "Phrases, which the signal adds, name the kind of {:.1}% of the validation messages that have one, and a \
             given other kind in {:.2}% of them: {:.0} times less often.\n\n",
            right * 100.0,
            wrong * 100.0,
            right / wrong
        );
        text.push_str(
            "| set | precision | recall | with phrases: precision | recall |\n|---|---|---|---|---|\n",
        );
    } else {
        text.push_str("| set | precision | recall |\n|---|---|---|\n");
    }
    for (set, reported) in rows {
        let _ = write!(text, "| {} | {:.3} | {:.3} |", set.name, reported.precision, reported.recall);
        if let Some(with) = &set.with_phrases {
            let _ = write!(text, " {:.3} | {:.3} |", with.precision, with.recall);
        }
        text.push('\n');
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
