//! Why a change of configuration was refused.

use chorus_spec::{Diagnostic, Digest, MASK, Severity};
use std::io;

/// Why a change of configuration was refused. Whatever it was, what is served goes on.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The file, or a version, cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The text has errors.
    #[error("{}", summary(.0))]
    Rejected(Vec<Diagnostic>),
    /// The text is good, and something that it needs is not there.
    #[error("it cannot be made ready: {0}")]
    Unready(String),
    /// The change is based on something that is not served any more; the digest of what is.
    #[error("what is served has changed meanwhile; it is {0} now")]
    Stale(Digest),
    /// There is no file behind what is served, or no place for versions.
    #[error(
        "this process has no file that it could write: it serves a built-in configuration or a policy, or keeps no versions"
    )]
    NotWritable,
    /// The file was edited by somebody else and is not served.
    #[error("the file has been edited and is not what is served; load it (SIGHUP) or mend it first")]
    FileDiffers,
    /// A mask stands where a credential must.
    #[error("`{MASK}` stands for a credential that was not shown, at {}; write `${{NAME}}`, or patch the rest", .0.join(", "))]
    Masked(Vec<String>),
    /// No such version is kept, or none that differs from what is served.
    #[error("{}", no_version(*.0))]
    NoVersion(Option<u64>),
    /// This process tries no candidates.
    #[error("this process tries no candidates")]
    NoRollouts,
    /// Nothing is being rolled out.
    #[error("nothing is being rolled out")]
    NoRollout,
    /// A candidate has been promoted: it must be taken back, or what is served must be loaded anew, before another is tried.
    #[error("a candidate has been promoted; take it back, or serve it for good, before another one is tried")]
    RolloutStands,
    /// The file or the version cannot be written.
    #[error("it cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

impl Refusal {
    /// What is wrong with the text, where that is why.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Rejected(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let first = errors.next();
    let others = errors.count();
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    first.map_or_else(
        || "it does not load".to_owned(),
        |d| format!("line {}: {}{more}", d.place.line, d.message),
    )
}

fn no_version(asked: Option<u64>) -> String {
    match asked {
        Some(number) => format!("no version {number} is kept"),
        None => "no version is kept that differs from what is served".to_owned(),
    }
}
