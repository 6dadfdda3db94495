//! The move from dnsweaver on each kind of server: filled by its rules, adopted by one command, nothing left to do.

use std::net::SocketAddr;

use netstead_testkit::{
    AdGuardVersion, Bind, Dnsmasq, DnsweaverReceiver, FakeAdGuard, FakeCloudflare, FakePiHole,
    FakeTechnitium, PowerDns, SecretiveBind, TsigKey, wait_until,
};
use serde_json::json;

use super::dns_fixture::SOON;
use crate::sandbox::Sandbox;

/// The names that dnsweaver published, each with 10.0.3.9.
pub(super) const NAMES: [&str; 3] = ["web.w.test", "api.w.test", "www.w.test"];

/// A zone as dnsweaver leaves it on a server with DNS UPDATE: records, marks of both kinds, and its list of names.
const ZONE_LINES: &str = "\
web 300 IN A 10.0.3.9
api 300 IN A 10.0.3.9
www 300 IN A 10.0.3.9
_dnsweaver.web 300 IN TXT \"heritage=dnsweaver,instance=home\"
_dnsweaver.www 300 IN TXT \"heritage=dnsweaver,instance=home\"
_dnsweaver.api 300 IN TXT \"heritage=dnsweaver,instance=home,record-target=MTAuMC4zLjk,record-type=A,record-version=2\"
_dnsweaver-catalog-0 300 IN TXT \"web.w.test\" \"api.w.test\"
_dnsweaver-catalog-1 300 IN TXT \"www.w.test\"
hand 60 IN A 192.0.2.3
";

/// A sandbox whose only settings are dnsweaver's, for one instance `lan` and the names of a file of Traefik.
pub(super) fn in_dnsweavers_place(instance: &[(&'static str, &str)]) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let rules = sandbox.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    let routers = NAMES.map(|name| format!("    {}:\n      rule: Host(`{name}`)\n", &name[..3])).concat();
    std::fs::write(rules.join("all.yml"), format!("http:\n  routers:\n{routers}")).unwrap();
    for (name, value) in [
        ("DNSWEAVER_INSTANCES", "lan"),
        ("DNSWEAVER_INSTANCE_ID", "home"),
        ("DNSWEAVER_PLATFORM", "none"),
        ("DNSWEAVER_RECONCILE_INTERVAL", "1s"),
        ("DNSWEAVER_SOURCE_TRAEFIK_FILE_PATHS", rules.to_str().unwrap()),
        ("DNSWEAVER_LAN_TARGET", "10.0.3.9"),
        ("DNSWEAVER_LAN_DOMAINS", "*.w.test"),
    ] {
        sandbox.set(name, value);
    }
    for (name, value) in instance {
        sandbox.set(name, value);
    }
    sandbox
}

/// Starts Netstead in dnsweaver's place, adopts so many values, and waits until nothing is left to do.
pub(super) fn moves(sandbox: &mut Sandbox, values: usize) {
    sandbox.start(&["--log-format", "json"]);
    let blocked = wait_until(SOON, || {
        let seen = sandbox.netstead(["plan", "lan"]);
        NAMES
            .iter()
            .all(|name| seen.out.contains(name))
            .then_some(())
            .filter(|()| seen.out.contains("blocked"))
    });
    assert!(blocked.is_some(), "{}", sandbox.netstead(["plan", "lan"]).out);
    let taken = sandbox.netstead(["adopt", "--from", "dnsweaver"]);
    assert_eq!(taken.code, 0, "{}{}", taken.out, taken.err);
    for name in NAMES {
        assert!(taken.out.contains(&format!("lan  {name} A 10.0.3.9  from dnsweaver")), "{}", taken.out);
    }
    assert!(taken.err.contains(&format!("{values} values taken over")), "{}", taken.err);
    let done = wait_until(SOON, || (sandbox.netstead(["plan", "lan"]).code == 0).then_some(()));
    let seen = sandbox.netstead(["plan", "lan"]);
    assert!(done.is_some(), "plan says {}:\n{}{}", seen.code, seen.out, seen.err);
    sandbox.stop();
}

/// The answers of the server, one for each query.
pub(crate) fn ask(server: SocketAddr, name: &str, kind: &str) -> String {
    let mut command = std::process::Command::new("dig");
    command.args(["+short", &format!("@{}", server.ip()), "-p", &server.port().to_string(), name, kind]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

fn a_zone_moves(server: SocketAddr, key: &TsigKey) {
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "rfc2136"),
        ("DNSWEAVER_LAN_SERVER", &server.to_string()),
        ("DNSWEAVER_LAN_ZONE", "w.test."),
        ("DNSWEAVER_LAN_TSIG_KEY_NAME", &format!("{}.", key.name)),
        ("DNSWEAVER_LAN_TSIG_SECRET", &key.secret),
        ("DNSWEAVER_LAN_TSIG_ALGORITHM", &key.algorithm),
    ]);
    moves(&mut sandbox, 3);
    for name in NAMES {
        assert_eq!(ask(server, name, "A"), "10.0.3.9\n");
        assert_eq!(ask(server, &format!("_dnsweaver.{name}"), "TXT"), "");
    }
    for number in 0..2 {
        assert_eq!(ask(server, &format!("_dnsweaver-catalog-{number}.w.test"), "TXT"), "");
    }
    assert_eq!(ask(server, "hand.w.test", "A"), "192.0.2.3\n");
}

#[test]
fn a_zone_of_bind_moves_with_dnsweavers_variables_alone() {
    let Some(bind) = Bind::with_records(&["w.test"], &TsigKey::default(), ZONE_LINES) else { return };
    a_zone_moves(bind.address(), bind.key());
}

#[test]
fn a_zone_of_bind_moves_where_transfers_are_refused() {
    let Some(bind) = SecretiveBind::with_records(&["w.test"], &TsigKey::default(), ZONE_LINES) else {
        return;
    };
    a_zone_moves(bind.address(), bind.key());
}

/// A mark as dnsweaver writes it.
const MARK: &str = "heritage=dnsweaver,instance=home";

#[test]
fn rewrites_of_adguard_home_move() {
    let server = FakeAdGuard::start(AdGuardVersion::V0_107_79);
    for name in NAMES {
        server.add(name, "10.0.3.9", true);
    }
    server.add("hand.w.test", "192.0.2.3", true);
    let before = server.rewrites();
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "adguard"),
        ("DNSWEAVER_LAN_URL", &server.http().url()),
        ("DNSWEAVER_LAN_USERNAME", "netstead"),
        ("DNSWEAVER_LAN_PASSWORD", "netstead-test"),
    ]);
    moves(&mut sandbox, 3);
    assert_eq!(server.rewrites(), before);
}

