//! `[external_dns.NAME]`: external-dns writes into a server that was started with a file.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use netstead_testkit::{free_port, wait_until};
use serde_json::Value;

use crate::sandbox::{SOON, Sandbox};

/// `netstead:s3cret` in base64.
const BASIC: &str = "Authorization: Basic bmV0c3RlYWQ6czNjcmV0";
const MEDIA: &str = "application/external.dns.webhook+json;version=1";
const WWW: &str = r#"{"dnsName":"www.apps.test","targets":["192.0.2.1"],"recordType":"A","recordTTL":60}"#;

fn ask(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: {length}\r\n\
         {BASIC}\r\nContent-Type: {MEDIA}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn what_external_dns_writes_is_shown_explained_and_kept() {
    let mut sandbox = Sandbox::empty();
    let port = free_port().unwrap();
    let text = format!(
        "[external_dns.k8s]\nlisten = \"127.0.0.1:{port}\"\ndomains = [\"apps.test\"]\ntoken = \"s3cret\"\n\
         [dns.own]\ntype = \"builtin\"\ndomains = [\"apps.test\"]\n"
    );
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    let filter = r#"{"include":["apps.test"],"exclude":[]}"#;
    assert_eq!(ask(port, "GET", "/", ""), (200, filter.to_owned()));
    assert_eq!(ask(port, "POST", "/records", &format!(r#"{{"create":[{WWW}]}}"#)), (204, String::new()));
    let shown = || sandbox.does("get records --provider own").contains("192.0.2.1").then_some(());
    wait_until(SOON, shown).expect("the record should be published");
    let sources = sandbox.does("get sources");
    assert!(sources.lines().any(|line| line.contains("k8s") && line.contains("external-dns")), "{sources}");
    let why = sandbox.does("explain www.apps.test");
    assert!(why.contains("endpoint of external-dns"), "{why}");
    sandbox.stop();
    sandbox.start(&[]);
    let (status, held) = ask(port, "GET", "/records", "");
    let (held, expected): (Value, Value) =
        (serde_json::from_str(&held).unwrap(), serde_json::from_str(&format!("[{WWW}]")).unwrap());
    assert_eq!((status, held), (200, expected));
    assert_eq!(ask(port, "POST", "/records", &format!(r#"{{"delete":[{WWW}]}}"#)), (204, String::new()));
    let gone = || (!sandbox.does("get records --provider own").contains("192.0.2.1")).then_some(());
    wait_until(SOON, gone).expect("the record should be removed");
}

#[test]
fn a_listener_beyond_loopback_needs_a_token() {
    let sandbox = Sandbox::empty();
    let text = "[external_dns.k8s]\nlisten = \"0.0.0.0:8888\"\ndomains = [\"apps.test\"]\n";
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    let said = sandbox.fails("config check");
    assert!(said.err.contains("external_dns.k8s.token: without it every machine may write"), "{}", said.err);
}
