//! TLS from files.

use std::{path::Path, time::Duration};

use netstead_api::{ServeOptions, TlsFiles};
use netstead_model::SystemClock;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::{Certificate, Client};

use crate::support::House;

/// Writes a new certificate for `localhost` and gives it.
fn write(folder: &Path) -> Certificate {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    Certificate::from_pem(cert.pem().as_bytes()).unwrap()
}

fn trusting(certificate: &Certificate) -> Client {
    Client::builder().tls_certs_only([certificate.clone()]).build().unwrap()
}

async fn house(folder: &Path) -> House {
    let files = TlsFiles {
        interval: Duration::from_millis(50),
        ..TlsFiles::new(folder.join("cert.pem"), folder.join("key.pem"))
    };
    let options = ServeOptions { tls: Some(files), ..ServeOptions::new("127.0.0.1:0") };
    House::with(SystemClock::shared(), options).await
}

#[tokio::test]
async fn a_certificate_that_changes_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path());
    let house = house(folder.path()).await;
    let url = format!("{}/healthz", house.url);
    assert_eq!(trusting(&first).get(&url).send().await.unwrap().status(), 200);

    let second = write(folder.path());
    for round in 0.. {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if trusting(&second).get(&url).send().await.is_ok() {
            break;
        }
        assert!(round < 100, "the new certificate was never used");
    }
    assert!(trusting(&first).get(&url).send().await.is_err());
}

#[tokio::test]
async fn origins_are_https_there_and_http_2_is_spoken() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write(folder.path());
    let house = house(folder.path()).await;
    let client = trusting(&certificate);
    let ask = |origin: &str| {
        client.get(format!("{}/api/v1/pools", house.url)).bearer_auth(&house.admin).header("origin", origin)
    };
    let fine = ask(&house.url).send().await.unwrap();
    assert_eq!((fine.status().as_u16(), fine.version()), (200, reqwest::Version::HTTP_2));
    assert_eq!(ask(&house.url.replace("https", "http")).send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open().await;
    let serve = async || {
        let files = TlsFiles::new(folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let options = ServeOptions { tls: Some(files), ..ServeOptions::new("127.0.0.1:0") };
        let api = netstead_api::Api::new(
            house.ledger.clone(),
            house.tokens.clone(),
            SystemClock::shared(),
            "memory",
        );
        netstead_api::serve(options, api, house.shutdown.clone()).await.unwrap_err().to_string()
    };
    assert!(serve().await.contains("cert.pem cannot be used"));
    write(folder.path());
    std::fs::write(folder.path().join("key.pem"), "nonsense").unwrap();
    assert!(serve().await.contains("key.pem cannot be used"));
}
