//! Names on real DNS servers: from a claim to the server, and back to nothing.

use std::{net::Ipv4Addr, time::Duration};

use netstead_testkit::{AdGuardVersion, Bind, Dnsmasq, FakeAdGuard, Knot, PowerDns, TsigKey, wait_until};
use serde_json::Value;

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

/// Two servers in one table, and a hosts file with the names that they shall hold.
struct Pair {
    sandbox: Sandbox,
    servers: [FakeAdGuard; 2],
}

impl Pair {
    fn start(hosts: std::ops::Range<u8>) -> Self {
        let servers = [(); 2].map(|()| FakeAdGuard::start(AdGuardVersion::V0_107_79));
        let urls = servers.each_ref().map(|server| server.http().url());
        let mut pair = Self { sandbox: Sandbox::empty(), servers };
        let config = format!(
            "[dns.filter]\ntype = \"adguard\"\nurls = {urls:?}\nuser = \"netstead\"\npassword = \"netstead-test\"\n\
             domains = [\"home.test\"]\ninterval = \"1s\"\ngrace = \"0s\"\nended_grace = \"0s\"\nreverse = false\n\
             [source.office]\ntype = \"hosts\"\npath = \"hosts\"\n"
        );
        std::fs::write(pair.sandbox.path().join("netstead.toml"), config).unwrap();
        pair.wants(hosts);
        pair.sandbox.start(&[]);
        pair
    }

    fn wants(&self, hosts: std::ops::Range<u8>) {
        let text = hosts.fold(String::new(), |text, n| text + &format!("10.0.3.{n} h{n}.home.test\n"));
        std::fs::write(self.sandbox.path().join("hosts"), text).unwrap();
    }

    /// Waits until this server holds exactly these names.
    fn holds(&self, server: usize, hosts: std::ops::Range<u8>) {
        let mut wanted: Vec<String> = hosts.map(|n| format!("h{n}.home.test")).collect();
        wanted.sort();
        let held = || {
            let mut held: Vec<String> =
                self.servers[server].rewrites().into_iter().map(|(name, _, _)| name).collect();
            held.sort();
            held
        };
        let same = wait_until(Duration::from_secs(30), || (held() == wanted).then_some(()));
        assert!(same.is_some(), "server {server} holds {:?}\n{}", held(), self.sandbox.does("get providers"));
    }

    /// Hash and number of the parked changes on each server.
    fn parked(&self) -> Vec<(String, u64)> {
        let plans: Value = serde_json::from_str(&self.sandbox.does("get plans -o json")).unwrap();
        let of_table = |plan: &&Value| plan["provider"].as_str().unwrap().starts_with("filter-");
        let parked = plans.as_array().unwrap().iter().filter(of_table).map(|plan| &plan["parked"]);
        let parked =
            parked.filter_map(|one| Some((one["hash"].as_str()?.to_owned(), one["changes"].as_u64()?)));
        parked.collect()
    }
}

#[test]
fn of_two_servers_in_a_table_one_may_be_away_or_be_rebuilt_empty() {
    let mut pair = Pair::start(10..13);
    (0..2).for_each(|server| pair.holds(server, 10..13));
    // One is away, and the other does not wait for it.
    pair.servers[1].http().stop();
    pair.wants(11..15);
    pair.holds(0, 11..15);
    let port = pair.servers[1].http().url().rsplit(':').next().unwrap().to_owned();
    let failing = format!("Provider `filter-127-0-0-1-{port}` fails");
    let said = || pair.sandbox.netstead(["status"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = wait_until(Duration::from_secs(30), || said().contains(&failing).then_some(()));
    assert!(told.is_some(), "no `{failing}` in {}", said());
    assert_eq!(pair.servers[1].rewrites().len(), 3);
    // It comes back with what it held, and gets what it missed.
    pair.servers[1].http().restart();
    pair.holds(1, 11..15);
    // It is installed again, and is filled from nothing.
    pair.servers[1].lose_rewrites();
    pair.holds(1, 11..15);
    pair.holds(0, 11..15);
    pair.sandbox.stop();
}

#[test]
fn one_hash_approves_what_is_parked_on_both_servers_of_a_table() {
    let mut pair = Pair::start(10..50);
    (0..2).for_each(|server| pair.holds(server, 10..50));
    pair.wants(23..50);
    let both = wait_until(Duration::from_secs(30), || Some(pair.parked()).filter(|parked| parked.len() == 2));
    let both = both.unwrap_or_else(|| panic!("{:?}", pair.parked()));
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0].1, 13);
    (0..2).for_each(|server| assert_eq!(pair.servers[server].rewrites().len(), 40));
    // The name of the table means both.
    let plan = pair.sandbox.netstead(["plan", "filter"]).out;
    assert_eq!(plan.matches(&format!("netstead apply {}", both[0].0)).count(), 2, "{plan}");
    pair.sandbox.does(&format!("apply {}", both[0].0));
    (0..2).for_each(|server| pair.holds(server, 23..50));
    assert_eq!(pair.parked(), []);
    pair.sandbox.stop();
}
