//! A name comes, changes and goes; and nothing happens when nothing changed.

use netstead_testkit::{Bind, Knot, PowerDns};

use super::lab::{FORWARD, HOSTS, REVERSE, Server, ZONES, house, powerdns, rfc2136};

const MORE: &str = "grace = \"0s\"\ninterval = \"1s\"";

fn life(config: &str, server: &Server) {
    let mut house = house(&format!("{HOSTS}{config}"));
    house.write("hosts", "10.0.3.9 nas.home.test\n10.0.3.8 printer.home.test\n");
    house.start(&[]);
    server.until(FORWARD, &["nas.home.test A 10.0.3.9", "printer.home.test A 10.0.3.8"]);
    let pointers =
        ["8.3.0.10.in-addr.arpa PTR printer.home.test.", "9.3.0.10.in-addr.arpa PTR nas.home.test."];
    let reverse = server.until(REVERSE, &pointers);
    assert_eq!(reverse.marks().len(), 2, "{reverse:?}");

    house.write("hosts", "10.0.3.7 nas.home.test\n10.0.3.8 printer.home.test\n");
    server.until(FORWARD, &["nas.home.test A 10.0.3.7", "printer.home.test A 10.0.3.8"]);
    house.does("record set nas.home.test TXT hello");
    house.does("record set www.home.test CNAME nas.home.test.");
    server.until(
        FORWARD,
        &[
            "nas.home.test A 10.0.3.7",
            "nas.home.test TXT \"hello\"",
            "printer.home.test A 10.0.3.8",
            "www.home.test CNAME nas.home.test.",
        ],
    );
    house.does("record delete www.home.test");
    house.does("record delete nas.home.test TXT");

    // Absent in two reports, and there is no grace: it goes, with its pointer and its marks.
    house.write("hosts", "10.0.3.7 nas.home.test\n");
    house.does("apply");
    house.does("apply");
    let forward = server.until(FORWARD, &["nas.home.test A 10.0.3.7"]);
    assert_eq!(forward.marks().len(), 1, "{forward:?}");
    server.until(REVERSE, &["7.3.0.10.in-addr.arpa PTR nas.home.test."]);
    house.settles("lan");

    // After a restart nothing is written.
    let before = ZONES.map(|zone| server.zone(zone));
    house.stop();
    house.start(&[]);
    house.does("apply");
    house.does("apply");
    house.settles("lan");
    assert_eq!(ZONES.map(|zone| server.zone(zone)), before);
    house.stop();
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
