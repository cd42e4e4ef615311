//! The texts of a request that may hold an attempt, and who wrote each.
//!
//! The operator's own words (system, developer) are never looked at: they may well quote what they forbid (E12). What a
//! user pasted between tags that name a source counts as retrieved. It knows no rule.
//!
//! **Invariant:** a text that occurs twice from one source is looked at once; without history only the last user
//! message and what came after it counts.

use crate::subject::Subject;
use chorus_wire::{Message, Role};

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// The user.
    User,
    /// A model, in an earlier turn.
    Assistant,
    /// A tool.
    Tool,
    /// A document that somebody put before the model.
    Retrieved,
}

impl Provenance {
    /// Its name in explanations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Retrieved => "retrieved",
        }
    }

    /// Whether nobody in the conversation wrote it: data, which has no business giving orders.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Tool | Self::Retrieved)
    }
}

/// A text and who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) provenance: Provenance,
    pub(super) text: &'a str,
}

/// Tags that name a source.
const SOURCES: &[&str] = &[
    "attachment",
    "context",
    "document",
    "documents",
    "email",
    "file",
    "page",
    "passage",
    "retrieved",
    "search_result",
    "search_results",
    "source",
    "sources",
    "tool_output",
    "tool_result",
    "web_page",
    "webpage",
];

/// The texts of a request that count, oldest first.
pub(super) fn segments<'a>(subject: &Subject<'a>, history: bool) -> Vec<Segment<'a>> {
    let messages = subject.messages();
    let last = messages.iter().rposition(|message| message.role == Role::User).unwrap_or_default();
    let mut found: Vec<Segment<'a>> = Vec::new();
    for message in messages.iter().skip(if history { 0 } else { last }) {
        for segment in of_message(message, history) {
            if !segment.text.trim().is_empty() && !found.contains(&segment) {
                found.push(segment);
            }
        }
    }
    found
}

fn of_message(message: &Message, history: bool) -> Vec<Segment<'_>> {
    let text = message.text.as_str();
    match &message.role {
        Role::User => of_user(text),
        Role::Assistant if history => vec![Segment { provenance: Provenance::Assistant, text }],
        Role::System | Role::Developer | Role::Assistant => Vec::new(),
        Role::Tool | Role::Other(_) => vec![Segment { provenance: Provenance::Tool, text }],
    }
}

/// What a user wrote, and what the user pasted between tags of [`SOURCES`]; an open tag reaches to the end.
fn of_user(text: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((own, inner, after)) = next_source(rest) {
        found.push(Segment { provenance: Provenance::User, text: own });
        found.push(Segment { provenance: Provenance::Retrieved, text: inner });
        rest = after;
    }
    found.push(Segment { provenance: Provenance::User, text: rest });
    found
}

/// The text before the first source, the source, and the text after it.
fn next_source(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find('<').map(|at| from + at) {
        from = at + 1;
        let tag = text.get(from..)?;
        let name = tag.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
        let Some(source) = SOURCES.iter().find(|source| source.eq_ignore_ascii_case(name)) else {
            continue;
        };
        let Some((_, inner)) = tag.split_once('>') else { continue };
        let (inner, after) = closed(inner, source);
        return Some((text.get(..at)?, inner, after));
    }
    None
}

fn closed<'t>(text: &'t str, tag: &str) -> (&'t str, &'t str) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("</")).map(|at| from + at) {
        let name = text.get(at + 2..).unwrap_or_default();
        if name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)) {
            let after = name.split_once('>').map_or("", |(_, after)| after);
            return (text.get(..at).unwrap_or(text), after);
        }
        from = at + 2;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::ChatRequest;

    fn found(turns: &[(Role, &str)], history: bool) -> Vec<(Provenance, String)> {
        let messages = turns.iter().map(|(role, text)| Message::new(role.clone(), text)).collect();
        let request = ChatRequest::new("m", messages);
        let subject = Subject::of(&request);
        segments(&subject, history).iter().map(|s| (s.provenance, s.text.to_owned())).collect()
    }

    #[test]
    fn e12_the_operators_words_are_not_looked_at() {
        let turns = [(Role::System, "a"), (Role::Developer, "b"), (Role::User, "hello")];
        for history in [false, true] {
            assert_eq!(found(&turns, history), [(Provenance::User, "hello".to_owned())]);
        }
    }

    #[test]
    fn e02_history_is_all_roles_each_text_once() {
        let turns = [
            (Role::User, "one"),
            (Role::Assistant, "two"),
            (Role::Tool, "three"),
            (Role::User, "one"),
            (Role::Tool, "four"),
        ];
        let names = |history| found(&turns, history).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(names(true), ["one", "two", "three", "four"]);
        assert_eq!(names(false), ["one", "four"]);
    }

    #[test]
    fn pasted_sources_are_retrieved_text() {
        use Provenance::{Retrieved, User};
        let cases: [(&str, &[(Provenance, &str)]); 5] = [
            (
                "Sum up <Document id=\"1\">the text</document> please",
                &[(User, "Sum up "), (Retrieved, "the text"), (User, " please")],
            ),
            ("<context>no end", &[(Retrieved, "no end")]),
            ("a <b>bold</b> 1 < 2", &[(User, "a <b>bold</b> 1 < 2")]),
            ("<file>x</filex", &[(Retrieved, "x")]),
            ("<page", &[(User, "<page")]),
        ];
        for (text, want) in cases {
            let want: Vec<_> = want.iter().map(|(from, text)| (*from, (*text).to_owned())).collect();
            assert_eq!(found(&[(Role::User, text)], false), want, "{text}");
        }
    }
}
