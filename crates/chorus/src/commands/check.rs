//! `chorus check FILE`: every problem of a configuration at once.

use crate::cli::Check;
use crate::terminal::say;
use anyhow::Context;
use chorus_spec::Severity;
use serde_json::json;
use std::process::ExitCode;

/// Status 0: it loads; 1: it does not.
pub(crate) fn run(flags: &Check) -> anyhow::Result<ExitCode> {
    let file = flags.file.display().to_string();
    let text = std::fs::read_to_string(&flags.file).with_context(|| format!("cannot read {file}"))?;
    let checked = chorus_spec::read(&text);
    let count = |severity| checked.diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let good = errors == 0 && !(flags.strict && warnings > 0);
    if flags.json {
        let digest = checked.spec.as_ref().map(|spec| spec.digest.to_string());
        let report = json!({
            "file": file, "ok": good, "errors": errors, "warnings": warnings, "digest": digest,
            "diagnostics": checked.diagnostics,
        });
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for diagnostic in &checked.diagnostics {
            say(&diagnostic.render(&file, &text));
        }
        say(&summary(&file, good, errors, warnings));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(file: &str, good: bool, errors: usize, warnings: usize) -> String {
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let verdict = if good { "loads" } else { "does not load" };
    format!("{file} {verdict}: {}, {}", plural(errors, "error"), plural(warnings, "warning"))
}
