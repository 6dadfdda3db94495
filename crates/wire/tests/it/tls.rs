//! TLS settings against a real handshake.

use std::sync::Arc;

use netstead_wire::{Tls, TlsVersion, http::Http};
use rustls::{
    RootCertStore, ServerConfig, SupportedProtocolVersion,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::http_server::{context, reply, tcp};

struct Server {
    url: String,
    dir: tempfile::TempDir,
    fingerprint: String,
}

impl Server {
    /// With a certificate for `ns1.example.net`, which also serves as the client's.
    async fn start(versions: &[&'static SupportedProtocolVersion], asks_client: bool) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["ns1.example.net".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let digest = Sha256::digest(made.cert.der());
        let fingerprint = digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = if asks_client {
            let mut roots = RootCertStore::empty();
            roots.add(made.cert.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (url, _) = tcp(|_, _| reply("200 OK", "", "7"), Some(acceptor)).await;
        Self { url, dir, fingerprint }
    }

    fn trusting(&self) -> Tls {
        Tls {
            ca_file: Some(self.dir.path().join("cert.pem")),
            server_name: Some("ns1.example.net".to_owned()),
            ..Tls::default()
        }
    }

    async fn answers(&self, tls: &Tls) -> bool {
        let http = Http::open(&self.url, tls, &context()).unwrap();
        http.post("/").done().await.is_ok()
    }
}

#[tokio::test]
async fn an_older_version_of_tls_is_refused_where_a_newer_one_is_asked_for() {
    let old = Server::start(&[&TLS12], false).await;
    let new = Server::start(&[&TLS13, &TLS12], false).await;
    for (min_tls_version, with_old, with_new) in
        [(TlsVersion::V1_2, true, true), (TlsVersion::V1_3, false, true)]
    {
        let newest = |server: &Server| Tls { min_tls_version, ..server.trusting() };
        assert_eq!(old.answers(&newest(&old)).await, with_old);
        assert_eq!(new.answers(&newest(&new)).await, with_new);
    }
}

#[tokio::test]
async fn a_pinned_certificate_is_the_only_one() {
    let (server, other) = (Server::start(&[&TLS13], false).await, Server::start(&[&TLS13], false).await);
    let pinned = Tls { fingerprint: Some(server.fingerprint.clone()), ..Tls::default() };
    assert!(server.answers(&pinned).await);
    assert!(!other.answers(&pinned).await);
    // A pin counts also where everything else would be believed.
    assert!(!other.answers(&Tls { insecure: true, ..pinned }).await);
}

#[tokio::test]
async fn a_client_certificate_is_presented() {
    let server = Server::start(&[&TLS13], true).await;
    let file = |name: &str| Some(server.dir.path().join(name));
    let with = Tls { client_cert: file("cert.pem"), client_key: file("key.pem"), ..server.trusting() };
    assert!(server.answers(&with).await);
    assert!(!server.answers(&server.trusting()).await);
}