#[test]
fn hosts_of_pihole_move() {
    for version in [5, 6] {
        let server = FakePiHole::start(version);
        let mut hosts: Vec<String> = NAMES.iter().map(|name| format!("10.0.3.9 {name}")).collect();
        hosts.push("192.0.2.3 hand.w.test".to_owned());
        server.change(|state| state.hosts.clone_from(&hosts));
        let mut sandbox = in_dnsweavers_place(&[
            ("DNSWEAVER_LAN_TYPE", "pihole"),
            ("DNSWEAVER_LAN_URL", &server.http().url()),
            ("DNSWEAVER_LAN_PASSWORD", server.password()),
        ]);
        moves(&mut sandbox, 3);
        assert_eq!(server.state().hosts, hosts);
    }
}

#[test]
fn records_behind_a_webhook_move() {
    let server = DnsweaverReceiver::start("x-token", "secret");
    let record = |name: &str, kind: &str, value: &str| json!({ "hostname": name, "type": kind, "value": value, "ttl": 300 });
    for name in NAMES {
        server.put(record(name, "A", "10.0.3.9"));
        server.put(record(&format!("_dnsweaver.{name}"), "TXT", MARK));
    }
    server.put(record("hand.w.test", "A", "192.0.2.3"));
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "webhook"),
        ("DNSWEAVER_LAN_URL", &server.url()),
        ("DNSWEAVER_LAN_AUTH_HEADER", "X-Token"),
        ("DNSWEAVER_LAN_AUTH_TOKEN", "secret"),
    ]);
    moves(&mut sandbox, 3);
    let left = server.records();
    assert!(left.iter().all(|record| record["value"] != MARK), "{left:?}");
    assert_eq!(left.iter().filter(|record| record["type"] == "A").count(), 4, "{left:?}");
}

#[test]
fn a_zone_of_technitium_moves_with_its_https_records() {
    let server = FakeTechnitium::start(&["w.test"]);
    for name in NAMES {
        let add = |name: &str, kind: &str, value: &[(&str, &str)]| {
            let at = [("zone", "w.test"), ("domain", name), ("type", kind), ("ttl", "300")];
            server.by_hand("add", &[&at[..], value].concat());
        };
        add(name, "A", &[("ipAddress", "10.0.3.9")]);
        add(name, "HTTPS", &[("svcPriority", "1"), ("svcTargetName", "."), ("svcParams", "alpn|h2")]);
        add(&format!("_dnsweaver.{name}"), "TXT", &[("text", MARK)]);
    }
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "technitium"),
        ("DNSWEAVER_LAN_URL", &server.http().url()),
        ("DNSWEAVER_LAN_TOKEN", server.token()),
        ("DNSWEAVER_LAN_ZONE", "w.test"),
    ]);
    moves(&mut sandbox, 6);
    let left: Vec<String> = server.records("w.test").iter().map(ToString::to_string).collect();
    assert!(!left.iter().any(|record| record.contains(MARK)), "{left:#?}");
    assert_eq!(left.iter().filter(|record| record.contains("10.0.3.9")).count(), 3, "{left:#?}");
}

