//! Names of people, places and bodies, and what comes with them: titles, nationalities, street addresses.
//!
//! A linear tagger over words, their neighbours and lists of names; `chorus lab train-names` makes its weights. It knows
//! Latin script best; names in other scripts are found only where the words around them say so. **Invariant:** a bare
//! name scores below 0.85: naming somebody is no leak.

mod gazetteer;
mod hash;
mod model;
mod token;

pub use gazetteer::{List, ListHint};
pub use model::{BUCKETS, FEATURES, LABELS, Label, Model, ModelFault, features};
pub use token::{Kind, Token, tokens};

use super::entity::Entity;
use super::span::Span;
use std::ops::Range;
use std::sync::LazyLock;

/// The trained weights.
static WEIGHTS: &[u8] = include_bytes!("../../data/pii/names.bin");

/// The tagger that findings come from; none when the weights are not readable, which a test rules out.
static MODEL: LazyLock<Option<Model>> = LazyLock::new(|| Model::parse(WEIGHTS).ok());

/// Score of the least certain name.
const LEAST: f64 = 0.5;
/// What certainty adds at most.
const CERTAIN: f64 = 0.3;
/// Margin over "no name" that adds half of it, in units of weights.
const HALF_MARGIN: f64 = 120.0;

/// Words before a name that introduce a person.
const INTRODUCTIONS: &[&str] = &[
    "my name is",
    "name is",
    "name's",
    "i am",
    "i'm",
    "this is",
    "name:",
    "called me",
    "call me",
    "patient",
    "customer",
    "client",
    "employee",
    "applicant",
    "beneficiary",
    "tenant",
    "account holder",
    "cardholder",
    "signed",
    "regards,",
    "sincerely,",
    "dear",
    "contact",
    "ich heiße",
    "mein name ist",
    "me llamo",
    "mi nombre es",
    "je m'appelle",
    "mi chiamo",
    "meu nome é",
    "me chamo",
];

/// Bytes before a name in which an introduction counts.
const INTRODUCED_WITHIN: usize = 28;

/// What the tagger finds in a text.
pub(super) fn find(text: &str, found: &mut Vec<Span>) {
    let Some(model) = MODEL.as_ref() else { return };
    let tokens = tokens(text);
    let tagged = model.tag(&tokens);
    let mut at = 0;
    for run in tagged.chunk_by(|a, b| a.0 == b.0) {
        let words = tokens.get(at..at + run.len()).unwrap_or_default();
        at += run.len();
        let Some(entity) = run.first().and_then(|(label, _)| label.entity()) else { continue };
        let margins = run.iter().map(|(_, margin)| f64::from((*margin).max(0)));
        let margin = margins.sum::<f64>() / run.len() as f64;
        let score = LEAST + CERTAIN * margin / (margin + HALF_MARGIN);
        let lines = words.split(|word| word.kind == Kind::Line && entity != Entity::StreetAddress);
        for line in lines {
            found.extend(bounds(line, entity).map(|bytes| Span {
                entity,
                bytes,
                score,
                recogniser: "names",
            }));
        }
    }
}

/// From the first to the last token that may stand at an end; nothing when there is no word.
fn bounds(tokens: &[Token], entity: Entity) -> Option<Range<usize>> {
    let outer = |token: &&Token| token.kind != Kind::Line && token.kind != Kind::Mark;
    let first = tokens.iter().find(outer)?;
    let at = tokens.iter().rposition(|token| outer(&token))?;
    let last = tokens.get(at)?;
    // "Dr." and "P." end in a full stop that is theirs.
    let stop = tokens.get(at + 1).filter(|mark| mark.is_stop && mark.bytes.start == last.bytes.end);
    let end = match (entity, stop) {
        (Entity::Title, Some(stop)) => stop.bytes.end,
        _ => last.bytes.end,
    };
    Some(first.bytes.start..end)
}

/// Whether the words before a name introduce a person.
pub(super) fn is_introduced(text: &str, name: Range<usize>) -> bool {
    let start = text.floor_char_boundary(name.start.saturating_sub(INTRODUCED_WITHIN));
    let before = text.get(start..name.start).unwrap_or_default().to_lowercase();
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '.' || c == ':');
    let before =
        ["mr", "mrs", "ms", "dr", "prof", "is", "for", "named"].iter().fold(before, |before, word| {
            let shorter = before.strip_suffix(word).unwrap_or(before);
            if shorter.ends_with(' ') { shorter.trim_end() } else { before }
        });
    let colon = text.get(start..name.start).is_some_and(|before| before.trim_end().ends_with(':'));
    let whole = |word: &str| {
        before.strip_suffix(word).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
            || before.strip_suffix(" is").unwrap_or(before).ends_with(word) && word.contains(' ')
    };
    INTRODUCTIONS.iter().map(|word| word.trim_end_matches([',', ':'])).any(whole)
        || colon && ["name", "patient", "customer", "employee"].iter().any(|word| before.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_readable() {
        assert!(Model::parse(WEIGHTS).is_ok());
    }

    #[test]
    fn introductions() {
        for (text, want) in [
            ("My name is Ada", true),
            ("I'm Ada", true),
            ("the customer record for Ada", false),
            ("patient Ada", true),
            ("Name: Ada", true),
            ("I read about Ada", false),
            ("me llamo Ada", true),
        ] {
            let start = text.find("Ada").unwrap();
            assert_eq!(is_introduced(text, start..text.len()), want, "{text}");
        }
    }
}
