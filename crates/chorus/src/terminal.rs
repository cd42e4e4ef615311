//! What people see: text on standard output, notes on standard error, tables, progress.

use anyhow::Context;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

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
