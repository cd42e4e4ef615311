//! What is wrong with a file, said so that its author can mend it.
//!
//! It knows no file system: the caller names the file and hands its text over when a diagnostic is rendered.
//!
//! **Invariant:** a rendered diagnostic never shows a credential, also when it points at the line that holds one.

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

/// Every code a diagnostic can carry, and what it says.
pub const DIAGNOSTIC_CODES: &[(&str, &str)] = &[
    (code::YAML, "The text is not YAML that this reader takes (syntax, size, depth, tags, merge keys)."),
    (code::UNKNOWN_KEY, "The contract has no such key at this place."),
    (code::NOT_SUPPORTED_YET, "The contract has it; this version does not run it."),
    (code::NOT_NEEDED, "It configures machinery that this engine does without."),
    (code::UNUSED, "It is read, and something beside it makes it idle."),
    (code::MISSING_KEY, "A key that must be there is not."),
    (code::WRONG_TYPE, "The value has another shape than the key takes."),
    (code::BAD_VALUE, "The value has the right shape and is not one the key takes."),
    (code::BAD_RANGE, "A number is out of its range, or bounds contradict each other."),
    (code::BAD_PATTERN, "A regular expression does not compile."),
    (code::BAD_RULE, "A node of a rule tree is neither one leaf nor one operator over its children."),
    (code::UNKNOWN_REFERENCE, "A name that nothing in the file declares."),
    (code::DUPLICATE_KEY, "One key stands twice in one mapping."),
    (code::DUPLICATE_NAME, "Two things of one kind share a name."),
    (code::NAME_COLLISION, "A name is taken by an automatic name, a looper or a model."),
    (code::CYCLE, "Scores or composers depend on themselves."),
    (code::RECURSION, "A looper, an automatic name or an entrypoint stands where a model must."),
    (code::NEVER_MATCHES, "A rule, or a part of one, can never match."),
    (code::LITERAL_SECRET, "A credential is written into the file."),
    (code::JUDGE_IS_MEMBER, "The judge also sits on the panel that it judges."),
    (code::SAME_MODEL_TWICE, "Two panel members are one model under two names."),
    (code::TEMPLATE_PLACEHOLDER, "A prompt template lacks a placeholder, so it hides what it should show."),
];

/// The codes, by name.
pub(crate) mod code {
    pub(crate) const YAML: &str = "yaml";
    pub(crate) const UNKNOWN_KEY: &str = "unknown-key";
    pub(crate) const NOT_SUPPORTED_YET: &str = "not-supported-yet";
    pub(crate) const NOT_NEEDED: &str = "not-needed";
    pub(crate) const UNUSED: &str = "unused";
    pub(crate) const MISSING_KEY: &str = "missing-key";
    pub(crate) const WRONG_TYPE: &str = "wrong-type";
    pub(crate) const BAD_VALUE: &str = "bad-value";
    pub(crate) const BAD_RANGE: &str = "bad-range";
    pub(crate) const BAD_PATTERN: &str = "bad-pattern";
    pub(crate) const BAD_RULE: &str = "bad-rule";
    pub(crate) const UNKNOWN_REFERENCE: &str = "unknown-reference";
    pub(crate) const DUPLICATE_KEY: &str = "duplicate-key";
    pub(crate) const DUPLICATE_NAME: &str = "duplicate-name";
    pub(crate) const NAME_COLLISION: &str = "name-collision";
    pub(crate) const CYCLE: &str = "cycle";
    pub(crate) const RECURSION: &str = "recursion";
    pub(crate) const NEVER_MATCHES: &str = "never-matches";
    pub(crate) const LITERAL_SECRET: &str = "literal-secret";
    pub(crate) const JUDGE_IS_MEMBER: &str = "judge-is-member";
    pub(crate) const SAME_MODEL_TWICE: &str = "same-model-twice";
    pub(crate) const TEMPLATE_PLACEHOLDER: &str = "template-placeholder";
}

/// Keys whose value is never shown.
const SECRET_KEYS: [&str; 5] = ["api_key", "password", "access_key", "auth_token", "Authorization"];

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
            let _ = writeln!(out, "{:gutter$} | {:indent$}^", "", "");
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
