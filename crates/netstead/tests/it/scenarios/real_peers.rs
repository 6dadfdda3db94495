//! The real external-dns over our listener, and zones that the real dnsweaver filled: `cargo xtask test --peers`.
//!
//! dnsweaver 1.6.0 has no provider for PowerDNS yet, and that for Cloudflare knows one address only.

use std::path::PathBuf;

use netstead_testkit::{
    AdGuardHome, AdGuardVersion, Bind, Dnsmasq, DnsweaverReceiver, Dockerd, EndpointFeed, FakeAdGuard,
    FakePiHole, FakeTechnitium, RealExternalDns, TsigKey, free_port, start_dnsweaver, wait_until,
};

use super::{
    dns_fixture::SOON,
    dnsweaver_moves::{NAMES, in_dnsweavers_place, moves},
};
use crate::{external_dns::ask, sandbox::Sandbox};

/// A sandbox that external-dns writes to, and the URL for it.
struct Listener {
    sandbox: Sandbox,
    port: u16,
    feed: EndpointFeed,
    peer: RealExternalDns,
}

impl Listener {
    fn start() -> Self {
        let peer = RealExternalDns::find().expect("`cargo xtask test --peers` builds external-dns");
        let (mut sandbox, port) = (Sandbox::empty(), free_port().unwrap());
        let text = format!(
            "[external_dns.k8s]\nlisten = \"127.0.0.1:{port}\"\ndomains = [\"apps.test\"]\ntoken = \"s3cret\"\n\
             [dns.own]\ntype = \"builtin\"\ndomains = [\"apps.test\"]\n"
        );
        std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
        sandbox.start(&[]);
        Self { sandbox, port, feed: EndpointFeed::start().unwrap(), peer }
    }

    /// One turn of external-dns: its log.
    fn turn(&self, owner: &str, policy: &str) -> String {
        let url = format!("http://any:s3cret@127.0.0.1:{}", self.port);
        let more = [format!("--txt-owner-id={owner}"), format!("--policy={policy}")];
        let (fine, log) = self.peer.once(&self.feed, &url, &more.each_ref().map(String::as_str)).unwrap();
        assert!(fine, "{log}");
        log
    }

    fn held(&self) -> Vec<String> {
        let (status, body) = ask(self.port, "GET", "/records", "");
        assert_eq!(status, 200, "{body}");
        let all: Vec<serde_json::Value> = serde_json::from_str(&body).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let line = |one: &serde_json::Value| {
            let targets: Vec<String> = one["targets"].as_array().unwrap().iter().map(text).collect();
            format!("{} {} {}", text(&one["dnsName"]), text(&one["recordType"]), targets.join(" "))
        };
        all.iter().map(line).collect()
    }

