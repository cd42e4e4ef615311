//! One row of the table of selectors. It knows no selector; each selector's file fills its own row.

/// What a person should know about a selector.
#[derive(Debug, Clone, Copy)]
pub struct SelectorDoc {
    /// The contract's type word.
    pub kind: &'static str,
    /// What it does, in a paragraph.
    pub what: &'static str,
    /// When to use it, and when not.
    pub when: &'static str,
    /// Its parameters: key, meaning, default.
    pub parameters: &'static [(&'static str, &'static str, &'static str)],
    /// What a choice costs.
    pub cost: &'static str,
    /// When it cannot choose, or is known to err.
    pub fails_when: &'static str,
    /// Where the method comes from, and what is different here.
    pub source: &'static str,
    /// A decision that uses it: YAML of `algorithm`.
    pub example: &'static str,
}
