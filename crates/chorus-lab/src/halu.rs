//! How often an unsupported answer escapes the check of a grounded point, and how often a supported one is withheld.
//!
//! The cases are put together from records of our own invention: two things a case, each with four properties, and answers
//! that say what the records say, or something else in a known way. The checker is the one that serves. It knows no model:
//! whether one is talked out of an unsupported answer by the repair is not measured here.
//!
//! **Invariant:** the same cases on every machine, and no text of a dataset among them.

use chorus_engine::ground;
use chorus_wire::{ChatRequest, Message, Role};
use std::collections::BTreeMap;
use std::fmt;

/// Cases of each kind.
const CASES: usize = 100;

const THINGS: [&str; 10] =
    ["bridge", "library", "ferry", "museum", "tower", "market", "station", "theatre", "harbour", "garden"];
const TOWNS: [&str; 9] =
    ["Arnsby", "Belmore", "Corvale", "Dunwick", "Elsted", "Farrow", "Glenholt", "Hartsea", "Inverby"];
const COLOURS: [&str; 7] = ["grey", "white", "red", "green", "blue", "brown", "yellow"];
const OWNERS: [&str; 6] =
    ["the council", "a family", "the railway", "a trust", "the university", "a cooperative"];

/// A thing and what is known of it.
struct Record {
    name: String,
    year: u32,
    colour: &'static str,
    metres: u32,
    owner: &'static str,
}

/// What came of the cases of one kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Row {
    cases: usize,
    /// That would be sent.
    sent: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaluReport {
    unsupported: BTreeMap<&'static str, Row>,
    supported: BTreeMap<&'static str, Row>,
}

/// One answer beside its material.
pub(crate) struct Case {
    /// In which way the answer is, or is not, supported.
    pub(crate) kind: &'static str,
    is_supported: bool,
    /// What the records say.
    pub(crate) material: String,
    question: String,
    /// What is said of them.
    pub(crate) answer: String,
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for at in 0..CASES {
        let (one, other) = (record(at), record(at + 37));
        let (material, question) = conversation(&one, &other);
        let answers = [(false, unsupported(&one, &other)), (true, supported(&one, &other))];
        for (is_supported, answers) in answers {
            all.extend(answers.into_iter().map(|(kind, answer)| Case {
                kind,
                is_supported,
                material: material.clone(),
                question: question.clone(),
                answer,
            }));
        }
    }
    all
}

/// Measures all cases.
#[must_use]
pub fn measure() -> HaluReport {
    let mut report = HaluReport { unsupported: BTreeMap::new(), supported: BTreeMap::new() };
    for case in cases() {
        let messages =
            vec![Message::new(Role::Tool, &case.material), Message::new(Role::User, &case.question)];
        let sent = ground::check(&case.answer, &ChatRequest::new("m", messages)).holds();
        let rows = if case.is_supported { &mut report.supported } else { &mut report.unsupported };
        count(rows, case.kind, sent);
    }
    report
}

fn count(rows: &mut BTreeMap<&'static str, Row>, kind: &'static str, sent: bool) {
    let row = rows.entry(kind).or_default();
    row.cases += 1;
    row.sent += usize::from(sent);
}

/// The record of that number: every list goes round at its own pace.
fn record(at: usize) -> Record {
    let of = |list: &'static [&'static str]| list.get(at % list.len()).copied().unwrap_or_default();
    let number = u32::try_from(at).unwrap_or_default();
    Record {
        name: format!("{} of {}", of(&THINGS), of(&TOWNS)),
        year: 1850 + number * 13 % 150,
        colour: of(&COLOURS),
        metres: 12 + number * 7 % 80,
        owner: of(&OWNERS),
    }
}

impl Record {
    fn opened(&self) -> String {
        format!("The {} was opened in {}.", self.name, self.year)
    }

    fn painted(&self) -> String {
        format!("The {} is painted {}.", self.name, self.colour)
    }

    fn long(&self) -> String {
        format!("The {} is {} metres long.", self.name, self.metres)
    }

    fn owned(&self) -> String {
        format!("The {} belongs to {}.", self.name, self.owner)
    }
}

