//! Why a recipe's signals cannot be prepared. It knows no file format; a place is carried as the spec gives it.
//!
//! **Invariant:** all problems of a recipe come at once.

use chorus_spec::{Diagnostic, Place, Severity, code};
use std::fmt;

/// One rule that cannot be prepared.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The rule's name.
    pub rule: String,
    /// Where it was written.
    pub place: Place,
    /// What is wrong, a sentence for people.
    pub message: String,
}

impl Problem {
    /// The problem as one of the file, for those who show all of them alike.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: code::UNPREPARED,
            message: format!("signal `{}`: {}", self.rule, self.message),
            help: None,
            place: self.place,
            path: String::new(),
        }
    }
}

/// Every rule of a recipe that cannot be prepared; at least one.
#[derive(Debug, Clone, thiserror::Error)]
pub struct PrepareFault {
    /// The problems, in the recipe's order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for PrepareFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let gap = if at == 0 { "" } else { "; " };
            write!(f, "{gap}signal `{}`: {}", problem.rule, problem.message)?;
        }
        Ok(())
    }
}
