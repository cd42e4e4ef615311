//! The interface of a Mixture-of-Models, as checked: who it is, what it is made of, and what it promises.
//!
//! It knows no deployment, endpoint or secret. **Invariant:** money is whole micro-dollars and every fraction a
//! [`Decimal`], so that one value has one text.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u64 = 1;

/// A non-negative decimal number as text, without needless zeros: `0.72`, `5`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decimal(String);

impl Decimal {
    /// Reads `12`, `0.50` or `.5`; no sign and no exponent.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if !(digits(whole) && digits(fraction)) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let whole = Some(whole.trim_start_matches('0')).filter(|it| !it.is_empty()).unwrap_or("0");
        let fraction = fraction.trim_end_matches('0');
        Some(Self(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Millionths of it, if it is a whole number of them.
    #[must_use]
    pub fn millionths(&self) -> Option<u64> {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, ""));
        if fraction.len() > 6 {
            return None;
        }
        format!("{whole}{fraction:0<6}").parse().ok()
    }
}

/// What a bundle's config blob says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mom {
    /// The format; [`FORMAT`].
    pub format: u64,
    /// Its name, such as `acme/helpdesk`.
    pub family: String,
    /// Its version (semantic versioning 2.0).
    pub version: String,
    /// Licence of policy, prompts and assets, as an SPDX expression.
    pub licence: String,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What answers when nothing else is said.
    #[serde(default)]
    pub defaults: Defaults,
    /// How families of models are told to reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasoning_families: BTreeMap<String, Reasoning>,
    /// Logical models, by name.
    pub components: Vec<Component>,
    /// Identities with a contract, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operating_points: Vec<OperatingPoint>,
    /// Suites that it is evaluated with, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<Suite>,
    /// What must hold before a version is released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Where it comes from: free words and texts, such as a commit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
}

impl Mom {
    /// The public name of an operating point: `family-point`.
    #[must_use]
    pub fn identity(&self, point: &str) -> String {
        format!("{}-{point}", self.family)
    }
}

/// What answers when nothing else is said.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Answers what no decision claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Effort when reasoning is on and nobody says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

/// How a family of models is told to reason; the words are the contract's (v0.3, `reasoning_families`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoning {
    /// `chat_template_kwargs`, `reasoning_effort` or `top_level_reasoning_effort`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The parameter's name.
    pub parameter: String,
}

/// A logical model: no endpoint, no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name within the MoM.
    pub name: String,
    /// `generator`, `encoder`, `classifier` or `reranker`.
    pub kind: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Licence of the model, as an SPDX expression; unknown when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// What it must be able to do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Context window that policies count on, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Name of its reasoning family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_family: Option<String>,
    /// Where it may run: `any`, `private` (within the operator's trust boundary) or `process` (in this process).
    pub locality: String,
    /// What may become of the texts that it sees.
    #[serde(default)]
    pub data_policy: DataPolicy,
    /// Open weights, by reference; a closed model has none and is an external reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// The component that stands in where this one has no admissible deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// Abilities. Source: ModelPack's model config, `capabilities`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Capabilities {
    /// Of `text`, `image`, `audio`, `video`, `embedding`, `other`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_types: Vec<String>,
    /// As `input_types`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_types: Vec<String>,
    /// Last day that its training data knows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Whether it can reason before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Whether it can call tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_usage: Option<bool>,
    /// Whether it is a reward model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<bool>,
    /// Languages (ISO 639).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
}

/// What may become of the texts that a component sees.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPolicy {
    /// Longest time that they may be kept, in days; 0 forbids keeping; absent sets no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u64>,
    /// Whether models may be trained on them; absent sets no rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<bool>,
}

/// Open weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Where they are found, such as an OCI reference or a name in the model store.
    pub reference: String,
    /// Their digest, where it is known: `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A model identity with a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatingPoint {
    /// Its name, such as `light`.
    pub name: String,
    /// The recipe that it runs.
    pub recipe: String,
    /// What it is best at: `latency`, `cost`, `energy`, `quality`, `grounding` or `safety`.
    pub objective: String,
    /// What breaks ties, best first; the objective's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<String>,
    /// What one request may spend.
    #[serde(default)]
    pub bounds: Bounds,
    /// Of `fail_closed`, `grounded`, `local_only`, `private_only`, `no_retention`, `no_training`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// What is done where no admissible deployment is left: `abstain`, or a component's name.
    pub fallback: String,
}

/// What one request may spend; absent is unbounded.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_micro_usd: Option<u64>,
    /// Time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// Energy, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_joules: Option<Decimal>,
}

/// A suite that a MoM is evaluated with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its file, below `suites/`.
    pub file: String,
}

/// What must hold before a version is released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The suite.
    pub suite: String,
    /// Which of its figures.
    pub metric: String,
    /// Least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Decimal>,
    /// Greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Decimal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_one_text() {
        let read = |text: &str| Decimal::read(text).map(|it| it.as_str().to_owned());
        for (text, want) in
            [("0.50", "0.5"), ("007", "7"), (".5", "0.5"), ("5.", "5"), ("0", "0"), ("0.0", "0")]
        {
            assert_eq!(read(text).as_deref(), Some(want), "{text}");
        }
        for text in ["", ".", "-1", "+1", "1e3", "1.2.3", "0x1", "١"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn money_is_exact() {
        let millionths = |text: &str| Decimal::read(text).and_then(|it| it.millionths());
        assert_eq!(
            (millionths("0.02"), millionths("1.234567"), millionths("3")),
            (Some(20_000), Some(1_234_567), Some(3_000_000))
        );
        assert_eq!((millionths("0.0000001"), millionths("99999999999999999999")), (None, None));
    }
}
