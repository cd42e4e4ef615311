//! `chorus place`: where every component runs under a binding, and why.

use super::bound::read_binding;
use super::disk;
use crate::cli::PlaceFlags;
use crate::terminal::{say, table};
use anyhow::bail;
use chorus_bundle::OperatingPoint;
use chorus_bundle::place::{Seat, place};
use std::process::ExitCode;

/// Prints the places; status 1 when a component may run nowhere.
pub(super) fn run(flags: &PlaceFlags) -> anyhow::Result<ExitCode> {
    let bundle = disk::open(&flags.bundle)?;
    let mom = &bundle.mom;
    let (_, binding) = read_binding(mom, flags.binding.as_deref())?;
    let mut points: Vec<Option<&OperatingPoint>> = mom.operating_points.iter().map(Some).collect();
    match &flags.point {
        Some(name) => {
            points.retain(|it| it.is_some_and(|it| it.name == *name || mom.identity(&it.name) == *name));
            if points.is_empty() {
                bail!("there is no operating point `{name}`");
            }
        }
        None => points.insert(0, None),
    }
    let mut is_whole = true;
    for point in points {
        let seats = place(mom, &binding, point, None);
        is_whole &= seats.iter().all(|it| !it.pool.is_empty());
        let title = point.map_or_else(|| "any other name".to_owned(), |it| mom.identity(&it.name));
        let objective = point.map(|it| format!(" (by {})", it.objective)).unwrap_or_default();
        say(&format!("{title}{objective}\n{}\n", if flags.why { reasons(&seats) } else { places(&seats) }));
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn places(seats: &[Seat<'_>]) -> String {
    let row = |it: &Seat<'_>| {
        let chosen = it.chosen().join(", ");
        let place = if chosen.is_empty() { format!("nowhere: {}", it.why_not()) } else { chosen };
        [format!("  {}", it.component), place]
    };
    table(&seats.iter().map(row).collect::<Vec<_>>())
}

fn reasons(seats: &[Seat<'_>]) -> String {
    let mut rows = Vec::new();
    for seat in seats {
        let chosen = seat.chosen();
        rows.push([format!("  {}", seat.component), String::new()]);
        rows.extend(seat.looked.iter().map(|it| {
            let mark = if chosen.contains(&it.deployment) { "✓" } else { "✗" };
            let why = if it.barred.is_empty() { it.measures.join(", ") } else { it.barred.join(", ") };
            [format!("    {mark} {}", it.deployment), why]
        }));
    }
    table(&rows)
}
