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
pub(crate) const WWW: &str =
    r#"{"dnsName":"www.apps.test","targets":["192.0.2.1"],"recordType":"A","recordTTL":60}"#;

pub(crate) fn ask(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
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

/// The table of the listener, for names below these.
fn table(port: u16, domains: &[&str]) -> String {
    format!("[external_dns.k8s]\nlisten = \"127.0.0.1:{port}\"\ndomains = {domains:?}\ntoken = \"s3cret\"\n")
}

const OWN: &str = "[dns.own]\ntype = \"builtin\"\ndomains = [\"apps.test\", \"more.test\"]\n";

fn reload(sandbox: &mut Sandbox, text: &str) {
    let sign = "Configuration read again; it is in force.";
    let before = sandbox.server().log().matches(sign).count();
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.server().signal("HUP").unwrap();
    let done = wait_until(SOON, || (sandbox.server().log().matches(sign).count() > before).then_some(()));
    assert!(done.is_some(), "{}", sandbox.server().log());
}

#[test]
fn a_table_comes_changes_moves_and_goes_while_the_server_runs() {
    let mut sandbox = Sandbox::empty();
    let [port, other] = [free_port().unwrap(), free_port().unwrap()];
    std::fs::write(sandbox.path().join("netstead.toml"), OWN).unwrap();
    sandbox.start(&[]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    reload(&mut sandbox, &format!("{OWN}{}", table(port, &["apps.test"])));
    assert_eq!(ask(port, "POST", "/records", &format!(r#"{{"create":[{WWW}]}}"#)).0, 204);
    let shown = |sandbox: &Sandbox| sandbox.does("get records --provider own").contains("192.0.2.1");
    wait_until(SOON, || shown(&sandbox).then_some(())).expect("the record should be published");
    // Another domain counts at once, on the same listener.
    reload(&mut sandbox, &format!("{OWN}{}", table(port, &["more.test", "apps.test"])));
    assert_eq!(ask(port, "GET", "/", "").1, r#"{"include":["more.test","apps.test"],"exclude":[]}"#);
    // Another address: the old one is closed.
    reload(&mut sandbox, &format!("{OWN}{}", table(other, &["apps.test"])));
    assert_eq!(ask(other, "GET", "/", "").0, 200);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    // A file with an address that cannot be had changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("{OWN}{}", table(taken.local_addr().unwrap().port(), &["apps.test"]));
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    let refused = "The configuration cannot be used; the old one stays.";
    let seen = wait_until(SOON, || sandbox.server().log().contains(refused).then_some(()));
    assert!(seen.is_some(), "{}", sandbox.server().log());
    assert_eq!(ask(other, "GET", "/", "").0, 200);

    // Without the table its names stay until a person says otherwise, and that is told.
    reload(&mut sandbox, OWN);
    assert!(TcpStream::connect(("127.0.0.1", other)).is_err());
    assert!(shown(&sandbox));
    let said = sandbox.netstead(["doctor"]).out;
    assert!(said.contains("source.k8s") && said.contains("it is no longer configured"), "{said}");
    sandbox.does("clean --source k8s --yes");
    assert!(!shown(&sandbox));
    sandbox.does("resume --provider own");
    // What was cleaned does not come back with the table.
    reload(&mut sandbox, &format!("{OWN}{}", table(port, &["apps.test"])));
    assert_eq!(ask(port, "GET", "/records", ""), (200, "[]".to_owned()));
    sandbox.does("apply");
    assert!(!shown(&sandbox));
    sandbox.stop();
}

#[test]
fn the_doctor_examines_the_listener_its_caller_and_its_domains() {
    let mut sandbox = Sandbox::empty();
    let port = free_port().unwrap();
    let text = table(port, &["apps.test", "nowhere.invalid"]);
    std::fs::write(sandbox.path().join("netstead.toml"), format!("{OWN}{text}")).unwrap();
    sandbox.start(&[]);
    let said = sandbox.netstead(["doctor"]).out;
    for part in [
        &format!("it listens on 127.0.0.1:{port}; external-dns has not called since the start"),
        "is `--webhook-provider-url` of external-dns this address",
        "no `[dns.NAME]` answers for nowhere.invalid: its names are published nowhere",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert_eq!(ask(port, "GET", "/", "").0, 200);
    let said = sandbox.netstead(["doctor"]).out;
    assert!(said.contains(&format!("it listens on 127.0.0.1:{port}; external-dns called at ")), "{said}");
}

const GUIDE: &str = include_str!("../../../../docs/guide/external-dns.md");

/// The blocks of the guide's second half that begin with this line after the fence.
fn block(language: &str, number: usize) -> String {
    let half = GUIDE.split("## external-dns writes into Netstead").nth(1).unwrap();
    let fence = format!("```{language}\n");
    half.split(fence.as_str()).nth(number + 1).unwrap().split("```").next().unwrap().to_owned()
}

#[test]
fn the_guide_works_as_typed() {
    let made = rcgen::generate_simple_self_signed(["netstead.example.com".to_owned()]).unwrap();
    for number in [0, 1] {
        let mut sandbox = Sandbox::empty();
        let (port, home) = (free_port().unwrap(), sandbox.path().to_owned());
        let file = |name: &str, text: &str| {
            std::fs::write(home.join(name), text).unwrap();
            home.join(name).display().to_string()
        };
        let table = block("toml", number)
            .replace("8888", &port.to_string())
            .replace("0.0.0.0", "127.0.0.1")
            .replace("/run/secrets/external-dns", &file("token", "TOKEN\n"))
            .replace("/etc/netstead/tls.crt", &file("tls.crt", &made.cert.pem()))
            .replace("/etc/netstead/tls.key", &file("tls.key", &made.signing_key.serialize_pem()));
        assert!(table.contains("[external_dns.k8s]"), "{table}");
        let own = "[dns.own]\ntype = \"builtin\"\ndomains = [\"apps.example.com\"]\n";
        file("netstead.toml", &format!("{table}{own}"));
        sandbox.start(&[]);
        let tls = table.contains("tls_cert");
        let url = format!("{}://netstead.example.com:{port}", if tls { "https" } else { "http" });
        let endpoint =
            r#"{"create":[{"dnsName":"web.apps.example.com","targets":["192.0.2.1"],"recordType":"A"}]}"#;
        let options = format!(
            "--noproxy '*' --resolve netstead.example.com:{port}:127.0.0.1 --cacert {}",
            home.join("tls.crt").display()
        );
        let post = format!(
            "curl -sf {options} -u netstead:TOKEN -H 'Content-Type: {MEDIA}' -d '{endpoint}' {url}/records\n"
        );
        let looks = block("sh", 0)
            .replace("curl ", &format!("curl -sf {options} "))
            .replace("https://netstead.example.com:8888", &url);
        assert!(looks.lines().count() == 3, "{looks}");
        let mut bash = sandbox.command();
        let netstead = std::path::Path::new(env!("CARGO_BIN_EXE_netstead")).parent().unwrap().to_owned();
        let path = format!("{}:{}", netstead.display(), std::env::var("PATH").unwrap_or_default());
        let mut typed = std::process::Command::new("bash");
        typed.args(["-ec", &format!("{post}netstead apply >&2\n{looks}")]).current_dir(&home);
        for (name, value) in bash.current_dir(&home).get_envs() {
            match value {
                Some(value) => typed.env(name, value),
                None => typed.env_remove(name),
            };
        }
        let done = typed.env("PATH", path).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{out}{err}");
        for part in [r#""dnsName":"web.apps.example.com""#, "external-dns  complete", "because of k8s/"] {
            assert!(out.contains(part), "{part} is not in\n{out}{err}");
        }
        sandbox.stop();
    }
}
