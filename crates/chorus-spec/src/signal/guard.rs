//! Signals that guard: who asks, what must not leave, what tries to take over.

/// A role that the caller holds. It emits the role's name.
///
/// Identity comes from headers of a trusted proxy or from an API key, never from a client's own header.
#[derive(Debug, Clone)]
pub struct AuthzSignal {
    /// The role.
    pub role: String,
    /// Who holds it; at least one.
    pub subjects: Vec<RoleSubject>,
}

/// Who holds a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleSubject {
    /// A user, by id.
    User(String),
    /// A group, by name.
    Group(String),
}

/// An attempt to take over the model.
#[derive(Debug, Clone)]
pub struct JailbreakSignal {
    /// How it is looked for.
    pub method: JailbreakMethod,
    /// Least score in 0..=1; `None` is the module's threshold (`Global::prompt_guard_threshold`).
    pub threshold: Option<f64>,
    /// Also look at the turns before.
    pub include_history: bool,
    /// Examples of attempts, for the contrastive method; the built-in ones when empty.
    pub jailbreak_patterns: Vec<String>,
    /// Examples of harmless requests, for the contrastive method; the built-in ones when empty.
    pub benign_patterns: Vec<String>,
}

/// How an attempt is looked for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum JailbreakMethod {
    /// The trained head and rule families.
    #[default]
    Classifier,
    /// Nearer to known attempts than to harmless requests.
    Contrastive,
    /// Either of them.
    Hybrid,
}

/// Personal data or secrets that the route does not allow.
#[derive(Debug, Clone)]
pub struct PiiSignal {
    /// Least confidence of a finding in 0..=1; `None` is the module's threshold (`Global::pii_threshold`).
    pub threshold: Option<f64>,
    /// Types that may pass, by the contract's names (`EMAIL_ADDRESS`, …).
    pub allowed: Vec<String>,
    /// Also look at the turns before.
    pub include_history: bool,
}
