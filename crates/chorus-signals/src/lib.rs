//! What can be said about a request: one file a signal.
//!
//! An [`Extractor`] is prepared once for a recipe; for each request it answers the asks of the policy with
//! observations. Heuristic families read text and counts; the learned ones share one encoder pass a text. It knows no
//! decision, no model call and no HTTP.
//!
//! **Invariant:** a signal that could not run is `Absent` with its reason, never "no", and never a panic.

mod approximate;
mod bank;
pub mod complexity;
pub mod context;
pub mod conversation;
mod doc;
pub mod domain;
pub mod embedding;
pub mod extractor;
mod fault;
pub mod keyword;
pub mod language;
mod literal;
mod pass;
mod predicate;
pub mod structure;
pub mod subject;
mod text;

#[cfg(test)]
mod fake;

pub use doc::SignalDoc;
pub use extractor::{Extractor, Heads, Timing};
pub use fault::{PrepareFault, Problem};
pub use pass::{Encoded, PASS_BYTES, SharedPass};
pub use subject::Subject;

use chorus_spec::Family;

/// Every signal that this version runs, cheapest first: the source of docs, `--help` and console text.
pub const ALL: &[SignalDoc] = &[
    context::DOC,
    conversation::DOC,
    keyword::DOC,
    structure::DOC,
    language::DOC,
    embedding::DOC,
    domain::DOC,
    complexity::DOC,
];

/// The cost tier of a family that this version does not run.
pub const UNSUPPORTED_COST: u8 = 9;

/// What a family costs, as a tier: 0 free, 1 cheap, 2 some tens of microseconds, 3 an encoder pass,
/// [`UNSUPPORTED_COST`] not supported.
#[must_use]
pub fn cost(family: Family) -> u8 {
    ALL.iter().find(|doc| doc.family == family).map_or(UNSUPPORTED_COST, |doc| doc.cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_each_file_says() {
        let files = [
            include_str!("context.rs"),
            include_str!("conversation.rs"),
            include_str!("keyword.rs"),
            include_str!("structure.rs"),
            include_str!("language.rs"),
            include_str!("embedding.rs"),
            include_str!("domain.rs"),
            include_str!("complexity.rs"),
        ];
        for (doc, file) in ALL.iter().zip(files) {
            for (head, text) in [
                ("Measures", doc.measures),
                ("Inputs", doc.inputs),
                ("Fails when", doc.fails_when),
                ("Source", doc.source),
            ] {
                let line = format!("//! *{head}:* {text}\n");
                assert!(file.contains(&line), "{}: the file lacks the line {line:?}", doc.family);
            }
            assert!(file.contains(&format!("//! *Cost:* {}", doc.cost)), "{}", doc.family);
        }
    }

    #[test]
    fn costs_rise_and_unknown_families_cost_most() {
        assert!(ALL.is_sorted_by_key(|doc| doc.cost));
        assert_eq!(cost(Family::Context), 0);
        assert_eq!(cost(Family::Complexity), 3);
        assert_eq!(cost(Family::Pii), UNSUPPORTED_COST);
    }
}
