//! What was counted, as a table.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of one promise.
pub(crate) struct Tally {
    pub(crate) title: &'static str,
    promise: &'static str,
    /// By way to work, and by kind of text.
    rows: BTreeMap<(&'static str, String), Row>,
    refused: usize,
    bypasses: Vec<String>,
}

#[derive(Default, Clone, Copy)]
struct Row {
    sent: usize,
    /// What the classifier or the recognisers know for what it is.
    known: usize,
    /// Of these, where the promise held.
    held: usize,
    /// Of those that they do not know, where it held all the same.
    lucky: usize,
}

impl Tally {
    pub(crate) fn new(title: &'static str, promise: &'static str) -> Self {
        Self { title, promise, rows: BTreeMap::new(), refused: 0, bypasses: Vec::new() }
    }

    /// Counts one request.
    pub(crate) fn count(
        &mut self,
        way: &str,
        kind: &str,
        known: bool,
        held: bool,
        what: impl Fn() -> String,
    ) {
        for key in [("way", way), ("kind", kind)] {
            let row = self.rows.entry((key.0, key.1.to_owned())).or_default();
            row.sent += 1;
            row.known += usize::from(known);
            row.held += usize::from(known && held);
            row.lucky += usize::from(!known && held);
        }
        if known && !held {
            self.bypasses.push(what());
        }
    }

    /// Counts an answer that the client did not get.
    pub(crate) fn refused(&mut self, refused: bool) {
        self.refused += usize::from(refused);
    }

    /// Where the promise was broken.
    pub(crate) fn bypasses(&self) -> Vec<String> {
        self.bypasses.clone()
    }

    /// Where it held.
    pub(crate) fn held(&self) -> usize {
        self.rows.iter().filter(|((by, _), _)| *by == "way").map(|(_, row)| row.held).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n## {}: {}\n", self.title, self.promise)?;
        for by in ["way", "kind"] {
            writeln!(
                out,
                "| {by} | requests | known | held | bypasses | not found | of these held all the same |"
            )?;
            writeln!(out, "|---|---|---|---|---|---|---|")?;
            for ((_, name), row) in self.rows.iter().filter(|((own, _), _)| *own == by) {
                let Row { sent, known, held, lucky } = *row;
                let (broken, missed) = (known - held, sent - known);
                writeln!(out, "| {name} | {sent} | {known} | {held} | {broken} | {missed} | {lucky} |")?;
            }
            writeln!(out)?;
        }
        writeln!(out, "answers that the client did not get: {}", self.refused)
    }
}
