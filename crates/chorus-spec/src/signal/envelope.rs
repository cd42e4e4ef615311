//! Signals that read what comes beside the words: the request's `metadata`.

/// An event that an application reports in `metadata`.
#[derive(Debug, Clone)]
pub struct EventSignal {
    /// Types that count; any when empty.
    pub event_types: Vec<String>,
    /// Severities that count (`critical`, `high`, `medium`, `low`); any when empty.
    pub severities: Vec<String>,
    /// Action codes that count; any when empty.
    pub action_codes: Vec<String>,
    /// Whether the event must carry a time.
    pub temporal: bool,
}

/// A key of the request's `metadata`, which is the client's word and proves nothing.
#[derive(Debug, Clone)]
pub struct MetadataSignal {
    /// The key.
    pub key: String,
    /// What its value must satisfy.
    pub predicate: MetadataPredicate,
}

/// What a value of `metadata` must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataPredicate {
    /// It is this text.
    Equals(String),
    /// It is one of these.
    In(Vec<String>),
    /// It is there (`true`) or not (`false`).
    Exists(bool),
}