    fn published(&self, wanted: &[&str]) {
        let shown = || {
            let text = self.sandbox.does("get records --provider own");
            let all = wanted.iter().all(|part| text.contains(part));
            (all && text.contains("heritage").eq(&false)).then_some(())
        };
        assert!(wait_until(SOON, shown).is_some(), "{}", self.sandbox.does("get records --provider own"));
    }
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn the_real_external_dns_keeps_its_registry_and_its_policy_over_our_listener() {
    let listener = Listener::start();
    listener.feed.set(&[("www.apps.test", "A", "192.0.2.1"), ("alias.apps.test", "CNAME", "www.apps.test")]);
    listener.turn("one", "sync");
    let mark = |kind: &str, name: &str| {
        format!("{kind}-{name}.apps.test TXT \"heritage=external-dns,external-dns/owner=one\"")
    };
    let first = [
        mark("a", "www"),
        "alias.apps.test CNAME www.apps.test".to_owned(),
        mark("cname", "alias"),
        "www.apps.test A 192.0.2.1".to_owned(),
    ];
    assert_eq!(listener.held(), first);
    listener.published(&["192.0.2.1", "alias.apps.test"]);
    // A second turn finds what it wrote: nothing is planned for ever.
    let log = listener.turn("one", "sync");
    assert!(log.contains("All records are already up to date"), "{log}");
    // Another owner leaves it alone.
    listener.feed.set(&[("www.apps.test", "A", "192.0.2.9")]);
    listener.turn("two", "sync");
    assert_eq!(listener.held(), first);
    // What the policy forbids is not done, and what it allows is.
    listener.turn("one", "create-only");
    assert_eq!(listener.held(), first);
    listener.turn("one", "upsert-only");
    let moved = "www.apps.test A 192.0.2.9";
    assert_eq!(listener.held()[..3], first[..3]);
    assert_eq!(listener.held()[3], moved);
    listener.published(&["192.0.2.9"]);
    listener.turn("one", "sync");
    assert_eq!(listener.held(), [mark("a", "www"), moved.to_owned()]);
    listener.feed.set(&[]);
    listener.turn("one", "sync");
    assert_eq!(listener.held(), [""; 0]);
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn a_wrong_password_ends_the_real_external_dns_and_changes_nothing() {
    let listener = Listener::start();
    listener.feed.set(&[("www.apps.test", "A", "192.0.2.1")]);
    let url = format!("http://any:wrong@127.0.0.1:{}", listener.port);
    let (fine, log) = listener.peer.once(&listener.feed, &url, &["--policy=sync"]).unwrap();
    assert!(!fine && log.contains("unexpected status code 401"), "{log}");
    assert_eq!(listener.held(), [""; 0]);
}

/// `netstead import` knows which flags of external-dns have no value: a word behind another flag is its value, and behind
/// these it is refused.
#[test]
#[ignore = "cargo xtask test --peers"]
fn the_switches_of_the_real_external_dns_are_known_to_the_import() {
    let peer = RealExternalDns::find().expect("`cargo xtask test --peers` builds external-dns");
    let output = peer.command().arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let flags: Vec<(String, bool)> = help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .map(|line| (line.strip_prefix("[no-]").is_some(), line.trim_start_matches("[no-]")))
        .map(|(switch, line)| {
            let end = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
            (line[..end].to_owned(), switch)
        })
        // Not one that it is started with.
        .filter(|(name, _)| name != "help")
        .collect();
    assert!(flags.iter().filter(|(_, switch)| *switch).count() > 30 && flags.len() > 100, "{help}");
    let sandbox = Sandbox::empty();
    let file = sandbox.path().join("flags");
    let mut wrong = Vec::new();
    for (name, switch) in &flags {
        std::fs::write(&file, format!("--{name} word --source=ingress\n")).unwrap();
        let said = sandbox.netstead(["import", "external-dns", "--file", &file.display().to_string()]);
        if said.err.contains("`word` is no flag") != *switch {
            wrong.push(format!("--{name} {}", if *switch { "has no value" } else { "has a value" }));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Lets the real dnsweaver fill a server until `filled`, then moves to Netstead with the same variables.
fn moves_from_the_real_dnsweaver(
    instance: &[(&'static str, &str)],
    values: usize,
    filled: impl Fn() -> bool,
) -> Option<Sandbox> {
    moves_with_file(instance, values, |_, _, _| None, filled)
}

/// The same; `file` may write a file for dnsweaver, for settings that it reads nowhere else. It gets the sandbox, the address of
/// Docker and a port.
fn moves_with_file(
    instance: &[(&'static str, &str)],
    values: usize,
    file: impl Fn(&Sandbox, &str, &str) -> Option<PathBuf>,
    filled: impl Fn() -> bool,
) -> Option<Sandbox> {
    let docker = Dockerd::start()?;
    let port = free_port().unwrap().to_string();
    let host = docker.host();
    let more = [
        ("DNSWEAVER_PLATFORM", "docker"),
        ("DNSWEAVER_DOCKER_HOST", host.as_str()),
        ("DNSWEAVER_HEALTH_PORT", port.as_str()),
    ];
    let mut sandbox = in_dnsweavers_place(&[instance, &more].concat());
    let mut dnsweaver = match file(&sandbox, &host, &port) {
        Some(path) => start_dnsweaver(&[("DNSWEAVER_CONFIG", path.display().to_string())]),
        None => start_dnsweaver(sandbox.variables()),
    }
    .unwrap();
    let done = wait_until(SOON, || filled().then_some(()));
    assert!(done.is_some(), "{}", dnsweaver.log());
    dnsweaver.terminate().unwrap();
    dnsweaver.wait(SOON).unwrap();
    assert!(filled(), "dnsweaver removes nothing when it ends");
    moves(&mut sandbox, values);
    assert!(filled(), "the move changes no record");
    Some(sandbox)
}

fn dig(server: std::net::SocketAddr) -> bool {
    NAMES.iter().all(|name| super::dnsweaver_moves::ask(server, name, "A") == "10.0.3.9\n")
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn a_zone_of_bind_that_the_real_dnsweaver_filled_moves() {
    let Some(server) = Bind::with_records(&["w.test"], &TsigKey::default(), "") else { return };
    let (address, key) = (server.address(), server.key().clone());
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "rfc2136"),
        ("DNSWEAVER_LAN_SERVER", &*address.to_string()),
        ("DNSWEAVER_LAN_ZONE", "w.test."),
        ("DNSWEAVER_LAN_TSIG_KEY_NAME", &*format!("{}.", key.name)),
        ("DNSWEAVER_LAN_TSIG_SECRET", &key.secret),
        ("DNSWEAVER_LAN_TSIG_ALGORITHM", &key.algorithm),
        ("DNSWEAVER_LAN_USE_TCP", "true"),
    ];
    moves_from_the_real_dnsweaver(&instance, 3, || dig(address));
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn the_file_of_dnsmasq_that_the_real_dnsweaver_wrote_moves() {
    let Some(server) = Dnsmasq::start() else { return };
    let (dir, reload) = (server.conf_dir().display().to_string(), server.restart_command().join(" "));
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "dnsmasq"),
        ("DNSWEAVER_LAN_CONFIG_DIR", dir.as_str()),
        ("DNSWEAVER_LAN_CONFIG_FILE", "weaver.conf"),
        ("DNSWEAVER_LAN_RELOAD_COMMAND", reload.as_str()),
    ];
    let file = |sandbox: &Sandbox, docker: &str, port: &str| {
        let (path, rules) = (sandbox.path().join("dnsweaver.yml"), sandbox.path().join("rules"));
        let text = format!(
            "platform: docker\ndocker: {{ host: \"{docker}\" }}\nreconciler: {{ interval: 1s }}\nserver: {{ port: {port} }}\n\
             sources:\n- name: traefik\n  file_discovery: {{ paths: [\"{}\"] }}\n\
             providers:\n- name: lan\n  type: dnsmasq\n  domains: [\"*.w.test\"]\n  target: 10.0.3.9\n  \
             config: {{ config_dir: \"{dir}\", config_file: weaver.conf, reload_command: \"{reload}\" }}\n",
            rules.display()
        );
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let done = moves_with_file(&instance, 3, file, || {
        NAMES.iter().all(|name| server.ask(name, "A") == ["10.0.3.9"])
    });
    if done.is_some() {
        assert!(!server.conf_dir().join("weaver.conf").exists(), "dnsweaver's file is removed");
    }
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn rewrites_that_the_real_dnsweaver_made_move() {
    let real = AdGuardHome::start();
    let fake = FakeAdGuard::start(AdGuardVersion::V0_107_79);
    let url = real.as_ref().map_or_else(|| fake.http().url(), AdGuardHome::url);
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "adguard"),
        ("DNSWEAVER_LAN_URL", url.as_str()),
        ("DNSWEAVER_LAN_USERNAME", "netstead"),
        ("DNSWEAVER_LAN_PASSWORD", "netstead-test"),
    ];
    moves_from_the_real_dnsweaver(&instance, 3, || match &real {
        Some(real) => dig(real.address()),
        None => fake.rewrites().len() == 3,
    });
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn hosts_that_the_real_dnsweaver_gave_to_pihole_move() {
    // The real dnsweaver sends version 5 a token that it does not take; see the reference.
    let server = FakePiHole::start(6);
    let url = server.http().url();
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "pihole"),
        ("DNSWEAVER_LAN_URL", url.as_str()),
        ("DNSWEAVER_LAN_PASSWORD", server.password()),
    ];
    moves_from_the_real_dnsweaver(&instance, 3, || server.state().hosts.len() == 3);
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn a_zone_of_technitium_that_the_real_dnsweaver_filled_moves() {
    let server = FakeTechnitium::start_version(14, &["w.test"]);
    let url = server.http().url();
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "technitium"),
        ("DNSWEAVER_LAN_URL", url.as_str()),
        ("DNSWEAVER_LAN_TOKEN", server.token()),
        ("DNSWEAVER_LAN_ZONE", "w.test"),
    ];
    let of = |kind: &str| server.records("w.test").iter().filter(|record| record["type"] == kind).count();
    moves_from_the_real_dnsweaver(&instance, 6, || of("A") == 3 && of("HTTPS") == 3);
}

#[test]
#[ignore = "cargo xtask test --peers"]
fn records_that_the_real_dnsweaver_sent_to_a_webhook_move() {
    let server = DnsweaverReceiver::start("x-token", "secret");
    let url = server.url();
    let instance = [
        ("DNSWEAVER_LAN_TYPE", "webhook"),
        ("DNSWEAVER_LAN_URL", url.as_str()),
        ("DNSWEAVER_LAN_AUTH_HEADER", "X-Token"),
        ("DNSWEAVER_LAN_AUTH_TOKEN", "secret"),
    ];
    let addresses = || server.records().iter().filter(|record| record["type"] == "A").count();
    moves_from_the_real_dnsweaver(&instance, 3, || addresses() == 3);
}
