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

/// Every name that `pii_types_allowed` takes: the contract's 17 types, the further ones that are recognised, and the
/// broader names `LOCATION`, `URL` and `SECRET`. Letters of either case. Source: contract §1.4 (`pii`); Presidio.
pub const PII_TYPES: [&str; 47] = [
    "AGE",
    "CREDIT_CARD",
    "DATE_TIME",
    "DOMAIN_NAME",
    "EMAIL_ADDRESS",
    "GPE",
    "IBAN_CODE",
    "IP_ADDRESS",
    "NRP",
    "ORGANIZATION",
    "PERSON",
    "PHONE_NUMBER",
    "STREET_ADDRESS",
    "TITLE",
    "US_DRIVER_LICENSE",
    "US_SSN",
    "ZIP_CODE",
    "MAC_ADDRESS",
    "US_ITIN",
    "US_PASSPORT",
    "US_BANK_NUMBER",
    "ABA_ROUTING_NUMBER",
    "US_NPI",
    "MEDICAL_LICENSE",
    "UK_NHS",
    "UK_NINO",
    "DE_TAX_ID",
    "FR_NIR",
    "ES_NIF",
    "ES_NIE",
    "IT_FISCAL_CODE",
    "PL_PESEL",
    "IN_AADHAAR",
    "IN_PAN",
    "CA_SIN",
    "AU_TFN",
    "BR_CPF",
    "CN_ID",
    "SE_PERSONNUMMER",
    "CRYPTO",
    "API_KEY",
    "PRIVATE_KEY",
    "JWT",
    "PASSWORD",
    "SECRET",
    "LOCATION",
    "URL",
];
