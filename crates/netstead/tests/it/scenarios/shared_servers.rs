//! Beside others: hand-made values, a second server, a second installation.

use netstead_testkit::{Bind, PowerDns, TsigKey};

use super::dns_fixture::{FORWARD, HOSTS, REVERSE, Server, ZONES, powerdns, rfc2136, sandbox};

#[test]
fn a_set_is_shared_with_what_somebody_made_by_hand() {
    let by_hand = "www IN A 192.0.2.1\n";
    let Some(bind) = Bind::with_records(&[FORWARD], &TsigKey::default(), by_hand) else { return };
    let server = Server::from(&bind);
    let config = |more: &str| rfc2136("lan", bind.address(), bind.key(), more);
    let mut sandbox = sandbox(&config("interval = \"1s\""));
    sandbox.start(&[]);
    sandbox.does("record set www.home.test A 10.0.3.9");
    sandbox.does("apply");
    // It is foreign: it is left, and the plan says how to go on.
    assert_eq!(server.zone(FORWARD).records, ["www.home.test A 192.0.2.1"]);
    let plan = sandbox.netstead(["plan", "lan"]).out;
    assert!(plan.contains("blocked on lan") && plan.contains("share = true"), "{plan}");

    sandbox.reload(&config("interval = \"1s\"\nshare = true"));
    server.until(FORWARD, &["www.home.test A 10.0.3.9", "www.home.test A 192.0.2.1"]);
    sandbox.does("record set www.home.test A 10.0.3.10");
    server.until(FORWARD, &["www.home.test A 10.0.3.10", "www.home.test A 192.0.2.1"]);
    sandbox.does("record delete www.home.test");
    let zone = server.until(FORWARD, &["www.home.test A 192.0.2.1"]);
    assert_eq!(zone.marks(), Vec::<&str>::new());
    sandbox.settles("lan");
}

#[test]
fn one_name_has_another_address_inside_than_outside() {
    let (Some(inside), Some(outside)) = (PowerDns::start(&ZONES), Bind::start(&ZONES)) else { return };
    let public = "target = \"192.0.2.80\"\nexclude_domains = [\"secret.home.test\"]";
    let mut sandbox = sandbox(&format!(
        "{HOSTS}{}{}",
        powerdns("inside", &inside.api_url(), ""),
        rfc2136("outside", outside.address(), outside.key(), public)
    ));
    sandbox.write("hosts", "10.0.3.9 www.home.test\n10.0.3.8 secret.home.test\n");
    sandbox.start(&[]);
    let (inside, outside) = (Server::from(&inside), Server::from(&outside));
    inside.until(FORWARD, &["secret.home.test A 10.0.3.8", "www.home.test A 10.0.3.9"]);
    outside.until(FORWARD, &["www.home.test A 192.0.2.80"]);
    inside.until(
        REVERSE,
        &["8.3.0.10.in-addr.arpa PTR secret.home.test.", "9.3.0.10.in-addr.arpa PTR www.home.test."],
    );
    // A target is shared by many names: it has no name of its own.
    assert_eq!(outside.zone(REVERSE).plain(), Vec::<&str>::new());
    sandbox.settles("inside");
    sandbox.settles("outside");
    let explained = sandbox.does("explain www.home.test");
    assert!(explained.contains("10.0.3.9") && explained.contains("192.0.2.80"), "{explained}");
}

#[test]
fn a_second_installation_with_an_empty_store_touches_nothing_of_the_first() {
    let Some(server) = PowerDns::start(&ZONES) else { return };
    let config =
        format!("{HOSTS}{}", powerdns("lan", &server.api_url(), "grace = \"0s\"\ninterval = \"1s\""));
    let mut first = sandbox(&config);
    first.write("hosts", "10.0.3.9 nas.home.test\n10.0.3.8 printer.home.test\n");
    first.start(&[]);
    let server = Server::from(&server);
    server.until(FORWARD, &["nas.home.test A 10.0.3.9", "printer.home.test A 10.0.3.8"]);
    first.settles("lan");
    let before = ZONES.map(|zone| server.zone(zone));

    // The same configuration, and a file that knows one name of the first otherwise and one as it is.
    let mut second = sandbox(&config);
    second.write("hosts", "10.0.3.7 nas.home.test\n10.0.3.8 printer.home.test\n");
    second.start(&[]);
    second.does("apply");
    second.write("hosts", "10.0.3.7 nas.home.test\n");
    second.does("apply");
    second.does("apply");
    assert_eq!(ZONES.map(|zone| server.zone(zone)), before);
    let plan = second.netstead(["plan", "lan"]).out;
    assert!(plan.contains("blocked"), "{plan}");

    // What it has of its own stands beside, and goes again.
    second.write("hosts", "10.0.3.6 tv.home.test\n");
    let all = ["nas.home.test A 10.0.3.9", "printer.home.test A 10.0.3.8", "tv.home.test A 10.0.3.6"];
    server.until(FORWARD, &all);
    first.does("apply");
    first.settles("lan");
    server.until(FORWARD, &all);
}
