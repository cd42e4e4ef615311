//! Numbers and their units, and days: values of which another one is another question.
//!
//! It knows written numbers up to twenty and the tens, and the units that people ask with. **Invariant:** quantities are
//! compared as a whole: each of one text needs its own in the other.

/// How a number is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// It may be greater.
    Above,
    /// It may be smaller.
    Below,
}

/// A number, with its unit where it has one that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quantity {
    value: String,
    unit: Option<&'static str>,
}

/// Units, a row each: the first stands for all.
const UNITS: &[&[&str]] = &[
    &["mg", "milligram", "milligrams", "milligramm"],
    &["g", "gram", "grams", "gramm", "grammes"],
    &["kg", "kilo", "kilos", "kilogram", "kilograms"],
    &["lb", "lbs", "pound", "pounds"],
    &["oz", "ounce", "ounces"],
    &["ml", "milliliter", "milliliters", "millilitre", "millilitres"],
    &["l", "liter", "liters", "litre", "litres"],
    &["mm", "millimeter", "millimeters", "millimetre", "millimetres"],
    &["cm", "centimeter", "centimeters", "centimetre", "centimetres"],
    &["m", "meter", "meters", "metre", "metres"],
    &["km", "kilometer", "kilometers", "kilometre", "kilometres"],
    &["mi", "mile", "miles"],
    &["ft", "foot", "feet"],
    &["ms", "millisecond", "milliseconds"],
    &["s", "sec", "second", "seconds", "sekunden"],
    &["min", "mins", "minute", "minutes", "minuten"],
    &["h", "hr", "hrs", "hour", "hours", "stunden"],
    &["day", "days", "tage", "jours", "días"],
    &["week", "weeks", "wochen"],
    &["month", "months", "monate"],
    &["year", "years", "jahre"],
    &["b", "byte", "bytes"],
    &["kb", "kib"],
    &["mb", "mib"],
    &["gb", "gib"],
    &["tb", "tib"],
    &["%", "percent", "prozent"],
    &["$", "usd", "dollar", "dollars"],
    &["€", "eur", "euro", "euros"],
    &["£", "gbp"],
    &["°c", "celsius"],
    &["°f", "fahrenheit"],
    &["am"],
    &["pm"],
];

/// Number words, a row each with its value.
const NUMBERS: &[(&str, &str)] = &[
    ("zero", "0"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("thirteen", "13"),
    ("fourteen", "14"),
    ("fifteen", "15"),
    ("sixteen", "16"),
    ("seventeen", "17"),
    ("eighteen", "18"),
    ("nineteen", "19"),
    ("twenty", "20"),
    ("thirty", "30"),
    ("forty", "40"),
    ("fifty", "50"),
    ("sixty", "60"),
    ("seventy", "70"),
    ("eighty", "80"),
    ("ninety", "90"),
    ("hundred", "100"),
    ("thousand", "1000"),
    ("million", "1000000"),
    ("billion", "1000000000"),
    ("half", "0.5"),
    ("twice", "2"),
    ("double", "2"),
    ("once", "1"),
    ("second", "2nd"),
    ("third", "3rd"),
    ("fourth", "4th"),
    ("fifth", "5th"),
];

/// Days and their like: each is a value, in the singular or plural.
const DAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "today",
    "tomorrow",
    "yesterday",
    "tonight",
    "spring",
    "summer",
    "autumn",
    "winter",
    "morning",
    "noon",
    "evening",
    "midnight",
];

/// The quantities of a text, in a fixed order.
pub(super) fn of(text: &str) -> Vec<Quantity> {
    let lower = text.to_lowercase();
    let tokens: Vec<&str> = tokens(&lower);
    let mut found: Vec<Quantity> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied().and_then(unit);
        let before = at.checked_sub(1).and_then(|at| tokens.get(at)).copied().and_then(unit);
        if let Some((value, glued)) = number(token) {
            let sign = before.filter(|unit| matches!(*unit, "$" | "€" | "£"));
            found.push(Quantity { value, unit: glued.or(sign).or(next) });
        } else if let Some((_, value)) = NUMBERS.iter().find(|(word, _)| word == token) {
            // A second is a unit where a number stands before it.
            let is_unit = *token == "second"
                && at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|it| number(it).is_some());
            if !is_unit {
                found.push(Quantity { value: (*value).to_owned(), unit: next });
            }
        } else if let Some(day) =
            DAYS.iter().find(|day| *day == token || token.strip_suffix('s') == Some(day))
        {
            found.push(Quantity { value: (*day).to_owned(), unit: None });
        }
    }
    found.sort_by(|a, b| a.value.cmp(&b.value).then(a.unit.cmp(&b.unit)));
    found
}

