//! Failures of HTTP, and which certificates TLS trusts.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_model::{DnsProvider as _, ProviderError};
use netstead_providers::{
    Secret, Tls,
    dns::powerdns::{Config, PowerDns},
};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::support::{a, change, request, stopped, zone};

/// Answers each request by what `answer` makes of its first line; an empty answer closes the connection.
async fn http(answer: fn(&str) -> String, tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            match &tls {
                None => drop(tokio::spawn(serve(stream, answer))),
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        tokio::spawn(serve(stream, answer));
                    }
                }
            }
        }
    });
    port
}

async fn serve(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    answer: fn(&str) -> String,
) {
    let mut seen = vec![0; 65536];
    let Ok(length) = stream.read(&mut seen).await else { return };
    let text = String::from_utf8_lossy(&seen[..length]).into_owned();
    let body = answer(text.lines().next().unwrap_or_default());
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn reply(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n{body}", body.len())
}

fn provider(url: String, tls: Tls) -> PowerDns {
    PowerDns::new(Config { tls, ..Config::new(url, Secret::new("hunter2")) }).unwrap()
}

fn zones(line: &str) -> String {
    match line {
        line if line.starts_with("PATCH") => String::new(),
        line if line.contains("/search-data") => reply("200 OK", "", "[]"),
        line if line.contains("rrset_name") => reply("200 OK", "", r#"{"rrsets":[]}"#),
        line if line.contains("/zones?") => {
            reply("200 OK", "", r#"[{"name":"example.test.","kind":"Native","serial":7}]"#)
        }
        _ => reply("200 OK", "", r#"{"version":"4.7.3"}"#),
    }
}

#[tokio::test]
async fn a_write_without_an_answer_is_unknown_and_shows_no_secret() {
    let port = http(zones, None).await;
    let provider = provider(format!("http://127.0.0.1:{port}"), Tls::default());
    assert_eq!(provider.zones(&[zone()]).await.unwrap()[0].sign, Some(7.into()));
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    let error = stopped(provider.write(&zone(), &request(1, vec![unit])).await);
    assert!(matches!(error, ProviderError::Unknown { .. }), "{error:?}");
    assert!(!format!("{error} {error:?} {provider:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_busy_server_says_for_how_long() {
    let port = http(|_| reply("429 Too Many Requests", "retry-after: 7\r\n", ""), None).await;
    let provider = provider(format!("http://127.0.0.1:{port}"), Tls::default());
    let error = provider.read(&zone()).await.unwrap_err();
    let server = provider.server();
    assert_eq!(error, ProviderError::Busy { server, retry_after: Some(Duration::from_secs(7)) });
}

#[tokio::test]
async fn what_is_no_answer_of_the_api_is_told() {
    let port = http(|_| reply("200 OK", "", "<html>login</html>"), None).await;
    let error = provider(format!("http://127.0.0.1:{port}"), Tls::default()).read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Malformed { .. }), "{error:?}");
    let port = http(|_| reply("302 Found", "location: https://evil.invalid/\r\n", ""), None).await;
    let error = provider(format!("http://127.0.0.1:{port}"), Tls::default()).read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Malformed { .. }), "{error:?}");
}

/// Answers with a body that does not end, whether or not it says how long it is; counts the bytes it could send.
async fn flood(head: &'static str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, sent) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let chunk = vec![b' '; 1 << 20];
            let mut frame = format!("{:x}\r\n", chunk.len()).into_bytes();
            frame.extend(chunk);
            frame.extend(b"\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&frame).await.is_ok() {
                counted.fetch_add(frame.len(), Ordering::Relaxed);
            }
        }
    });
    (port, sent)
}

fn long_to_changes(line: &str) -> String {
    let long = "HTTP/1.1 500 No\r\ncontent-length: 3904260001\r\n\r\n";
    if line.starts_with("PATCH") { long.to_owned() } else { zones(line) }
}

