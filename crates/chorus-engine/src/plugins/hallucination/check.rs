//! The check itself: material, statements, and what is found.
//!
//! It knows texts and the served encoder, no action. **Invariant:** its cost is bounded by the constants below; what is
//! beyond them is `Unchecked`, not unsupported.

use crate::ground::claims;
use crate::loopers::by_meaning;
use crate::mom::Mom;
use chorus_collab::fusion::{KnownText, SupportScorer};
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Most statements that are looked at.
const MOST_STATEMENTS: usize = 256;
/// Most statements that a remark quotes.
const MOST_QUOTED: usize = 5;
/// Most characters of a quoted statement.
const MOST_QUOTED_CHARS: usize = 200;
/// Most bytes of material.
const MOST_MATERIAL_BYTES: usize = 2 << 20;
/// Most sentences that are compared by meaning, those of the answer included.
const MOST_COMPARED: usize = 500;
/// How long the check may take.
const CHECK_TIME: Duration = Duration::from_secs(5);
/// Words with content that a statement has at least; less states nothing that can be held against a text.
const LEAST_WORDS: usize = 2;

/// What an answer is held against.
#[derive(Debug)]
pub(super) struct Material {
    /// What tools returned and what was retrieved.
    has_documents: bool,
    /// That, and what the user states.
    text: String,
}

impl Material {
    /// Of a request as models got it, and of what was retrieved for it wherever in it that stands.
    pub(super) fn of(request: &ChatRequest, retrieved: &[String]) -> Self {
        let is_result = |it: &Message| it.role == Role::Tool && !it.text.trim().is_empty();
        let has_documents = !retrieved.is_empty() || request.messages().iter().any(is_result);
        let mut text = if has_documents { claims::material(request) } else { String::new() };
        for retrieved in retrieved {
            text.push('\n');
            text.push_str(retrieved);
        }
        Self { has_documents, text }
    }

    /// Whether there is anything to hold an answer against.
    pub(super) fn is_there(&self) -> bool {
        self.has_documents
    }
}

