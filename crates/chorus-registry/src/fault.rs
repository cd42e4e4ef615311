//! Why a registry did not do what it was asked.

use chorus_bundle::BundleFault;
use oci_client::errors::{OciDistributionError, OciErrorCode};
use std::fmt;

/// Why a registry did not do what it was asked; nothing is half there afterwards.
#[derive(Debug, thiserror::Error)]
pub enum RegistryFault {
    /// No name of a bundle in a registry.
    #[error("`{name}` is no HOST/REPOSITORY[:TAG|@TAG|@sha256:…]: {why}")]
    Name {
        /// As written.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The registry does not have it.
    #[error("`{0}` is not in the registry")]
    Absent(String),
    /// The registry wants another credential.
    #[error("the registry refuses the credential for `{0}`")]
    Refused(String),
    /// The registry failed, or was cut off.
    #[error("the registry failed at `{name}`: {why}")]
    Registry {
        /// What was asked for.
        name: String,
        /// What happened.
        why: String,
    },
    /// What came is no bundle, or not the one that was named.
    #[error("{0}")]
    Bundle(BundleFault),
}

/// Every code, with what it means.
pub const REGISTRY_CODES: [(&str, &str); 4] = [
    ("registry-name", "no name of a bundle in a registry"),
    ("registry-absent", "the registry does not have it"),
    ("registry-refused", "the registry wants another credential"),
    ("registry-failed", "the registry failed, or was cut off"),
];

impl RegistryFault {
    /// Its stable word.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => "registry-name",
            Self::Absent(_) => "registry-absent",
            Self::Refused(_) => "registry-refused",
            Self::Registry { .. } => "registry-failed",
            Self::Bundle(fault) => fault.code(),
        }
    }

    pub(crate) fn of(name: &impl fmt::Display, fault: OciDistributionError) -> Self {
        use OciDistributionError as Oci;
        let name = name.to_string();
        match fault {
            Oci::ImageManifestNotFoundError(_) | Oci::ServerError { code: 404, .. } => Self::Absent(name),
            Oci::RegistryError { envelope, .. } if envelope.errors.iter().any(|it| is_unknown(&it.code)) => {
                Self::Absent(name)
            }
            Oci::AuthenticationFailure(_) | Oci::UnauthorizedError { .. } => Self::Refused(name),
            other => Self::Registry { name, why: other.to_string() },
        }
    }
}

fn is_unknown(code: &OciErrorCode) -> bool {
    matches!(code, OciErrorCode::ManifestUnknown | OciErrorCode::NameUnknown | OciErrorCode::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        let page = include_str!("../../../docs/mom-spec.md");
        for (code, _) in REGISTRY_CODES {
            assert!(page.contains(&format!("`{code}`")), "{code}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_from_what_failed() {
        let name = "localhost:5000/a:1";
        let absent = OciDistributionError::ImageManifestNotFoundError("a".to_owned());
        assert_eq!(RegistryFault::of(&name, absent).code(), "registry-absent");
        let refused = OciDistributionError::AuthenticationFailure("no".to_owned());
        assert_eq!(RegistryFault::of(&name, refused).code(), "registry-refused");
        let failed = OciDistributionError::RegistryNoDigestError;
        assert_eq!(RegistryFault::of(&name, failed).code(), "registry-failed");
    }
}
