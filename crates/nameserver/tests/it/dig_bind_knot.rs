//! Other people's programs: dig, kdig, and BIND and Knot as secondaries.

use std::{fmt::Write, net::UdpSocket, path::Path, process::Stdio, sync::Arc, time::Duration};

use netstead_nameserver::Options;
use netstead_store::MemoryStore;
use netstead_testkit::has_commands;
use tokio::process::{Child, Command};

use crate::fixture::{House, options};

async fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

async fn dig(port: u16, arguments: &[&str]) -> String {
    let port = port.to_string();
    run("dig", &[&["@127.0.0.1", "-p", &port, "+time=2", "+tries=1"], arguments].concat()).await
}

fn many(count: usize) -> String {
    (0..count).fold(String::new(), |mut lines, n| {
        writeln!(lines, "n{n}.example.test 300 A 10.0.{}.{}", n / 256, n % 256).unwrap();
        lines
    })
}

#[tokio::test]
async fn dig_and_kdig_understand_us() {
    if !has_commands(&["dig", "kdig"]) {
        return;
    }
    let house = House::new(&["example.test", "2.0.192.in-addr.arpa"]).await;
    let zone = r#"
        www.example.test 300 A 192.0.2.1
        www.example.test 300 AAAA 2001:db8::1
        www.example.test 300 TXT "a \"b\" \\ \200"
        www.example.test 300 CAA 0 issue "ca.example.test"
        www.example.test 300 HTTPS 1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1
        www.example.test 300 MX 10 mail.example.test
        _x._tcp.example.test 300 SRV 1 2 3 www.example.test
        alias.example.test 300 CNAME www.example.test
    "#;
    house.fill("example.test", zone).await;
    house.fill("2.0.192.in-addr.arpa", "1.2.0.192.in-addr.arpa 300 PTR www.example.test").await;
    let port = house.address().port();
    for set in crate::fixture::sets(zone) {
        let expected: Vec<String> = set.values.iter().map(ToString::to_string).collect();
        let shown = dig(port, &["+short", set.name.as_str(), set.kind.as_str()]).await;
        // dig quotes what it need not.
        let shown = if set.kind.as_str() == "HTTPS" { shown.replace('"', "") } else { shown };
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }
    assert_eq!(dig(port, &["+short", "-x", "192.0.2.1"]).await, "www.example.test.\n");
    let noisy =
        dig(port, &["alias.example.test", "A", "+cookie", "+nsid", "+subnet=192.0.2.0/24", "+padding=128"])
            .await;
    assert!(
        noisy.contains("status: NOERROR")
            && noisy.contains("192.0.2.1")
            && !noisy.contains("WARNING: Message"),
        "{noisy}"
    );
    let kdig =
        run("kdig", &["@127.0.0.1", "-p", &port.to_string(), "+tcp", "+short", "www.example.test", "HTTPS"])
            .await;
    assert!(kdig.contains("alpn=h2,h3"), "{kdig}");
    house.fill("example.test", &many(10_000)).await;
    let axfr = dig(port, &["example.test", "AXFR"]).await;
    assert!(axfr.contains("XFR size: 10003 records"), "{}", &axfr[axfr.len().saturating_sub(400)..]);
    let big: Vec<String> = (0..200).map(|n| format!("big.example.test 300 A 192.0.2.{n}")).collect();
    house.fill("example.test", &big.join("\n")).await;
    // Truncated, then over TCP by itself.
    assert_eq!(dig(port, &["+short", "big.example.test", "A"]).await.lines().count(), 200);
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(program: &str, arguments: &[&str]) -> Child {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..300 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}");
}

/// Our zone as a secondary has it, after a copy of everything and after a change we told it of.
async fn a_secondary_follows(
    program: &str,
    configuration: impl Fn(&Path, u16, u16) -> (String, Vec<String>),
) {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let options = Options { notify: vec![([127, 0, 0, 1], port).into()], ..options() };
    let house = House::with(&["example.test"], Arc::new(MemoryStore::new()), options).await;
    house.fill("example.test", &many(10_000)).await;
    let (text, arguments) = configuration(folder.path(), port, house.address().port());
    std::fs::write(folder.path().join("conf"), text).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let _child = start(program, &arguments);
    until("the first copy", async || {
        dig(port, &["+short", "n9999.example.test", "A"]).await == "10.0.39.15\n"
    })
    .await;
    for step in 1..=3 {
        let changed = format!("{}\nnew.example.test 300 A 192.0.2.{step}", many(10_000));
        house.fill("example.test", &changed).await;
        let wanted = format!("192.0.2.{step}\n");
        until("the change", async || dig(port, &["+short", "new.example.test", "A"]).await == wanted).await;
    }
    assert_eq!(dig(port, &["+short", "n17.example.test", "A"]).await, "10.0.0.17\n");
}

#[tokio::test]
async fn bind_follows_as_a_secondary() {
    if !has_commands(&["named", "dig"]) {
        return;
    }
    a_secondary_follows("named", |folder, port, primary| {
        let folder = folder.display();
        let text = format!(
            r#"
            options {{ directory "{folder}"; pid-file "{folder}/pid"; session-keyfile "{folder}/key"; lock-file none;
              managed-keys-directory "{folder}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
              recursion no; dnssec-validation no; notify no; min-refresh-time 1; }};
            controls {{ }};
            zone "example.test" {{ type secondary; primaries {{ 127.0.0.1 port {primary}; }}; file "zone"; }};
            "#
        );
        (text, vec!["-g".into(), "-c".into(), format!("{folder}/conf")])
    })
    .await;
}

#[tokio::test]
async fn knot_follows_as_a_secondary() {
    if !has_commands(&["knotd", "dig"]) {
        return;
    }
    a_secondary_follows("knotd", |folder, port, primary| {
        let folder = folder.display();
        let text = format!(
            r#"
server:
  listen: 127.0.0.1@{port}
  rundir: "{folder}"
database:
  storage: "{folder}"
remote:
  - id: primary
    address: 127.0.0.1@{primary}
acl:
  - id: told
    address: 127.0.0.1
    action: notify
template:
  - id: default
    storage: "{folder}"
zone:
  - domain: example.test
    master: primary
    acl: told
"#
        );
        (text, vec!["-c".into(), format!("{folder}/conf")])
    })
    .await;
}
