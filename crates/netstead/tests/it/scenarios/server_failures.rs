//! Servers that go away, refuse, or will not have one thing.

use std::fmt::Write as _;

use netstead_testkit::{Bind, DelayingProxy, PowerDns, TsigKey, wait_until};

use super::dns_fixture::{
    FORWARD, HOSTS, SOON, Server, ZONES, is_patch, is_update, powerdns, rfc2136, sandbox,
};
use crate::sandbox::Sandbox;

fn many(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "10.7.{}.{} n{n}.home.test", n / 250, n % 250).unwrap();
    }
    text
}

/// Waits until so many names are on the server.
fn counts(sandbox: &Sandbox, server: &Server, wanted: usize) {
    let there = wait_until(SOON, || (server.zone(FORWARD).plain().len() == wanted).then_some(()));
    let found = server.zone(FORWARD).plain().len();
    assert!(there.is_some(), "{found} of {wanted}\n{}", sandbox.does("get providers -o wide"));
}

/// The server ends while a request is on its way to it, and comes back.
fn ends_in_mid_apply(gate: &DelayingProxy, config: &str, restart: impl FnOnce() -> Server) {
    let mut sandbox = sandbox(&format!("{HOSTS}{config}"));
    sandbox.write("hosts", &many(300));
    gate.shut();
    sandbox.start(&[]);
    assert!(gate.holds_one(SOON));
    let server = restart();
    // The request gets lost; whether it took effect is looked at, and it is sent again.
    gate.open();
    counts(&sandbox, &server, 300);
    sandbox.settles("lan");
    assert_eq!(server.zone(FORWARD).marks().len(), 300);
}

#[test]
fn a_server_that_restarts_in_mid_apply_gets_everything_once() {
    let Some(mut daemon) = PowerDns::start(&ZONES) else { return };
    let api = daemon.api_url().strip_prefix("http://").unwrap().parse().unwrap();
    let gate = DelayingProxy::before(api, is_patch).unwrap();
    let url = format!("http://{}", gate.address());
    let config = powerdns("lan", &url, "reverse = false\ninterval = \"1s\"");
    ends_in_mid_apply(&gate, &config, || {
        daemon.restart().unwrap();
        Server::from(&daemon)
    });
}

#[test]
fn a_bind_that_restarts_in_mid_apply_gets_everything_once() {
    let Some(mut daemon) = Bind::start(&ZONES) else { return };
    let gate = DelayingProxy::before(daemon.address(), is_update).unwrap();
    let config = rfc2136("lan", gate.address(), daemon.key(), "reverse = false\ninterval = \"1s\"");
    ends_in_mid_apply(&gate, &config, || {
        daemon.restart().unwrap();
        Server::from(&daemon)
    });
}

#[test]
fn who_is_refused_says_so_and_the_others_go_on() {
    let (Some(shut), Some(strict), Some(fine)) =
        (PowerDns::start(&ZONES), Bind::start(&ZONES), PowerDns::start(&ZONES))
    else {
        return;
    };
    let wrong = TsigKey { secret: "d3Jvbmc=".into(), ..strict.key().clone() };
    let mut sandbox = sandbox(&format!(
        "{HOSTS}{}{}{}",
        powerdns("shut", &shut.api_url(), "").replace("netstead-test", "wrong"),
        rfc2136("strict", strict.address(), &wrong, ""),
        powerdns("fine", &fine.api_url(), ""),
    ));
    sandbox.write("hosts", "10.0.3.9 nas.home.test\n");
    sandbox.start(&[]);
    Server::from(&fine).until(FORWARD, &["nas.home.test A 10.0.3.9"]);
    let told = wait_until(SOON, || {
        let status = sandbox.does("status");
        (status.matches("refuses these credentials").count() == 2).then_some(status)
    });
    let status = told.unwrap_or_else(|| panic!("{}", sandbox.does("status")));
    assert!(!status.contains("wrong") && !status.contains("d3Jvbmc="), "no secret is told:\n{status}");
    assert_eq!(sandbox.netstead(["status", "--check"]).code, 1);
    sandbox.settles("fine");
    assert_eq!(Server::from(&strict).zone(FORWARD).records, Vec::<String>::new());
}

/// A thousand names, and one that no server will have: a mail server whose name cannot be a host's.
fn poison(config: &str, server: &Server) {
    let mut sandbox = sandbox(&format!("{HOSTS}{config}"));
    sandbox.write("hosts", &many(999));
    sandbox.start(&["--dry-run"]);
    sandbox.netstead(["record", "set", "n617-poison.home.test", "MX", "10 _mail.home.test."]);
    sandbox.stop();
    sandbox.start(&[]);
    counts(&sandbox, server, 999);
    sandbox.does("apply");
    let records = sandbox.does("get records -o wide");
    let parked: Vec<&str> = records.lines().filter(|line| !line.contains(" ok ")).skip(1).collect();
    assert!(
        matches!(parked.as_slice(), [one] if one.contains("n617-poison.home.test") && one.contains("the server rejects it: ")),
        "{parked:#?}"
    );
    let explained = sandbox.does("explain n617-poison.home.test");
    assert!(explained.contains("rejects"), "{explained}");
    let status = sandbox.does("status");
    assert!(status.contains("n617-poison.home.test"), "{status}");
}

#[test]
fn one_poison_among_a_thousand_is_parked_on_powerdns() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    poison(&powerdns("lan", &daemon.api_url(), "reverse = false"), &Server::from(&daemon));
}

#[test]
fn one_poison_among_a_thousand_is_parked_on_bind() {
    let Some(daemon) = Bind::start(&ZONES) else { return };
    poison(&rfc2136("lan", daemon.address(), daemon.key(), "reverse = false"), &Server::from(&daemon));
}

/// The file itself is the same, so only the signal can tell.
#[test]
fn a_signal_makes_a_new_secret_known_and_disturbs_nobody() {
    let (Some(daemon), Some(other)) = (PowerDns::start(&ZONES), PowerDns::start(&ZONES)) else { return };
    let secret = powerdns("lan", &daemon.api_url(), "").replace("\"netstead-test\"", "{ file = \"key\" }");
    let mut sandbox = sandbox(&format!("{secret}{}", powerdns("other", &other.api_url(), "")));
    sandbox.write("key", "wrong\n");
    sandbox.start(&[]);
    sandbox.does("record set www.home.test A 10.0.3.9");
    let (server, other) = (Server::from(&daemon), Server::from(&other));
    other.until(FORWARD, &["www.home.test A 10.0.3.9"]);
    // PowerDNS shows the records a moment before the serial it gives them.
    let before = wait_until(SOON, || Some(other.zone(FORWARD)).filter(|zone| zone.serial > 1)).unwrap();
    let told =
        wait_until(SOON, || sandbox.does("status").contains("refuses these credentials").then_some(()));
    assert!(told.is_some(), "{}", sandbox.does("status"));

    sandbox.write("key", "netstead-test\n");
    sandbox.server().signal("HUP").unwrap();
    server.until(FORWARD, &["www.home.test A 10.0.3.9"]);
    sandbox.settles("lan");
    assert_eq!(other.zone(FORWARD), before);
}
