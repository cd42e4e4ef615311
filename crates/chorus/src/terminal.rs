//! What people see: text on standard output, notes and the log on standard error, tables, progress.

use anyhow::Context;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::process::ExitCode;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

/// One line (or several) on standard output. A reader that has gone away (`| head`) is no error.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A piece of text on standard output, at once.
pub(crate) fn stream(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One line on standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The end of a command that failed.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    note(&format!("error: {error:#}"));
    ExitCode::FAILURE
}

/// Whether somebody watches standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Lines of the log that wait to be written (`max_log_lines`); a reader that does not read costs lines, and no answer.
const LOG_LINES: usize = 8192;

/// Starts the log on standard error, written by a thread of its own: lines that come together leave together. The rest of
/// them leaves when the guard is dropped.
pub(crate) fn start_log(filter: &str) -> WorkerGuard {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_default();
    let lines = NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES).thread_name("log");
    let (writer, guard) = lines.finish(BufWriter::new(std::io::stderr()));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    log.with_ansi(is_watched()).init();
    guard
}

/// The question itself, or standard input for `-`.
pub(crate) fn question(given: &str) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the question from standard input")?;
    Ok(text.trim_end().to_owned())
}

/// Micro-dollars for people.
pub(crate) fn usd(micro: u64) -> String {
    let (dollars, rest) = (micro / 1_000_000, micro % 1_000_000);
    format!("${dollars}.{rest:06}")
}

/// Rows in columns of equal width; the first row is the head.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [["a", "b"], ["long", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "a     b\nlong  x");
    }

    #[test]
    fn micro_dollars_are_exact() {
        assert_eq!((usd(0), usd(1_234_567)), ("$0.000000".to_owned(), "$1.234567".to_owned()));
    }
}