#[test]
fn a_zone_of_cloudflare_moves() {
    let server = FakeCloudflare::start(&["w.test"]);
    for name in NAMES {
        let record = json!({ "name": name, "type": "A", "content": "10.0.3.9", "ttl": 1, "proxied": true });
        server.by_hand("w.test", record);
        let mark = format!("\"{MARK}\"");
        let at = format!("_dnsweaver.{name}");
        server.by_hand("w.test", json!({ "name": at, "type": "TXT", "content": mark, "ttl": 300 }));
    }
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "cloudflare"),
        ("DNSWEAVER_LAN_TOKEN", server.token()),
        ("DNSWEAVER_LAN_ZONE", "w.test"),
        ("NETSTEAD_DNS_LAN_URL", &server.url()),
    ]);
    moves(&mut sandbox, 3);
    let left: Vec<String> = server.records("w.test").iter().map(ToString::to_string).collect();
    assert!(!left.iter().any(|record| record.contains(MARK)), "{left:#?}");
}

/// The file that dnsweaver writes for dnsmasq.
fn dnsmasq_lines() -> String {
    let lines = NAMES.map(|name| format!("address=/{name}/10.0.3.9\n")).concat();
    format!("# Managed by dnsweaver - DO NOT EDIT MANUALLY\n{lines}")
}

#[test]
fn the_file_of_dnsmasq_is_replaced_by_ours() {
    let Some(server) = Dnsmasq::start() else { return };
    let (theirs, ours) = (server.conf_dir().join("dnsweaver.conf"), server.conf_dir().join("netstead.conf"));
    std::fs::write(server.conf_dir().join("hand.conf"), "address=/hand.w.test/192.0.2.3\n").unwrap();
    std::fs::write(&theirs, format!("{}address=/old.w.test/10.0.3.9\n", dnsmasq_lines())).unwrap();
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "dnsmasq"),
        ("DNSWEAVER_LAN_CONFIG_DIR", server.conf_dir().to_str().unwrap()),
        ("DNSWEAVER_LAN_RELOAD_COMMAND", &server.restart_command().join(" ")),
    ]);
    // All that is in its file was dnsweaver's, also what nothing asks for any more.
    moves(&mut sandbox, 4);
    assert!(!theirs.exists(), "dnsweaver's file is removed");
    let text = std::fs::read_to_string(&ours).unwrap();
    for name in NAMES.iter().chain(&["old.w.test"]) {
        assert!(text.contains(name), "{text}");
        assert_eq!(server.ask(name, "A"), ["10.0.3.9"]);
    }
    assert_eq!(server.ask("hand.w.test", "A"), ["192.0.2.3"]);
}

#[test]
fn names_of_dnsmasq_that_are_not_ours_to_answer_for_stay_in_its_file() {
    let Some(server) = Dnsmasq::start() else { return };
    let theirs = server.conf_dir().join("dnsweaver.conf");
    std::fs::write(&theirs, format!("{}address=/x.elsewhere.test/10.0.3.9\n", dnsmasq_lines())).unwrap();
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "dnsmasq"),
        ("DNSWEAVER_LAN_CONFIG_DIR", server.conf_dir().to_str().unwrap()),
        ("DNSWEAVER_LAN_RELOAD_COMMAND", &server.restart_command().join(" ")),
    ]);
    moves(&mut sandbox, 3);
    let left = std::fs::read_to_string(&theirs).unwrap();
    assert_eq!(left, "# Managed by dnsweaver - DO NOT EDIT MANUALLY\naddress=/x.elsewhere.test/10.0.3.9\n");
}

