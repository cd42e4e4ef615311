//! The list of problems that one reading gathers.
//!
//! It knows nothing of the file's shape. **Invariant:** nothing that was reported is lost, and the result is sorted
//! by place, whatever order the readers went in.

use crate::{Diagnostic, Place, Severity};
use std::cell::RefCell;

/// Gathers diagnostics behind a shared reference, so that every reader can speak without owning it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    list: RefCell<Vec<Diagnostic>>,
}

impl Report {
    /// Adds one.
    pub(crate) fn push(&self, diagnostic: Diagnostic) {
        self.list.borrow_mut().push(diagnostic);
    }

    /// Adds an error.
    pub(crate) fn error(
        &self,
        code: &'static str,
        place: Place,
        path: &str,
        message: String,
        help: Option<String>,
    ) {
        self.push(Diagnostic {
            severity: Severity::Error,
            code,
            message,
            help,
            place,
            path: path.to_owned(),
        });
    }

    /// Whether there is any error yet.
    pub(crate) fn has_errors(&self) -> bool {
        self.list.borrow().iter().any(|d| d.severity == Severity::Error)
    }

    /// All of them, by place; what two readers said alike is said once.
    pub(crate) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        list.sort_by(|a, b| {
            (a.place, a.severity, a.code, &a.message).cmp(&(b.place, b.severity, b.code, &b.message))
        });
        list.dedup();
        list
    }
}
