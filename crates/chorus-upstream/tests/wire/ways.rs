//! Ways to a backend that are not the usual one: through a proxy, and by a certificate of one's own.

use crate::bench::{Bench, ask};
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_upstream::{Egress, Target, Upstream, UpstreamFault};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A proxy that understands `CONNECT`, and what was asked of it.
async fn proxy(answer: &'static str) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heads = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let heads = Arc::clone(&heads);
            tokio::spawn(async move {
                let mut client = BufReader::new(client);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    client.read_line(&mut head).await.unwrap();
                }
                let place = head.split(' ').nth(1).unwrap().to_owned();
                heads.lock().unwrap().push(head);
                client.write_all(answer.as_bytes()).await.unwrap();
                if answer.contains(" 200 ") {
                    let mut backend = TcpStream::connect(place).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut backend).await;
                }
            });
        }
    });
    (address, asked)
}

async fn through(bench: &Bench, egress: Egress) -> Result<String, UpstreamFault> {
    let target = Target::builder(&bench.backend.base_url()).egress(Some(Arc::new(egress))).build().unwrap();
    let reply = bench.client.complete(&target, ask(false), &[], &bench.limits).await?;
    Ok(reply.content)
}

#[tokio::test]
async fn a_backend_is_called_through_a_proxy_that_is_told_who_asks() {
    let bench = Bench::new(Script::reply("by proxy")).await;
    let (address, asked) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let egress = Egress::new(Some(&format!("http://ada:pw@{address}")), None).unwrap();
    assert_eq!(through(&bench, egress).await.unwrap(), "by proxy");
    let asked = asked.lock().unwrap().clone();
    let [head] = asked.as_slice() else { panic!("{asked:?}") };
    assert!(head.starts_with(&format!("CONNECT {} ", bench.backend.address())), "{head}");
    assert!(head.to_ascii_lowercase().contains("proxy-authorization: basic ywrhonb3"), "{head}");
    let request = bench.backend.requests().remove(0);
    assert!(request.header("proxy-authorization").is_none(), "the backend sees nothing of it");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_connect_fault_that_repeats_no_credential() {
    let bench = Bench::new(Script::reply("never")).await;
    let (address, _) = proxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let egress = Egress::new(Some(&format!("http://ada:pw@{address}")), None).unwrap();
    let fault = through(&bench, egress).await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Connect { .. }), "{fault:?}");
    let text = format!("{fault} {fault:?} {}", fault.public());
    assert!(!text.contains("pw@") && !text.contains("YWRhOnB3"), "{text}");
    assert!(bench.backend.requests().is_empty());
}

/// TLS in front of a backend, with a certificate that only its own authority knows; that authority in PEM.
async fn tls(backend: &ScriptedUpstream) -> (SocketAddr, String) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config =
        config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], secret).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, behind) = (listener.local_addr().unwrap(), backend.address());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut backend = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut backend).await;
            });
        }
    });
    (address, certificate.pem())
}

#[tokio::test]
async fn an_own_authority_is_trusted_where_it_is_named_and_nowhere_else() {
    let bench = Bench::new(Script::reply("by TLS")).await;
    let (address, authority) = tls(&bench.backend).await;
    let base = format!("https://localhost:{}/v1", address.port());
    let strange = Target::builder(&base).build().unwrap();
    let ask_it = |target: Target, client: Upstream| {
        let limits = bench.limits;
        async move { client.complete(&target, ask(false), &[], &limits).await }
    };
    let fault = ask_it(strange, bench.client.clone()).await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Connect { .. }), "{fault:?}");
    assert!(bench.backend.requests().is_empty(), "nothing was sent to a stranger");
    let known = Target::builder(&base)
        .egress(Some(Arc::new(Egress::new(None, Some(authority)).unwrap())))
        .build()
        .unwrap();
    assert_eq!(ask_it(known, bench.client.clone()).await.unwrap().content, "by TLS");
}
