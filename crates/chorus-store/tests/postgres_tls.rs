//! Who is let through to a PostgreSQL server by the certificate that it shows. The server of these tests knows only how such
//! a connection begins: it takes or refuses encryption, shakes hands, and refuses the password. So a fault about the
//! password says that the certificate was taken. `acceptance/postgres.sh` asks a real server the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use chorus_store::{PostgresFault, PostgresPlace, PostgresTls, postgres};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a server without TLS says to whoever asks for it, and what one with TLS says. Source: PostgreSQL, "SSL Session
/// Encryption".
const NO: u8 = b'N';
const YES: u8 = b'S';

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for that name, or that address.
fn for_host(host: &str) -> CertificateParams {
    CertificateParams::new(vec![host.to_owned()]).unwrap()
}

fn signed(by: &Authority, params: &CertificateParams) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    showing(params.signed_by(&key, by).unwrap().der().clone(), &key)
}

fn showing(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A server with that certificate, or without TLS; its port.
async fn server(tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let mut asks_for_tls = [0; 8];
                client.read_exact(&mut asks_for_tls).await.unwrap();
                client.write_all(&[if tls.is_some() { YES } else { NO }]).await.unwrap();
                if let Some(tls) = tls
                    && let Ok(client) = tls.accept(client).await
                {
                    refuse(client).await;
                }
            });
        }
    });
    port
}

/// Reads who asks, and refuses the password. Source: PostgreSQL, "Message Formats" (`ErrorResponse`).
async fn refuse(mut client: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(length) = client.read_u32().await else { return };
    let mut asks = vec![0; length as usize - 4];
    client.read_exact(&mut asks).await.unwrap();
    let fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0";
    client.write_u8(b'E').await.unwrap();
    client.write_u32(fields.len() as u32 + 4).await.unwrap();
    client.write_all(fields).await.unwrap();
    client.flush().await.unwrap();
}

/// What is told of a server on that port that is asked by its address.
async fn told(port: u16, tls: PostgresTls) -> PostgresFault {
    let place = PostgresPlace {
        host: "127.0.0.1".to_owned(),
        port,
        database: "chorus".to_owned(),
        user: "router".to_owned(),
        password: Some("hunter2".to_owned()),
        tls,
    };
    let fault = postgres::prepare(&place).await.unwrap_err();
    assert!(!fault.is_absence(), "waiting does not mend it: {fault}");
    let shown = format!("{fault} {fault:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("127.0.0.1"), "{shown}");
    fault
}

fn trusting(folder: &Path, authority: &str) -> PostgresTls {
    let file: PathBuf = folder.join("ca.pem");
    std::fs::write(&file, authority).unwrap();
    PostgresTls::Verified(Some(file))
}

fn is_taken(fault: &PostgresFault) -> bool {
    matches!(fault, PostgresFault::Refused(why) if why == "password authentication failed")
}

fn is_untrusted(fault: &PostgresFault, because: &str) -> bool {
    matches!(fault, PostgresFault::Tls(why) if why.contains(because))
}

#[tokio::test]
async fn a_certificate_is_taken_of_its_authority_and_for_its_host() {
    let (folder, ours, other) = (TempDir::new().unwrap(), authority("ours"), authority("other"));
    let port = server(Some(signed(&ours, &for_host("127.0.0.1")))).await;
    let fault = told(port, trusting(folder.path(), &ours.pem())).await;
    assert!(is_taken(&fault), "{fault}");
    let both = format!("{}{}", other.pem(), ours.pem());
    let fault = told(port, trusting(folder.path(), &both)).await;
    assert!(is_taken(&fault), "{fault}");
    // Another of the same name, as after a change of authorities.
    for untrusted in [&other, &authority("ours")] {
        let fault = told(port, trusting(folder.path(), &untrusted.pem())).await;
        assert!(is_untrusted(&fault, "no authority that is trusted"), "{fault}");
    }
    let fault = told(port, PostgresTls::Verified(None)).await;
    assert!(is_untrusted(&fault, "no authority that is trusted"), "{fault}");
    let port = server(Some(signed(&ours, &for_host("db.internal")))).await;
    let fault = told(port, trusting(folder.path(), &ours.pem())).await;
    assert!(is_untrusted(&fault, "for other hosts") && !fault.to_string().contains("internal"), "{fault}");
}

#[tokio::test]
async fn a_certificate_out_of_its_time_or_of_its_own_making_is_told_so() {
    let (folder, ours) = (TempDir::new().unwrap(), authority("ours"));
    let trusting = |authority: &str| trusting(folder.path(), authority);
    for (from, until, because) in [(1990, 1991, "has expired"), (4000, 4001, "not valid yet")] {
        let mut params = for_host("127.0.0.1");
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let fault = told(server(Some(signed(&ours, &params))).await, trusting(&ours.pem())).await;
        assert!(is_untrusted(&fault, because), "{fault}");
    }
    let mut params = for_host("127.0.0.1");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap();
    let port = server(Some(showing(own.der().clone(), &key))).await;
    let fault = told(port, trusting(&own.pem())).await;
    assert!(is_untrusted(&fault, "CA:TRUE"), "{fault}");
}

#[tokio::test]
async fn any_certificate_is_taken_where_that_is_asked_for_and_none_is_not() {
    let port = server(Some(signed(&authority("ours"), &for_host("db.internal")))).await;
    let fault = told(port, PostgresTls::AnyCertificate).await;
    assert!(is_taken(&fault), "{fault}");
    let port = server(None).await;
    for tls in [PostgresTls::AnyCertificate, PostgresTls::Verified(None)] {
        let fault = told(port, tls).await;
        assert!(matches!(&fault, PostgresFault::Refused(why) if why.contains("TLS")), "{fault}");
    }
}
