//! How a connection to PostgreSQL is encrypted, and whose certificate it takes.

use super::{PostgresFault, PostgresTls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What encrypts; `None` where nothing does.
///
/// # Errors
/// [`PostgresFault::Tls`] where the authorities cannot be read.
pub(super) fn connector(tls: &PostgresTls) -> Result<Option<MakeRustlsConnect>, PostgresFault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|why| PostgresFault::Tls(why.to_string()))?;
    let config = match tls {
        PostgresTls::Off => return Ok(None),
        PostgresTls::AnyCertificate => {
            let any = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth()
        }
        PostgresTls::Verified(file) => {
            builder.with_root_certificates(authorities(file.as_deref())?).with_no_client_auth()
        }
    };
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, PostgresFault> {
    let Some(file) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let at = |why: &dyn std::fmt::Display| PostgresFault::Tls(format!("{}: {why}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|why| at(&why))? {
        roots.add(certificate.map_err(|why| at(&why))?).map_err(|why| at(&why))?;
    }
    if roots.is_empty() {
        return Err(at(&"it holds no certificate"));
    }
    Ok(roots)
}

/// Takes whatever certificate it is shown; the connection is still encrypted, by the key of that certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_come_from_a_file_that_holds_some() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let of = |tls: &PostgresTls| connector(tls).map(|it| it.is_some());
        assert_eq!(of(&PostgresTls::Off), Ok(false));
        assert_eq!(of(&PostgresTls::AnyCertificate), Ok(true));
        assert_eq!(of(&PostgresTls::Verified(None)), Ok(true));
        for text in [None, Some(""), Some("no certificate")] {
            text.iter().for_each(|text| std::fs::write(&file, text).unwrap());
            let fault = of(&PostgresTls::Verified(Some(file.clone()))).unwrap_err().to_string();
            assert!(fault.contains("ca.pem"), "{fault}");
        }
    }
}
