//! What is wrong with a file, said so that its author can mend it.
//!
//! It knows no file system: the caller names the file and hands its text over when a diagnostic is rendered.
//!
//! **Invariant:** a rendered diagnostic never shows a credential, also when it points at the line that holds one.

pub mod code;
mod pages;

pub use pages::{DIAGNOSTIC_CODES, DiagnosticCode};

use crate::Place;
use std::fmt::Write as _;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file cannot be served.
    Error,
    /// The file can be served; something in it has no effect, or not the likely one.
    Warning,
}

impl Severity {
    /// The word in front of a rendered diagnostic.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem of a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable kebab word, one of [`DIAGNOSTIC_CODES`].
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Where.
    pub place: Place,
    /// The same place as a dotted path, such as `routing.decisions[2].rules.conditions[0].name`; empty for the file.
    pub path: String,
}

/// Keys whose value is never shown.
const SECRET_KEYS: [&str; 5] = ["api_key", "password", "access_key", "auth_token", "Authorization"];

/// Whether the value at that path is never shown.
pub(crate) fn is_secret_path(path: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or_default();
    SECRET_KEYS.iter().any(|secret| key.starts_with(secret))
}

/// Characters of a line that are shown.
const SHOWN_CHARACTERS: usize = 160;

impl Diagnostic {
    /// The diagnostic as text for people: message, place, the line with a caret, help.
    ///
    /// `file` is the name to show; `source` is the text that was read.
    #[must_use]
    pub fn render(&self, file: &str, source: &str) -> String {
        let Place { line, column } = self.place;
        let mut out = format!("{}[{}]: {}\n", self.severity.as_str(), self.code, self.message);
        let gutter = line.to_string().len();
        let _ = writeln!(out, "{:gutter$}--> {file}:{line}:{column}", "");
        if let Some(text) = line.checked_sub(1).and_then(|at| source.lines().nth(at)) {
            let above = line.checked_sub(2).and_then(|at| source.lines().nth(at));
            let text = if self.is_about_secret() || above.is_some_and(opens_secret) {
                let kept = text.chars().take_while(|c| c.is_whitespace()).chain("***".chars());
                kept.collect()
            } else {
                without_secrets(text)
            };
            let text: String = text.chars().take(SHOWN_CHARACTERS).collect();
            let indent = column.saturating_sub(1).min(text.chars().count());
            let _ = writeln!(out, "{:gutter$} |", "");
            let _ = writeln!(out, "{line} | {text}");
            let carets = "^".repeat(word_length(text.chars().skip(indent)));
            let _ = writeln!(out, "{:gutter$} | {:indent$}{carets}", "", "");
        }
        if !self.path.is_empty() {
            let _ = writeln!(out, "{:gutter$} = path: {}", "", self.path);
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{:gutter$} = help: {help}", "");
        }
        out
    }

    /// Whether the place is a credential's own, or one where a credential is often put by mistake.
    fn is_about_secret(&self) -> bool {
        let key = self.path.rsplit('.').next().unwrap_or_default();
        SECRET_KEYS.contains(&key) || key == "api_key_env"
    }
}

/// How many characters the word or quoted text has that begins here; 1 where there is none.
fn word_length(mut rest: impl Iterator<Item = char>) -> usize {
    let length = match rest.next() {
        Some(quote @ ('"' | '\'')) => 2 + rest.take_while(|c| *c != quote).count(),
        Some(_) => 1 + rest.take_while(|c| c.is_alphanumeric() || "_-./".contains(*c)).count(),
        None => 1,
    };
    length.min(SHOWN_CHARACTERS)
}

/// Whether a line ends with a secret key, so that the credential stands on the next one.
fn opens_secret(line: &str) -> bool {
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || "|>+-".contains(c));
    line.strip_suffix(':')
        .is_some_and(|line| SECRET_KEYS.iter().any(|key| line.trim_end_matches(['"', '\'']).ends_with(key)))
}

/// The line, with what follows a secret key replaced by `***`; a lone `${NAME}` stays. Tabs become spaces, so
/// that the caret stands where it should.
fn without_secrets(line: &str) -> String {
    let line = line.replace('\t', " ");
    for key in SECRET_KEYS {
        for (at, _) in line.match_indices(key) {
            let (head, tail) = line.split_at(at + key.len());
            let Some((between, value)) = tail.split_once(':') else {
                continue;
            };
            let is_key = between.chars().all(|c| c.is_whitespace() || c == '"' || c == '\'');
            if is_key && !value.trim().is_empty() && !is_variable(value.trim()) {
                return format!("{head}{between}: ***");
            }
        }
    }
    line
}

/// Whether the text is one `${NAME}` and nothing else.
pub(crate) fn is_variable(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'']);
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(is_variable_name)
}

/// Whether the text can name an environment variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
