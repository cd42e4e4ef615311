//! What was measured, as a table of docs/benchmarks.md: medians over the rounds, ratios within a round.

use super::Round;
use crate::process;

/// One figure of a round.
type Get = fn(&Round) -> f64;

/// What Chorus must reach against nginx: the bound, and whether it is the least.
const BOUNDS: [(&str, f64, bool, Get); 3] = [
    ("processor time of a buffered request of 3 KiB, against nginx", 2.0, false, |round| round.request_us),
    ("processor time of a streamed chunk, against nginx", 1.5, false, |round| round.chunk_us),
    ("requests a second at 64 connections, against nginx", 0.6, true, |round| {
        round.many.requests_per_second()
    }),
];

/// Both tables.
pub(super) fn of(names: &[&str], sides: &[Vec<Round>]) -> String {
    let mut text = "\n| way | processor time a request | a streamed chunk | one connection: median, p95 | \
                    added to direct: median, p95 | requests/s at 64 connections |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let direct = sides.first().map(Vec::as_slice).unwrap_or_default();
    for (name, rounds) in names.iter().zip(sides) {
        let value = |get: Get| median(rounds.iter().map(get).collect());
        let added = |get: Get| {
            median(rounds.iter().zip(direct).map(|(round, direct)| get(round) - get(direct)).collect())
        };
        let (p50, p95): (Get, Get) = (|round| round.alone.median_us, |round| round.alone.p95_us);
        text.push_str(&format!(
            "| {name} | {} | {} | {}, {} | {}, {} | {:.0} |\n",
            micros(value(|round| round.request_us), 0),
            micros(value(|round| round.chunk_us), 1),
            micros(value(p50), 0),
            micros(value(p95), 0),
            micros(added(p50), 0),
            micros(added(p95), 0),
            value(|round| round.many.requests_per_second()),
        ));
    }
    let sides = || names.iter().zip(sides);
    let nginx = sides().find(|(name, _)| **name == "nginx");
    for (name, chorus) in sides().filter(|(name, _)| name.starts_with("chorus")) {
        text.push_str(&nginx.map(|(_, nginx)| bounds(name, nginx, chorus)).unwrap_or_default());
    }
    text
}

fn bounds(name: &str, nginx: &[Round], chorus: &[Round]) -> String {
    let mut text = format!("\n| what must be reached | bound | {name} | load | |\n|---|---|---|---|---|\n");
    for (what, bound, at_least, get) in BOUNDS {
        let ratio = median(chorus.iter().zip(nginx).map(|(ours, theirs)| get(ours) / get(theirs)).collect());
        let within = if at_least { ratio >= bound } else { ratio <= bound };
        let (sign, verdict) = (if at_least { "≥" } else { "≤" }, if within { "within" } else { "**over**" });
        let load = process::load_average();
        text.push_str(&format!("| {what} | {sign} {bound:.1} | {ratio:.2} | {load} | {verdict} |\n"));
    }
    text
}

/// Microseconds for people; a dash where nothing came to its end.
fn micros(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$} µs") } else { "—".to_owned() }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
        assert_eq!((micros(1.26, 1).as_str(), micros(f64::NAN, 0).as_str()), ("1.3 µs", "—"));
    }
}
