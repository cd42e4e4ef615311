//! Usable answers of the panel, and which of them say the same.

use crate::calls::{CallFault, FaultKind, Reply};
use crate::salvage::split_thinking;

/// One seat's usable answer.
#[derive(Debug)]
pub(crate) struct Survivor {
    /// Its seat.
    pub(crate) seat: usize,
    /// What judge and writer are shown: the text without a reasoning block; the reasoning where there is no text.
    pub(crate) text: String,
    /// The reasoning, where there is also a text.
    pub(crate) reasoning: Option<String>,
    /// The whole reply.
    pub(crate) reply: Reply,
}

impl Survivor {
    /// Takes a reply if it says anything (case G01).
    ///
    /// # Errors
    /// [`FaultKind::Empty`]: blank, or tool calls only, although no tools were offered.
    pub(crate) fn new(seat: usize, reply: Reply) -> Result<Self, CallFault> {
        let (thought, text) = split_thinking(&reply.reply.content);
        let reasoning = reply.reply.reasoning.as_deref().or(thought).map(str::trim).filter(|r| !r.is_empty());
        let (text, reasoning) = match (text, reasoning) {
            ("", None) => {
                let public = "the model gave an answer without text".to_owned();
                return Err(CallFault { kind: FaultKind::Empty, public, status: None });
            }
            ("", Some(reasoning)) => (reasoning.to_owned(), None),
            (text, reasoning) => (text.to_owned(), reasoning.map(str::to_owned)),
        };
        Ok(Self { seat, text, reasoning, reply })
    }
}

/// What two answers must share to count as the same: words and their order, but not white space, outer quotes and
/// emphasis, or a final stop. Case counts only where there are digits: 10 MB is not 10 Mb. A sign counts: 5 is not −5.
pub(crate) fn sameness(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let outer = |c: char| c.is_whitespace() || "\"'`*“”„‘’«»".contains(c);
    let end = |c: char| outer(c) || ".,;:。".contains(c);
    let core = words.trim_start_matches(outer).trim_end_matches(end);
    if core.contains(|c: char| c.is_ascii_digit()) { core.to_owned() } else { core.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g28_formatting_is_no_disagreement() {
        for (one, other, same) in [
            ("42", "42.", true),
            ("**Paris**", "paris.", true),
            ("\"Yes\"", "yes", true),
            ("a\n\n  b", "a b", true),
            ("5", "-5", false),
            ("10 MB", "10 Mb", false),
            ("5", "5!", false),
            ("Paris", "Rome", false),
            ("...", "", true),
        ] {
            assert_eq!(sameness(one) == sameness(other), same, "{one} / {other}");
        }
    }
}