/// What is found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Finding {
    /// It has no statement: a tool call, a question back.
    NothingStated,
    /// All statements are supported.
    Supported { statements: usize, by: &'static str },
    /// Some are not.
    Unsupported { statements: usize, by: &'static str, left: Vec<String> },
    /// Facts are asked for, and there is no material.
    Unverified,
    /// There is no material, and no facts are asked for.
    NotFactual,
    /// It could not be told, and why.
    Unchecked(&'static str),
}

/// For the record; it holds no word of the answer.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    /// What was found, in one word.
    verdict: &'static str,
    /// Whether the answer was held until it had been checked.
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    statements: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<usize>,
    /// `words` or `meaning`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

impl Finding {
    pub(super) fn trace(&self, held: bool) -> Trace {
        let verdict = match self {
            Self::NothingStated => "nothing_stated",
            Self::Supported { .. } => "supported",
            Self::Unsupported { .. } => "unsupported",
            Self::Unverified => "unverified_factual",
            Self::NotFactual => "not_factual",
            Self::Unchecked(_) => "unchecked",
        };
        let bare = Trace { verdict, held, statements: None, unsupported: None, by: None, why: None };
        match self {
            Self::Supported { statements, by } => {
                Trace { statements: Some(*statements), unsupported: Some(0), by: Some(by), ..bare }
            }
            Self::Unsupported { statements, by, left } => {
                Trace { statements: Some(*statements), unsupported: Some(left.len()), by: Some(by), ..bare }
            }
            Self::Unchecked(why) => Trace { why: Some(why), ..bare },
            _ => bare,
        }
    }

    /// The line in front of the answer, where there is something to say.
    pub(super) fn remark(&self, details: bool) -> Option<String> {
        match self {
            Self::Unsupported { statements, left, .. } => {
                let mut text = format!(
                    "> Note: the sources of this conversation do not support {} of the {statements} statements below.\n",
                    left.len()
                );
                for statement in left.iter().take(if details { MOST_QUOTED } else { 0 }) {
                    let quoted: String = statement.chars().take(MOST_QUOTED_CHARS).collect();
                    text.push_str(&format!("> - {quoted}\n"));
                }
                text.push('\n');
                Some(text)
            }
            Self::Unverified => {
                Some("> Note: nothing in this conversation confirms the facts stated below.\n\n".to_owned())
            }
            _ => None,
        }
    }
}

/// What an answer states: no questions, no code, nothing without content.
pub(super) fn statements_of(reply: &ChatReply) -> Vec<String> {
    let mut all = claims::statements(&without_code(&claims::texts(reply)));
    all.retain(|it| !it.ends_with(['?', '？']) && has_content(it));
    all.truncate(MOST_STATEMENTS);
    all
}

/// The text without fenced code.
fn without_code(text: &str) -> String {
    let mut in_code = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if !in_code && !is_fence {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn has_content(statement: &str) -> bool {
    let words = statement.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let counts = |word: &&str| {
        word.chars().count() >= 4 || !word.is_ascii() || word.starts_with(|c: char| c.is_ascii_digit())
    };
    // Scripts without spaces run many words together.
    let least = if statement.is_ascii() { LEAST_WORDS } else { 1 };
    words.filter(counts).count() >= least
}

/// Holds statements against material.
pub(super) async fn against(
    material: &Material,
    statements: Vec<String>,
    mom: &Arc<Mom>,
    wants_meaning: bool,
) -> Finding {
    if material.text.len() > MOST_MATERIAL_BYTES {
        return Finding::Unchecked("there is more material than is looked through");
    }
    let checked = async {
        let count = statements.len();
        let text = material.text.clone();
        let words = tokio::task::spawn_blocking(move || {
            let known = KnownText::of(&text);
            claims::unsupported(&statements, &known)
        });
        let left = words.await.ok()?;
        let scorer = if wants_meaning && !left.is_empty() { by_meaning(mom) } else { None };
        let (left, by) = match scorer {
            Some(scorer) => (unlike(left, &material.text, &scorer).await, "meaning"),
            None => (left, "words"),
        };
        Some(if left.is_empty() {
            Finding::Supported { statements: count, by }
        } else {
            Finding::Unsupported { statements: count, by, left }
        })
    };
    let checked = tokio::time::timeout(CHECK_TIME, checked).await;
    checked.ok().flatten().unwrap_or(Finding::Unchecked("the check did not end in time"))
}

/// Those of the statements that no sentence of the material means.
async fn unlike(left: Vec<String>, material: &str, scorer: &impl SupportScorer) -> Vec<String> {
    let mut known = claims::statements(material);
    known.truncate(MOST_COMPARED.saturating_sub(left.len()));
    let known = known.join("\n");
    let texts: Vec<&str> = left.iter().map(String::as_str).chain([known.as_str()]).collect();
    let Some(read) = scorer.reading(texts).await else { return left };
    let means = |it: &String| read.support(it, &known).is_some_and(claims::is_supported);
    left.iter().filter(|it| !means(it)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tool: &str) -> ChatRequest {
        ChatRequest::new(
            "m",
            vec![
                Message::new(Role::System, "Answer from the register."),
                Message::new(Role::User, "When was the bridge opened?"),
                Message::new(Role::Tool, tool),
            ],
        )
    }

    #[test]
    fn what_tools_return_is_material_and_an_operators_word_is_not() {
        let material = Material::of(&request("The bridge was opened in 1932."), &[]);
        assert!(material.is_there());
        assert_eq!(material.text, "The bridge was opened in 1932.");
        assert!(!Material::of(&request(" "), &[]).is_there());
        let retrieved = Material::of(&request(" "), &["It is painted grey.".to_owned()]);
        assert!(retrieved.is_there() && retrieved.text.contains("painted grey"));
    }

    #[test]
    fn questions_code_and_fillers_state_nothing() {
        let text = "Sure!\nThe bridge opened in 1932. Shall I look further?\n```\nlet opened = 1950;\n```\n橋は1932年に開通した。";
        let reply = ChatReply::text("", "m", 0, text);
        assert_eq!(statements_of(&reply), ["The bridge opened in 1932.", "橋は1932年に開通した。"]);
        assert!(statements_of(&ChatReply::text("", "m", 0, "")).is_empty());
    }

    #[test]
    fn a_remark_counts_and_quotes_within_its_bounds() {
        let left: Vec<String> = (0..9).map(|n| format!("{n} {}", "x".repeat(500))).collect();
        let finding = Finding::Unsupported { statements: 12, by: "words", left };
        let remark = finding.remark(true).unwrap();
        assert!(remark.contains("9 of the 12") && remark.matches("> - ").count() == MOST_QUOTED);
        assert!(remark.lines().all(|line| line.chars().count() < MOST_QUOTED_CHARS + 10));
        assert_eq!(finding.remark(false).unwrap().matches("> - ").count(), 0);
        assert_eq!(Finding::Unchecked("x").remark(true), None);
    }

    #[test]
    fn a_trace_has_no_word_of_the_answer() {
        let finding =
            Finding::Unsupported { statements: 2, by: "words", left: vec!["Secret words.".to_owned()] };
        let trace = serde_json::to_string(&finding.trace(true)).unwrap();
        assert_eq!(
            trace,
            r#"{"verdict":"unsupported","held":true,"statements":2,"unsupported":1,"by":"words"}"#
        );
    }
}
