//! Statements of an answer, and whether material supports them.
//!
//! It knows texts, no model and no policy. **Invariant:** a statement without a content word or number is never supported.
//!
//! Source: support by shared words ([`KnownText`]), which is weak evidence.

use chorus_cache::guard::sentences_by;
use chorus_collab::fusion::{KnownText, Support};
use chorus_wire::{ChatReply, ChatRequest, Role};

/// Share of a statement's content words that one sentence of the material must hold: more than half, so that of two
/// words both must be there. On the safe side, not fitted to data.
const SUPPORTED: f64 = 0.7;
/// Share of them from which a sentence that disagrees in a number or a negation contradicts the statement.
const CONTRADICTED: f64 = 0.5;

/// The text of every choice; each must hold.
pub(crate) fn texts(reply: &ChatReply) -> String {
    let choices: Option<Vec<serde_json::Value>> = reply.body().read("choices").ok().flatten();
    let of = |choice: &serde_json::Value| {
        choice.pointer("/message/content").and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    let all: Vec<String> = choices.iter().flatten().filter_map(of).collect();
    if all.is_empty() { reply.content.clone() } else { all.join("\n") }
}

/// What no model wrote, without the questions that it was asked for.
pub(crate) fn material(ask: &ChatRequest) -> String {
    let texts = ask.messages().iter().filter(|it| it.role != Role::Assistant && it.role != Role::System);
    let all = texts.flat_map(|it| statements(&it.text)).filter(|it| !it.ends_with(['?', '？']));
    all.collect::<Vec<_>>().join("\n")
}

/// Whether that support carries a statement.
pub(crate) fn is_supported(support: Support) -> bool {
    support.entailed >= SUPPORTED && support.contradicted < CONTRADICTED
}

/// Statements that no sentence of the material supports.
pub(crate) fn unsupported(claims: &[String], material: &KnownText) -> Vec<String> {
    claims.iter().filter(|claim| !is_supported(material.support(claim))).cloned().collect()
}

/// Sentences, and lines, of a text.
pub(crate) fn statements(text: &str) -> Vec<String> {
    sentences_by(text, &['.', '!', '?']).into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::Message;

    const MATERIAL: &str = "The bridge was opened in 1932. It spans the harbour of Sydney.";

    #[test]
    fn what_the_material_says_is_supported_and_nothing_else() {
        for (claim, is_supported) in [
            ("The bridge was opened in 1932.", true),
            ("The bridge was opened in 1950.", false),
            ("The bridge was not opened in 1932.", false),
            ("Penguins live in Antarctica.", false),
            ("A penguin opened it.", false),
            ("Yes.", false),
        ] {
            let left = unsupported(&[claim.to_owned()], &KnownText::of(MATERIAL));
            assert_eq!(left.is_empty(), is_supported, "{claim}");
        }
        assert_eq!(unsupported(&["The bridge was opened in 1932.".to_owned()], &KnownText::of("")).len(), 1);
    }

    #[test]
    fn a_question_is_no_material_and_neither_is_what_a_model_wrote() {
        let ask = ChatRequest::new(
            "m",
            vec![
                Message::new(Role::System, "Rules of the house apply."),
                Message::new(Role::Tool, "The bridge was opened in 1932."),
                Message::new(Role::Assistant, "It was painted green."),
                Message::new(Role::User, "It spans the harbour. Was the bridge painted green in 1950?"),
            ],
        );
        assert_eq!(material(&ask), "The bridge was opened in 1932.\nIt spans the harbour.");
    }

    #[test]
    fn sentences_end_where_a_blank_follows() {
        let text = "It is 3.5 m high. Is it?\n---\n- Yes!";
        assert_eq!(statements(text), ["It is 3.5 m high.", "Is it?", "- Yes!"]);
    }
}