fn conversation(one: &Record, other: &Record) -> (String, String) {
    let facts =
        [one, other].map(|it| [it.opened(), it.painted(), it.long(), it.owned()].join(" ")).join("\n");
    let question = format!("What do you know about the {}?", one.name);
    (facts, question)
}

/// Answers that the records do not support, each in one way.
fn unsupported(one: &Record, other: &Record) -> Vec<(&'static str, String)> {
    let name = &one.name;
    let colour =
        COLOURS.iter().find(|it| **it != one.colour && **it != other.colour).copied().unwrap_or_default();
    let mut all = vec![
        ("another number", format!("The {name} was opened in {}.", one.year + 4)),
        ("another unit's number", format!("The {name} is {} metres long.", one.metres + 90)),
        ("a negation", format!("The {name} was not opened in {}.", one.year)),
        ("another value", format!("The {name} is painted {colour}.")),
        ("an invention", format!("The {name} cost three million and was designed by a sailor.")),
        (
            "an addition",
            format!("The {name} was opened in {} by a famous singer after long quarrels.", one.year),
        ),
        ("something else", "Penguins are found in the far south and eat fish.".to_owned()),
        ("a true one and a false one", format!("{} It closed in {}.", one.painted(), one.year + 60)),
        ("an opinion", "It is certainly the most beautiful of its kind in the whole country.".to_owned()),
        ("a bare yes", "Yes.".to_owned()),
    ];
    if other.year != one.year {
        all.push(("another thing's number", format!("The {name} was opened in {}.", other.year)));
    }
    if other.owner != one.owner {
        all.push(("another thing's owner", format!("The {name} belongs to {}.", other.owner)));
    }
    all
}

/// Answers that the records support.
fn supported(one: &Record, other: &Record) -> Vec<(&'static str, String)> {
    vec![
        ("as it stands", one.opened()),
        ("two as they stand", format!("{} {}", one.painted(), other.long())),
        ("without the thing's name", format!("It was opened in {}.", one.year)),
        (
            "two in one sentence",
            format!("The {} is painted {} and {} metres long.", one.name, one.colour, one.metres),
        ),
        ("in other words", format!("{} is the owner of the {}.", capital(one.owner), one.name)),
        ("as a list", format!("- {}\n- {}", one.opened(), one.owned())),
    ]
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

impl HaluReport {
    /// The share of unsupported answers that would be sent.
    #[must_use]
    pub fn escape_rate(&self) -> f64 {
        share(&self.unsupported)
    }

    /// The share of supported answers that would be sent.
    #[must_use]
    pub fn pass_rate(&self) -> f64 {
        share(&self.supported)
    }
}

fn share(rows: &BTreeMap<&'static str, Row>) -> f64 {
    let (sent, cases) = rows.values().fold((0, 0), |(sent, cases), row| (sent + row.sent, cases + row.cases));
    sent as f64 / cases.max(1) as f64
}

impl fmt::Display for HaluReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, rows) in [("unsupported", &self.unsupported), ("supported", &self.supported)] {
            writeln!(out, "| {title} answers | cases | sent | share |\n|---|---|---|---|")?;
            for (kind, Row { cases, sent }) in rows {
                writeln!(
                    out,
                    "| {kind} | {cases} | {sent} | {:.3} |",
                    *sent as f64 / (*cases).max(1) as f64
                )?;
            }
            writeln!(out)?;
        }
        writeln!(out, "unsupported answers that escape at the default threshold: {:.3}", self.escape_rate())?;
        write!(out, "supported answers that are sent: {:.3}", self.pass_rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_checker_promises_never_escapes() {
        let report = measure();
        for kind in [
            "another number",
            "a negation",
            "an invention",
            "something else",
            "a true one and a false one",
            "a bare yes",
        ] {
            assert_eq!(report.unsupported[kind], Row { cases: CASES, sent: 0 }, "{kind}");
        }
        for kind in ["as it stands", "two as they stand", "as a list"] {
            assert_eq!(report.supported[kind], Row { cases: CASES, sent: CASES }, "{kind}");
        }
        assert_eq!(report, measure());
    }
}
