//! What must hold at the end, as a table.

use super::clients::{Seen, id};
use crate::line::Usage;
use crate::records::Records;
use crate::say;
use anyhow::ensure;
use std::path::Path;

/// How far the memory at the end may be from that after the warm-up, in percent, where nobody says.
pub(super) const FLAT: f64 = 5.0;
/// Open files that may be there at the end and were not at the beginning: a file that SQLite opens when it needs it.
const MORE_FILES: usize = 2;

/// Resident memory, look by look.
pub(super) struct Memory {
    pub(super) looks: Vec<u64>,
    /// How far its end may be from its second quarter, in percent.
    pub(super) flat: f64,
}

impl Memory {
    /// Mean of one quarter of the run, in MiB; the first is the warm-up.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a process")]
    fn quarter(&self, number: usize) -> f64 {
        let length = (self.looks.len() / 4).max(1);
        let looks = self.looks.chunks(length).nth(number).unwrap_or(&self.looks);
        looks.iter().map(|bytes| *bytes as f64).sum::<f64>() / looks.len().max(1) as f64 / f64::from(1 << 20)
    }
}

/// What the records say.
#[derive(Default)]
pub(super) struct Books {
    records: u64,
    missing: usize,
    /// Of answered calls, runs that the client left apart.
    answered: Usage,
}

impl Books {
    pub(super) fn read(path: &Path, seen: &Seen) -> anyhow::Result<Self> {
        let mut books = Self::default();
        let mut missing = seen.runs.clone();
        Records::open(path)?.each(|kept| {
            books.records += 1;
            let run = id(&kept.id).unwrap_or_default();
            missing.remove(&run);
            let answered = kept.calls.iter().filter(|call| call.status == "ok");
            for call in answered.filter(|_| !seen.runs_left.contains(&run)) {
                books.answered.prompt_tokens += call.usage.prompt_tokens;
                books.answered.completion_tokens += call.usage.completion_tokens;
            }
        })?;
        books.missing = missing.len();
        Ok(books)
    }
}

/// Prints what was found.
///
/// # Errors
/// When something that must hold does not.
pub(super) fn of(
    seen: &Seen,
    books: &Books,
    charged: Usage,
    memory: &Memory,
    files: (usize, usize),
    connections: usize,
) -> anyhow::Result<()> {
    let (warm, late) = (memory.quarter(1), memory.quarter(3));
    let drift = 100.0 * (late - warm) / warm;
    let asked = seen.asked();
    let rows = [
        (
            "requests: whole, failed as announced, left by the client",
            format!("{}, {}, {}", seen.whole, seen.refused, seen.left),
            seen.wrong.is_empty(),
        ),
        (
            "every request in the records",
            format!("{} records of {asked}, {} missing", books.records, books.missing),
            books.missing == 0 && books.records == asked,
        ),
        (
            "tokens: charged by the backend, in the records, told to clients",
            format!("{}, {}, {}", total(charged), total(books.answered), total(seen.told)),
            charged == books.answered && charged == seen.told,
        ),
        (
            "resident memory after the warm-up and at the end",
            format!("{warm:.1} and {late:.1} MiB ({drift:+.1}%)"),
            drift.abs() <= memory.flat,
        ),
        (
            "open files before and after",
            format!("{} and {}", files.0, files.1),
            files.1 <= files.0 + MORE_FILES,
        ),
        ("connections to the backend that are left", connections.to_string(), connections == 0),
    ];
    say("\n| what must hold | found | |\n|---|---|---|");
    for (what, found, holds) in &rows {
        say(&format!("| {what} | {found} | {} |", if *holds { "holds" } else { "**does not hold**" }));
    }
    for wrong in &seen.wrong {
        say(&format!("wrong: {wrong}"));
    }
    ensure!(rows.iter().all(|(_, _, holds)| *holds), "not everything held");
    Ok(())
}

fn total(usage: Usage) -> u64 {
    usage.prompt_tokens + usage.completion_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_quarter_is_the_warm_up() {
        let mebi = 1 << 20;
        let memory = Memory { looks: [1, 1, 4, 6, 5, 5, 7, 7].map(|it| it * mebi).to_vec(), flat: FLAT };
        assert_eq!((memory.quarter(1), memory.quarter(3)), (5.0, 7.0));
    }
}
