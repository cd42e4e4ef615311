//! What a policy says of itself: questions, and the routes that they must reach.
//!
//! It knows no engine; who has one asks it. **Invariant:** the route of a case is one of its recipe's.

use crate::Place;

/// One line of a `TEST` block: a question, and the route that it must reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// The block's name.
    pub test: String,
    /// The recipe that is asked; `None` for the default one.
    pub recipe: Option<String>,
    /// What the user says.
    pub query: String,
    /// The name of the decision that must win.
    pub route: String,
    /// Where the case was written.
    pub place: Place,
}
