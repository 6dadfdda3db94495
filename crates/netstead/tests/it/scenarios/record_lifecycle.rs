//! A name comes, changes and goes; and nothing happens when nothing changed.

use netstead_testkit::{Bind, Knot, PowerDns};

use super::dns_fixture::{FORWARD, HOSTS, REVERSE, Server, ZONES, powerdns, rfc2136, sandbox};

const MORE: &str = "grace = \"0s\"\ninterval = \"1s\"";

fn life(config: &str, server: &Server) {
    let mut sandbox = sandbox(&format!("{HOSTS}{config}"));
    sandbox.write("hosts", "10.0.3.9 nas.home.test\n10.0.3.8 printer.home.test\n");
    sandbox.start(&[]);
    server.until(FORWARD, &["nas.home.test A 10.0.3.9", "printer.home.test A 10.0.3.8"]);
    let pointers =
        ["8.3.0.10.in-addr.arpa PTR printer.home.test.", "9.3.0.10.in-addr.arpa PTR nas.home.test."];
    let reverse = server.until(REVERSE, &pointers);
    assert_eq!(reverse.marks().len(), 2, "{reverse:?}");

    sandbox.write("hosts", "10.0.3.7 nas.home.test\n10.0.3.8 printer.home.test\n");
    server.until(FORWARD, &["nas.home.test A 10.0.3.7", "printer.home.test A 10.0.3.8"]);
    sandbox.does("record set nas.home.test TXT hello");
    sandbox.does("record set www.home.test CNAME nas.home.test.");
    server.until(
        FORWARD,
        &[
            "nas.home.test A 10.0.3.7",
            "nas.home.test TXT \"hello\"",
            "printer.home.test A 10.0.3.8",
            "www.home.test CNAME nas.home.test.",
        ],
    );
    sandbox.does("record delete www.home.test");
    sandbox.does("record delete nas.home.test TXT");

    // Absent in two reports, and there is no grace: it goes, with its pointer and its marks.
    sandbox.write("hosts", "10.0.3.7 nas.home.test\n");
    sandbox.does("apply");
    sandbox.does("apply");
    let forward = server.until(FORWARD, &["nas.home.test A 10.0.3.7"]);
    assert_eq!(forward.marks().len(), 1, "{forward:?}");
    server.until(REVERSE, &["7.3.0.10.in-addr.arpa PTR nas.home.test."]);
    sandbox.settles("lan");

    // After a restart nothing is written.
    let before = ZONES.map(|zone| server.zone(zone));
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("apply");
    sandbox.does("apply");
    sandbox.settles("lan");
    assert_eq!(ZONES.map(|zone| server.zone(zone)), before);
    sandbox.stop();
}

#[test]
fn names_come_change_and_go_on_powerdns() {
    let Some(server) = PowerDns::start(&ZONES) else { return };
    life(&powerdns("lan", &server.api_url(), MORE), &Server::from(&server));
}

#[test]
fn names_come_change_and_go_on_bind() {
    let Some(server) = Bind::start(&ZONES) else { return };
    life(&rfc2136("lan", server.address(), server.key(), MORE), &Server::from(&server));
}

#[test]
fn names_come_change_and_go_on_knot() {
    let Some(server) = Knot::start(&ZONES) else { return };
    life(&rfc2136("lan", server.address(), server.key(), MORE), &Server::from(&server));
}
