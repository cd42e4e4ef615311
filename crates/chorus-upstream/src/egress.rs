//! The way to a backend where it is not the usual one: through a proxy, or with another root of trust.
//!
//! It opens nothing itself. **Invariant:** a proxy's credentials are never printed.

use http::Uri;
use http::header::HeaderValue;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A proxy to go through, and certificates to trust besides the web's usual roots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Egress {
    /// `http://host:port` of a proxy that understands `CONNECT`.
    proxy: Option<String>,
    /// `user:password`, in base 64, for `proxy-authorization`.
    credentials: Option<String>,
    /// Certificates in PEM.
    roots: Option<String>,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress")
            .field("proxy", &self.proxy)
            .field("own_roots", &self.roots.is_some())
            .finish_non_exhaustive()
    }
}

/// Why a way cannot be used. Texts name no value: an address may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressFault {
    /// Not `http://[user:password@]host:port`.
    #[error("the proxy is not an http URL with a host")]
    Proxy,
    /// No certificate in the text, or one that cannot be read.
    #[error("the certificates to trust cannot be read as PEM")]
    Roots,
}

impl Egress {
    /// A way through `proxy`, trusting `roots` (PEM) as well.
    ///
    /// # Errors
    /// [`EgressFault`].
    pub fn new(proxy: Option<&str>, roots: Option<String>) -> Result<Self, EgressFault> {
        let (proxy, credentials) = match proxy {
            None => (None, None),
            Some(url) => {
                let (address, credentials) = without_credentials(url);
                let uri: Uri = address.parse().map_err(|_| EgressFault::Proxy)?;
                if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) {
                    return Err(EgressFault::Proxy);
                }
                (Some(address), credentials)
            }
        };
        let egress = Self { proxy, credentials, roots };
        egress.trusted()?;
        Ok(egress)
    }

    /// Straight to the backend, with the web's usual roots of trust.
    pub(crate) fn usual() -> Self {
        Self { proxy: None, credentials: None, roots: None }
    }

    /// The proxy's address.
    pub(crate) fn proxy(&self) -> Option<Uri> {
        self.proxy.as_deref().and_then(|proxy| proxy.parse().ok())
    }

    /// The value of `proxy-authorization`.
    pub(crate) fn proxy_authorization(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Basic {}", self.credentials.as_ref()?)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The usual roots and its own.
    ///
    /// # Errors
    /// [`EgressFault::Roots`].
    pub(crate) fn trusted(&self) -> Result<RootCertStore, EgressFault> {
        let mut store = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let Some(pem) = &self.roots else { return Ok(store) };
        let mut added = 0;
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| EgressFault::Roots)?;
            store.add(certificate).map_err(|_| EgressFault::Roots)?;
            added += 1;
        }
        if added == 0 { Err(EgressFault::Roots) } else { Ok(store) }
    }
}

/// Takes `user:password@` out of a URL.
fn without_credentials(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    match rest.rsplit_once('@') {
        Some((user, host)) => (format!("{scheme}://{host}"), Some(base64(user.as_bytes()))),
        None => (url.to_owned(), None),
    }
}

/// Base 64 with padding. Source: RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_s_credentials_leave_its_address_and_are_not_printed() {
        let egress = Egress::new(Some("http://ada:pw@proxy:3128"), None).unwrap();
        assert_eq!(egress.proxy().unwrap().to_string(), "http://proxy:3128/");
        assert_eq!(egress.proxy_authorization().unwrap(), "Basic YWRhOnB3");
        assert!(!format!("{egress:?}").contains("YWRhOnB3"));
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for proxy in ["proxy:3128", "socks5://proxy", "http://", ""] {
            assert_eq!(Egress::new(Some(proxy), None).unwrap_err(), EgressFault::Proxy, "{proxy}");
        }
        assert_eq!(Egress::new(None, Some("no PEM".to_owned())).unwrap_err(), EgressFault::Roots);
    }
}
