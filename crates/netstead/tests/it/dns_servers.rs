//! Names on real DNS servers: from a claim to the server, and back to nothing.

use std::{net::Ipv4Addr, time::Duration};

use netstead_testkit::{Bind, Dnsmasq, Knot, PowerDns, TsigKey, wait_until};

use crate::{resolve, sandbox::Sandbox};

const ZONES: [&str; 2] = ["home.test", "3.0.10.in-addr.arpa"];

/// One claim's life, as the server at `port` tells it.
fn claim_and_release(config: &str, port: u16) {
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    resolve::until(&["10.0.3.50"], || resolve::a(port, "web-1.home.test"));
    resolve::until(&["web-1.home.test."], || resolve::ptr(port, Ipv4Addr::new(10, 0, 3, 50)));
    // The zone is read back after a write; then nothing is left to do.
    let settled = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        sandbox.netstead(["plan", "lan"]).code == 0
    });
    assert!(settled, "{}", sandbox.netstead(["plan", "lan"]).out);

    // After a restart nothing is written, because nothing changed.
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("apply");
    let providers = sandbox.does("get providers -o json");
    assert!(providers.contains("\"lan\""), "{providers}");
    resolve::until(&["10.0.3.50"], || resolve::a(port, "web-1.home.test"));

    sandbox.does("release lan web-1");
    resolve::until(&[], || resolve::a(port, "web-1.home.test"));
    resolve::until(&[], || resolve::ptr(port, Ipv4Addr::new(10, 0, 3, 50)));
    sandbox.stop();
}

fn rfc2136(port: u16, key: &TsigKey) -> String {
    format!(
        "[dns.lan]\ntype = \"rfc2136\"\nservers = [\"127.0.0.1:{port}\"]\ntsig_name = \"{}\"\n\
         tsig_algorithm = \"{}\"\ntsig_secret = \"{}\"\ndomains = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n\
         zones = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n",
        key.name, key.algorithm, key.secret
    )
}

#[test]
fn dnsmasq_gets_the_names_of_claims() {
    let Some(server) = Dnsmasq::start() else { return };
    let reload: Vec<String> = server.restart_command().iter().map(|word| format!("{word:?}")).collect();
    let config = format!(
        "[dns.lan]\ntype = \"dnsmasq\"\nhostsdir = {:?}\nconf_dir = {:?}\nreload = [{}]\n\
         domains = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n",
        server.hostsdir(),
        server.conf_dir(),
        reload.join(", ")
    );
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    // By hand, and never Netstead's to change.
    std::fs::write(server.hostsdir().join("mine"), "10.0.3.9 nas.home.test\n").unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    let (name, pointer) = ("web-1.home.test", "50.3.0.10.in-addr.arpa");
    assert_eq!(server.ask_until(name, "A", &["10.0.3.50"]), ["10.0.3.50"]);
    assert_eq!(server.ask_until(pointer, "PTR", &["web-1.home.test."]), ["web-1.home.test."]);
    let settled =
        wait_until(Duration::from_secs(20), || (sandbox.netstead(["plan", "lan"]).code == 0).then_some(()));
    assert!(settled.is_some(), "{}", sandbox.netstead(["plan", "lan"]).out);
    let conf = std::fs::read_to_string(server.conf_dir().join("netstead.conf")).unwrap();
    assert!(conf.contains("ptr-record=50.3.0.10.in-addr.arpa,web-1.home.test\n"), "{conf}");
    let doctor = sandbox.netstead(["doctor"]).out;
    assert!(doctor.contains("all is in line: 2 zones"), "{doctor}");
    sandbox.does("release lan web-1");
    assert_eq!(server.ask_until(name, "A", &[]), [""; 0]);
    assert_eq!(server.ask_until(pointer, "PTR", &[]), [""; 0]);
    assert_eq!(server.ask_until("nas.home.test", "A", &["10.0.3.9"]), ["10.0.3.9"]);
    sandbox.stop();
}

#[test]
fn powerdns_gets_the_names_of_claims() {
    let Some(server) = PowerDns::start(&ZONES) else { return };
    let config = format!(
        "[dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n",
        server.api_url(),
        server.api_key()
    );
    claim_and_release(&config, server.address().port());
}

#[test]
fn bind_gets_the_names_of_claims() {
    let Some(server) = Bind::start(&ZONES) else { return };
    claim_and_release(&rfc2136(server.address().port(), server.key()), server.address().port());
}

#[test]
fn knot_gets_the_names_of_claims() {
    let Some(server) = Knot::start(&ZONES) else { return };
    claim_and_release(&rfc2136(server.address().port(), server.key()), server.address().port());
}
