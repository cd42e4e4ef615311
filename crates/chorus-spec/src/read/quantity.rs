//! Durations, token counts and prices as files write them.
//!
//! Pure conversions of text: they know no tree and report nothing.

use std::time::Duration;

/// Reads `1200s`, `5m`, `1h30m`, `500ms` or plain seconds.
///
/// Source: Go's `time.ParseDuration`, which the contract's durations go through; plain numbers are our addition.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds_of(seconds);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        total = total.checked_add(seconds_of(number.parse::<f64>().ok()? * scale)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

fn seconds_of(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads `7999`, `16K` or `1M`. `K` is 1,000 and `M` 1,000,000.
///
/// Source: the contract's own recipes lay bands edge to edge as `…7999` and `8K…`, which holds for 1,000 only.
pub(super) fn tokens(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000.0),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000.0),
            None => return text.parse().ok(),
        },
    };
    let value = digits.trim().parse::<f64>().ok()? * scale;
    (value.is_finite() && (0.0..1e15).contains(&value)).then(|| value.round() as u64)
}

/// Dollars as micro-dollars, half up. `None` when negative or absurd (above a billion dollars).
pub(super) fn micro_usd(dollars: f64) -> Option<u64> {
    (0.0..=1e9).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("1200s", 1_200_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("300", 300_000),
            ("1.5s", 1500),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-3s", "-3", "5m3", "nan", "inf", "1e400", "5 m"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn token_counts_use_thousands() {
        for (text, count) in
            [("0", 0), ("7999", 7999), ("8K", 8000), ("16k", 16_000), ("1M", 1_000_000), ("1.5K", 1500)]
        {
            assert_eq!(tokens(text), Some(count), "{text}");
        }
        for text in ["", "K", "-1", "12G", "nanK", "1e99M"] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }

    #[test]
    fn prices_round_half_up() {
        for (dollars, micro) in
            [(0.0, 0), (0.5, 500_000), (0.000_000_5, 1), (0.000_000_4, 0), (7.2, 7_200_000)]
        {
            assert_eq!(micro_usd(dollars), Some(micro), "{dollars}");
        }
        assert_eq!(micro_usd(-0.1), None);
        assert_eq!(micro_usd(f64::NAN), None);
    }
}