#[test]
fn lines_of_dnsweaver_in_the_custom_list_of_pihole_become_lines_that_count() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("custom.list");
    let Some(server) = Dnsmasq::with_options(&format!("addn-hosts={}", list.display())) else { return };
    std::fs::write(&list, format!("192.0.2.3 hand.w.test\n{}", dnsmasq_lines())).unwrap();
    assert_eq!(server.ask("web.w.test", "A"), [""; 0], "Pi-hole does not understand what dnsweaver wrote");
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "pihole"),
        ("DNSWEAVER_LAN_ACCESS_MODE", "file"),
        ("DNSWEAVER_LAN_CONFIG_DIR", dir.path().to_str().unwrap()),
        ("DNSWEAVER_LAN_RELOAD_COMMAND", &server.restart_command().join(" ")),
        ("NETSTEAD_DNS_LAN_CNAME_FILE", server.conf_dir().join("05-cname.conf").to_str().unwrap()),
    ]);
    sandbox.start(&["--log-format", "json"]);
    // The names are not there as far as Pi-hole knows, so they are made; then the old lines mean nothing.
    let done = wait_until(SOON, || (sandbox.netstead(["plan", "lan"]).code == 0).then_some(()));
    assert!(done.is_some(), "{}", sandbox.netstead(["plan", "lan"]).out);
    let taken = sandbox.netstead(["adopt", "--from", "dnsweaver"]);
    assert_eq!(taken.code, 0, "{}{}", taken.out, taken.err);
    sandbox.stop();
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(!text.contains("address=") && text.contains("192.0.2.3 hand.w.test\n"), "{text}");
    for name in NAMES {
        assert_eq!(text.matches(&format!("10.0.3.9 {name}\n")).count(), 1, "{text}");
        assert_eq!(server.ask(name, "A"), ["10.0.3.9"]);
    }
}

#[test]
fn a_zone_of_powerdns_moves() {
    let Some(server) = PowerDns::start(&["w.test"]) else { return };
    let put = |name: &str, kind: &str, content: &str| {
        let statement = format!(
            "INSERT INTO records (domain_id, name, type, content, ttl) SELECT id, '{name}', '{kind}', '{content}', 300 \
             FROM domains WHERE name = 'w.test'"
        );
        server.sql(&statement).unwrap();
    };
    for name in NAMES {
        put(name, "A", "10.0.3.9");
        put(&format!("_dnsweaver.{name}"), "TXT", &format!("\"{MARK}\""));
    }
    put("hand.w.test", "A", "192.0.2.3");
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "powerdns"),
        ("DNSWEAVER_LAN_URL", &server.api_url()),
        ("DNSWEAVER_LAN_API_KEY", server.api_key()),
        ("DNSWEAVER_LAN_ZONE", "w.test"),
    ]);
    moves(&mut sandbox, 3);
    for name in NAMES {
        assert_eq!(ask(server.address(), name, "A"), "10.0.3.9\n");
        assert_eq!(ask(server.address(), &format!("_dnsweaver.{name}"), "TXT"), "");
    }
    assert_eq!(ask(server.address(), "hand.w.test", "A"), "192.0.2.3\n");
}

#[test]
fn an_adoption_that_takes_nothing_over_and_leaves_something_fails() {
    let Some(server) = Dnsmasq::start() else { return };
    // All of it is outside of what this instance answers for.
    let theirs = server.conf_dir().join("dnsweaver.conf");
    std::fs::write(&theirs, "address=/x.elsewhere.test/10.0.3.9\n").unwrap();
    let mut sandbox = in_dnsweavers_place(&[
        ("DNSWEAVER_LAN_TYPE", "dnsmasq"),
        ("DNSWEAVER_LAN_CONFIG_DIR", server.conf_dir().to_str().unwrap()),
        ("DNSWEAVER_LAN_RELOAD_COMMAND", &server.restart_command().join(" ")),
    ]);
    sandbox.start(&["--log-format", "json"]);
    let done = wait_until(SOON, || (sandbox.netstead(["plan", "lan"]).code == 0).then_some(()));
    assert!(done.is_some(), "{}", sandbox.netstead(["plan", "lan"]).out);
    for dry in [&["--dry-run"][..], &[]] {
        let tried = sandbox.netstead(["adopt", "--from", "dnsweaver"].iter().chain(dry));
        assert_eq!((tried.code, tried.out.as_str()), (1, ""), "{}", tried.err);
        let left = "left on lan: x.elsewhere.test A 10.0.3.9: lan does not answer for it";
        assert!(tried.err.contains(left), "{}", tried.err);
    }
    assert!(theirs.exists());
    sandbox.stop();
}

/// Every type of instance that `import` carries over has its move in this file.
#[test]
fn no_type_of_instance_is_without_a_move() {
    let moves = include_str!("dnsweaver_moves.rs");
    let importer = include_str!("../../../src/import/dnsweaver/provider.rs");
    let list = importer.split("pub(super) const KINDS").nth(1).unwrap().split("];").next().unwrap();
    let kinds: Vec<&str> =
        list.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next()).collect();
    assert_eq!(kinds.len(), 8, "{list}");
    for kind in kinds {
        assert!(moves.contains(&format!("(\"DNSWEAVER_LAN_TYPE\", \"{kind}\")")), "{kind} has no move here");
    }
}