/// Whether a quantity of one has none of the other's for its own. A unit that only one of two names is no difference.
pub(super) fn differ(a: &[Quantity], b: &[Quantity]) -> bool {
    a.len() != b.len() || !a.iter().zip(b).all(|(a, b)| a.fits(b))
}

impl Quantity {
    /// Whether it is the other one. A unit that only one of two names is no difference.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.value == other.value && (self.unit.is_none() || other.unit.is_none() || self.unit == other.unit)
    }

    /// Whether both measure the same: two numbers of one unit, or two days.
    fn is_like(&self, other: &Self) -> bool {
        match (self.amount(), other.amount()) {
            (Some(_), Some(_)) => self.unit == other.unit,
            (None, None) => true,
            _ => false,
        }
    }

    fn amount(&self) -> Option<f64> {
        self.value.parse().ok()
    }
}

/// Whether a statement has a number of its own where a text has another one of the same unit; a bounded number disagrees
/// with what lies on the wrong side of it.
pub(super) fn other_value(claim: &[Quantity], text: &[Quantity], bound: Option<Bound>) -> bool {
    let unmet = |of: &[Quantity], by: &[Quantity]| -> Vec<Quantity> {
        of.iter().filter(|it| !by.iter().any(|other| it.fits(other))).cloned().collect()
    };
    let (claimed, known) = (unmet(claim, text), unmet(text, claim));
    claimed.iter().any(|it| {
        known.iter().filter(|other| it.is_like(other)).any(|other| {
            match (bound, it.amount(), other.amount()) {
                (Some(Bound::Above), Some(least), Some(value)) => value < least,
                (Some(Bound::Below), Some(most), Some(value)) => value > most,
                _ => true,
            }
        })
    })
}

/// Whether a word is a part of some quantity: the guard of numbers has looked at it.
pub(super) fn is_part(folded: &str) -> bool {
    number(folded).is_some()
        || unit(folded).is_some()
        || NUMBERS.iter().any(|(word, _)| *word == folded)
        || DAYS.iter().any(|day| *day == folded || folded.strip_suffix('s') == Some(day))
}

/// Digits with their marks, letters, and signs, each run by itself; `10mg` and `$5` come apart.
fn tokens(text: &str) -> Vec<&str> {
    text.split_whitespace()
        .flat_map(|piece| {
            let piece = piece.trim_matches(|c: char| !c.is_alphanumeric() && !"$€£%°".contains(c));
            let piece = piece.strip_suffix("'s").or(piece.strip_suffix("’s")).unwrap_or(piece);
            let (sign, rest) = match piece.chars().next() {
                Some(c) if "$€£".contains(c) => piece.split_at(c.len_utf8()),
                _ => ("", piece),
            };
            let parts = rest.split(|c: char| "/()[]{}\"?!;".contains(c) || c == '-');
            std::iter::once(sign).chain(parts).filter(|it| !it.is_empty())
        })
        .collect()
}

/// A number's value in one writing, and the unit that hangs on it. What goes on in letters that are no unit (`v1`, `3d`) is
/// a name, not a number.
fn number(token: &str) -> Option<(String, Option<&'static str>)> {
    let digits = token.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(token.len());
    let (value, rest) = token.split_at(digits);
    if !value.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let ordinal = matches!(rest, "st" | "nd" | "rd" | "th");
    let glued = if rest.is_empty() || ordinal { None } else { Some(unit(rest)?) };
    let plain: String = value.trim_end_matches(['.', ',']).chars().filter(|c| *c != ',').collect();
    let plain = match plain.split_once('.') {
        Some((whole, part)) if !part.contains('.') => {
            let part = part.trim_end_matches('0');
            if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
        }
        _ => plain,
    };
    let plain = if plain.len() > 1 { plain.trim_start_matches('0').to_owned() } else { plain };
    Some((if ordinal { format!("{plain}{rest}") } else { plain }, glued))
}

fn unit(token: &str) -> Option<&'static str> {
    UNITS.iter().find(|row| row.contains(&token)).and_then(|row| row.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_writing() {
        for (a, b, same) in [
            ("1,000 dollars", "$1000", true),
            ("10 mg", "10mg", true),
            ("10 mg", "10 g", false),
            ("1.50", "1.5", true),
            ("two cups", "2 cups", true),
            ("on Mondays", "on monday", true),
            ("today's paper", "the paper of today", true),
            ("in 2019", "in 2020", false),
            ("the 2nd one", "the second one", true),
            ("5 seconds", "5 s", true),
            ("room 7", "room", false),
            ("3 of 5", "5 of 3", true),
        ] {
            assert_eq!(differ(&of(a), &of(b)), !same, "{a} | {b}");
        }
    }
}