#[tokio::test]
async fn an_answer_without_end_is_given_up_at_its_limit() {
    const LIMIT: usize = 256 << 20;
    let told = "its answer has more than 268435456 bytes, the most that is read";
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    for (head, most) in [
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", LIMIT + (64 << 20)),
        // Where the length is known, nothing is read at all, but what was on its way.
        ("HTTP/1.1 200 OK\r\ncontent-length: 3904260001\r\n\r\n", 64 << 20),
    ] {
        let (port, sent) = flood(head).await;
        let provider = provider(format!("http://127.0.0.1:{port}"), Tls::default());
        let error = provider.zones(&[zone()]).await.unwrap_err();
        assert_eq!(error, ProviderError::Malformed { server: provider.server(), reason: told.to_owned() });
        assert!(sent.load(Ordering::Relaxed) < most, "{sent:?}");
    }
    // What such a server did with a change is not known.
    let port = http(long_to_changes, None).await;
    let provider = provider(format!("http://127.0.0.1:{port}"), Tls::default());
    let error = stopped(provider.write(&zone(), &request(1, vec![unit])).await);
    assert_eq!(error, ProviderError::Unknown { server: provider.server(), reason: told.to_owned() });
}

#[tokio::test]
async fn a_secret_that_the_server_echoes_is_not_shown() {
    let answers: [fn(&str) -> String; 6] = [
        |_| reply("401 Unauthorized", "", "your key hunter2 is wrong"),
        |_| reply("422 Unprocessable Entity", "", r#"{"error":"header X-API-Key: hunter2 is wrong"}"#),
        |_| reply("500 Internal Server Error", "", "hunter2"),
        |_| reply("404 Not Found", "", "hunter2"),
        |_| reply("200 OK", "", r#""hunter2""#),
        // The end of what is shown would cut it in two.
        |_| reply("400 Bad Request", "", &format!("{}hunter2", "x".repeat(297))),
    ];
    for answer in answers {
        let port = http(answer, None).await;
        let provider = provider(format!("http://127.0.0.1:{port}"), Tls::default());
        let read = provider.read(&zone()).await.unwrap_err();
        let listed = provider.zones(&[zone()]).await.unwrap_err();
        let shown = format!("{read} {read:?} {listed} {listed:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("xhun"), "{shown}");
        assert!(shown.contains("(re"), "{shown}");
    }
}

struct Certificates {
    dir: tempfile::TempDir,
    fingerprint: String,
    acceptor: TlsAcceptor,
}

/// A server certificate for `ns1.example.net`, which also serves as the client's.
fn certificates(ask_client: bool) -> Certificates {
    let made = rcgen::generate_simple_self_signed(vec!["ns1.example.net".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let digest = Sha256::digest(made.cert.der());
    let fingerprint = digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if ask_client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(verifier.unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    Certificates { dir, fingerprint, acceptor: TlsAcceptor::from(Arc::new(config)) }
}

#[tokio::test]
async fn tls_trusts_whom_it_is_told_to() {
    let Certificates { dir, fingerprint, acceptor } = certificates(false);
    let port = http(zones, Some(acceptor)).await;
    let url = format!("https://127.0.0.1:{port}");
    let ca_file: Option<PathBuf> = Some(dir.path().join("cert.pem"));
    let named = Some("ns1.example.net".to_owned());
    let cases = [
        (Tls { ca_file: ca_file.clone(), server_name: named.clone(), ..Tls::default() }, true),
        (Tls { ca_file: ca_file.clone(), ..Tls::default() }, false),
        (Tls { ca_file, server_name: Some("ns2.example.net".into()), ..Tls::default() }, false),
        (Tls { server_name: named, ..Tls::default() }, false),
        (Tls { fingerprint: Some(fingerprint.to_lowercase()), ..Tls::default() }, true),
        (
            Tls {
                fingerprint: Some(fingerprint.replace(&fingerprint[..2], "00")),
                insecure: true,
                ..Tls::default()
            },
            false,
        ),
        (Tls { insecure: true, ..Tls::default() }, true),
    ];
    for (tls, trusted) in cases {
        let shown = format!("{tls:?}");
        // Where the machine has no roots at all, a default cannot even be made.
        let Ok(provider) = PowerDns::new(Config { tls, ..Config::new(url.clone(), Secret::new("k")) }) else {
            assert!(!trusted, "{shown}");
            continue;
        };
        let outcome = provider.zones(&[zone()]).await;
        assert_eq!(outcome.is_ok(), trusted, "{shown}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let Certificates { dir, acceptor, .. } = certificates(true);
    let port = http(zones, Some(acceptor)).await;
    let url = format!("https://127.0.0.1:{port}");
    let with = Tls {
        client_cert: Some(dir.path().join("cert.pem")),
        client_key: Some(dir.path().join("key.pem")),
        insecure: true,
        ..Tls::default()
    };
    assert!(provider(url.clone(), with).zones(&[zone()]).await.is_ok());
    assert!(provider(url, Tls { insecure: true, ..Tls::default() }).zones(&[zone()]).await.is_err());
}
