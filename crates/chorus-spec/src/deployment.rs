//! How a place is called: its API, its limits, the way to it, and what is done when it fails.
//!
//! It knows no network. Most of it is an extension; the contract's own part is `reliability` (§1.2).

use crate::{ModelId, Template};
use std::time::Duration;

/// What is done when a model's backends fail (`reliability`).
#[derive(Debug, Clone, PartialEq)]
pub struct Reliability {
    /// How a backend is chosen (`lb_policy`).
    pub balance: LoadBalance,
    /// Retries of one call among the model's own backends (`retry_count`, 0..=5); `None` where nothing is written: a
    /// failed call then goes on to another backend, and never twice to the same.
    pub retry_count: Option<u32>,
    /// Which failures are retried: words of [`FAILURE_WORDS`], or statuses.
    pub retry_on: Vec<String>,
    /// Retries for a hundred calls (*extension*: `retry_budget_percent`, default 20).
    pub retry_budget_percent: f64,
    /// Failures in a row that open a backend's circuit (`consecutive_5xx`, default 5).
    pub consecutive_5xx: u32,
    /// How long it stays open the first time (`base_ejection_time`, default 30 s).
    pub base_ejection_time: Duration,
    /// Most backends that may be out at once, in percent (`max_ejection_percent`, default 50).
    pub max_ejection_percent: u32,
    /// Active health checks, where a path is given.
    pub health_check: Option<HealthCheck>,
    /// Models that answer instead once this one has failed, in order (*extension*).
    pub fallback: Vec<ModelId>,
    /// Which failures lead there (*extension*); empty is whatever may go better elsewhere.
    pub fallback_on: Vec<String>,
    /// A second call is made once the first is slower than this percentile (*extension*: `hedge_after_percentile`,
    /// 50..=99.9); `None` never does.
    pub hedge_after_percentile: Option<f64>,
}

impl Default for Reliability {
    fn default() -> Self {
        Self {
            balance: LoadBalance::RoundRobin,
            retry_count: None,
            retry_on: Vec::new(),
            retry_budget_percent: 20.0,
            consecutive_5xx: 5,
            base_ejection_time: Duration::from_secs(30),
            max_ejection_percent: 50,
            health_check: None,
            fallback: Vec::new(),
            fallback_on: Vec::new(),
            hedge_after_percentile: None,
        }
    }
}

/// How a backend is chosen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum LoadBalance {
    /// In turn, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest calls under way, by weight.
    LeastRequest,
}

/// Active health checks of a model's backends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Path at the backend's host; begins with `/`.
    pub path: String,
    /// From one check to the next (default 10 s).
    pub interval: Duration,
    /// How long one may take (default 2 s).
    pub timeout: Duration,
}

/// The words of `retry_on` and `fallback_on`. Source: contract §1.2, whose words are Envoy's; the last five are ours.
pub const FAILURE_WORDS: [&str; 10] = [
    "5xx",
    "gateway-error",
    "connect-failure",
    "reset",
    "refused-stream",
    "retriable-4xx",
    "any",
    "rate-limited",
    "timeout",
    "unreadable",
];

/// A backend's own bounds (*extension*); `None` is the default of whoever calls.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BackendLimits {
    /// Calls under way at once (`max_concurrency`); more wait.
    pub max_concurrency: Option<u32>,
    /// `requests_per_minute`.
    pub requests_per_minute: Option<u64>,
    /// `tokens_per_minute`, read and written.
    pub tokens_per_minute: Option<u64>,
    /// `timeouts.connect`.
    pub connect: Option<Duration>,
    /// `timeouts.first_byte`.
    pub first_byte: Option<Duration>,
    /// `timeouts.idle`.
    pub idle: Option<Duration>,
    /// `timeouts.total`.
    pub total: Option<Duration>,
}

/// The way to a backend, and what it must be told on it (*extension* but for `api_version`).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Access {
    /// Value of the query `api-version`.
    pub api_version: Option<String>,
    /// Where the credential comes from, when not from the file or the environment.
    pub credential: Option<CredentialSource>,
    /// A proxy that understands `CONNECT`.
    pub proxy: Option<Template>,
    /// A file of certificates (PEM) to trust besides the web's usual roots.
    pub ca_file: Option<String>,
    /// Region of a cloud's API, such as `eu-central-1`.
    pub region: Option<String>,
    /// What the backend cannot read of its API: words of [`QUIRK_WORDS`].
    pub quirks: Vec<String>,
}

/// Where a credential is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// A file that holds nothing else (`api_key_file`).
    File(String),
    /// What a program prints (`api_key_command`: the program and its arguments; no shell).
    Command(Vec<String>),
}

/// The words of `quirks`.
pub const QUIRK_WORDS: [&str; 5] = [
    "no_stream_options",
    "max_tokens_only",
    "max_completion_tokens_only",
    "no_developer_role",
    "no_parallel_tool_calls",
];
