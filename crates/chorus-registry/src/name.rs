//! The name of a bundle in a registry: `HOST[:PORT]/REPOSITORY`, and a tag or a digest.
//!
//! A tag is a moving pointer: `acme/helpdesk@stable` and `acme/helpdesk:stable` are the same.

use crate::fault::RegistryFault;
use oci_client::Reference;
use std::fmt;

/// A bundle in a registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Name(Reference);

impl Name {
    /// Reads a name. Without a tag or a digest it is the tag `latest`.
    ///
    /// # Errors
    /// [`RegistryFault::Name`]; a host must be named, since there is no registry of ours.
    pub fn read(text: &str) -> Result<Self, RegistryFault> {
        let wrong = |why: &str| RegistryFault::Name { name: text.to_owned(), why: why.to_owned() };
        let (host, rest) = text.split_once('/').ok_or_else(|| wrong("it names no host"))?;
        if !(host.contains(['.', ':']) || host == "localhost") {
            return Err(wrong("it names no host"));
        }
        // A pointer is written like a digest, and read as the tag that it is.
        let whole = match rest.split_once('@') {
            Some((path, pointer)) if !pointer.starts_with("sha256:") => {
                if path.contains(':') {
                    return Err(wrong("it has two tags"));
                }
                format!("{host}/{path}:{pointer}")
            }
            _ => text.to_owned(),
        };
        let reference: Reference = whole.parse().map_err(|fault| wrong(&format!("{fault}")))?;
        Ok(Self(reference))
    }

    /// The registry's host, with its port where one was named.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.registry()
    }

    /// Whether the registry is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
        bare == "localhost"
            || bare.trim_matches(['[', ']']).parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback())
    }

    /// The digest, where the name has one.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.0.digest()
    }

    /// The tag, where the name has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.0.tag()
    }

    /// The same repository with another tag.
    #[must_use]
    pub fn tagged(&self, tag: &str) -> Self {
        let (host, path) = (self.0.registry().to_owned(), self.0.repository().to_owned());
        Self(Reference::with_tag(host, path, tag.to_owned()))
    }

    /// The same repository by digest.
    #[must_use]
    pub fn by_digest(&self, digest: &str) -> Self {
        let (host, path) = (self.0.registry().to_owned(), self.0.repository().to_owned());
        Self(Reference::with_digest(host, path, digest.to_owned()))
    }

    pub(crate) fn reference(&self) -> &Reference {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_a_tag_and_a_digest_is_not() {
        let read = |text: &str| Name::read(text).unwrap();
        assert_eq!(read("localhost:5000/acme/helpdesk@stable"), read("localhost:5000/acme/helpdesk:stable"));
        assert_eq!(read("registry.example/acme/helpdesk").tag(), Some("latest"));
        let digest = format!("sha256:{}", "0".repeat(64));
        let exact = read(&format!("registry.example/acme/helpdesk@{digest}"));
        assert_eq!((exact.digest(), exact.tag()), (Some(digest.as_str()), None));
        assert_eq!(exact.tagged("next").to_string(), "registry.example/acme/helpdesk:next");
    }

    #[test]
    fn a_host_must_be_named() {
        for bad in ["helpdesk", "acme/helpdesk", "acme/helpdesk:1", "host.example/", "h.example/a:1@stable"] {
            assert!(matches!(Name::read(bad), Err(RegistryFault::Name { .. })), "{bad}");
        }
        let loopback = |text: &str| Name::read(text).unwrap().is_loopback();
        assert!(loopback("127.0.0.1:5000/a") && loopback("localhost:5000/a"));
        assert!(!loopback("127.0.0.1.example:5000/a") && !loopback("registry.example/a"));
    }
}
