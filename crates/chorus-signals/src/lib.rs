//! What can be said about a request: one file a signal.
//!
//! An [`Extractor`] is prepared once for a recipe; for each request it answers the asks of the policy with
//! observations. Heuristic families read text and counts; the learned ones share one encoder pass a text. It knows no
//! decision and no HTTP, and calls no model: where a rule asks one, it hands out a [`Question`].
//!
//! **Invariant:** a signal that could not run is `Absent` with its reason, never "no", and never a panic.

mod approximate;
pub mod authz;
mod bank;
mod calibration;
mod caller;
pub mod classifier;
pub mod complexity;
pub mod context;
pub mod conversation;
mod doc;
pub mod domain;
pub mod embedding;
mod english;
mod equipment;
pub mod event;
pub mod extractor;
pub mod fact_check;
mod fault;
pub mod feedback_words;
pub mod jailbreak;
pub mod kb;
pub mod keyword;
mod knowledge;
pub mod language;
mod lexicon;
mod literal;
pub mod manual;
mod measure;
pub mod metadata;
pub mod modality;
mod modality_words;
mod pass;
pub mod pii;
mod predicate;
pub mod preference;
mod prepare;
pub mod reask;
pub mod structure;
pub mod subject;
mod text;
pub mod user_feedback;
mod worded;

#[cfg(test)]
mod fake;

pub use calibration::Calibration;
pub use caller::{Caller, Voucher};
pub use classifier::Question;
pub use doc::SignalDoc;
pub use equipment::{Equipment, Heads, Vocabulary};
pub use extractor::{Extractor, Timing};
pub use fault::{PrepareFault, Problem};
pub use knowledge::{Folders, KnowledgeUse};
pub use language::language_of;
pub use pass::{Encoded, PASS_BYTES, SharedPass};
pub use subject::Subject;

use chorus_spec::{ClassifierKind, Family, Recipe, Signal, SignalKind};

/// Every signal that this version runs, cheapest first: the source of docs, `--help` and console text.
pub const ALL: &[SignalDoc] = &[
    authz::DOC,
    context::DOC,
    conversation::DOC,
    metadata::DOC,
    event::DOC,
    keyword::DOC,
    structure::DOC,
    language::DOC,
    pii::DOC,
    embedding::DOC,
    domain::DOC,
    complexity::DOC,
    kb::DOC,
    preference::DOC,
    reask::DOC,
    classifier::DOC,
    fact_check::DOC,
    user_feedback::DOC,
    modality::DOC,
    jailbreak::DOC,
];

/// The cost tier of a family that this version does not run.
pub const UNSUPPORTED_COST: u8 = 9;

/// What a family costs, as a tier: 0 free, 1 cheap, 2 some tens of microseconds, 3 an encoder pass,
/// [`UNSUPPORTED_COST`] not supported.
#[must_use]
pub fn cost(family: Family) -> u8 {
    ALL.iter().find(|doc| doc.family == family).map_or(UNSUPPORTED_COST, |doc| doc.cost)
}

/// The cost tier of a family that asks a model: after everything that this process answers itself.
pub const MODEL_COST: u8 = 6;

/// The tier of families that cost less than another look at what is known would: they are asked together.
const CHEAP: u8 = 1;

/// [`cost`] in a recipe, as a policy asks: what is free and what is cheap together, and classifiers last where one of them
/// asks a model.
pub fn cost_in(recipe: &Recipe) -> impl Fn(Family) -> u8 {
    let asks_a_model = recipe.signals.iter().any(asks_a_model);
    move |family| match family {
        Family::Classifier if asks_a_model => MODEL_COST,
        _ => cost(family).max(CHEAP),
    }
}

/// Whether a rule is answered by a model.
fn asks_a_model(signal: &Signal) -> bool {
    matches!(&signal.kind, SignalKind::Classifier(rule) if matches!(rule.kind, ClassifierKind::Llm { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_each_file_says() {
        let files = [
            include_str!("authz.rs"),
            include_str!("context.rs"),
            include_str!("conversation.rs"),
            include_str!("metadata.rs"),
            include_str!("event.rs"),
            include_str!("keyword.rs"),
            include_str!("structure.rs"),
            include_str!("language.rs"),
            include_str!("pii.rs"),
            include_str!("embedding.rs"),
            include_str!("domain.rs"),
            include_str!("complexity.rs"),
            include_str!("kb.rs"),
            include_str!("preference.rs"),
            include_str!("reask.rs"),
            include_str!("classifier.rs"),
            include_str!("fact_check.rs"),
            include_str!("user_feedback.rs"),
            include_str!("modality.rs"),
            include_str!("jailbreak.rs"),
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
        assert_eq!(cost(Family::Projection), UNSUPPORTED_COST);
    }
}
