//! Marks of ownership where a name is no ordinary one.

use netstead_testkit::{Bind, Knot, PowerDns};

use super::dns_fixture::{FORWARD, Server, ZONES, powerdns, rfc2136, sandbox};

/// A name in the zone as long as names can be.
fn longest() -> String {
    let label = "l".repeat(61);
    let name = format!("{label}.{label}.{label}.{}.{FORWARD}", "m".repeat(57));
    assert_eq!(name.len(), 253);
    name
}

fn odd_names(config: &str, server: &Server) {
    let mut sandbox = sandbox(config);
    sandbox.start(&[]);
    let long = longest();
    sandbox.does("record set *.home.test A 10.0.3.1");
    sandbox.does("record set sub.home.test NS ns.elsewhere.test.");
    sandbox.does(&format!("record set {long} A 10.0.3.2"));
    let (wildcard, long) = ("*.home.test A 10.0.3.1".to_owned(), format!("{long} A 10.0.3.2"));
    let zone = server.until(FORWARD, &[&wildcard, &long, "sub.home.test NS ns.elsewhere.test."]);
    let marks = zone.marks();
    assert_eq!(marks.len(), 3, "{marks:?}");
    let owner = marks.iter().find_map(|mark| mark.strip_suffix("._wildcard.home.test")).unwrap();
    let apex = |mark: &&&str| mark.ends_with(&format!(".{owner}.home.test")) && mark.split('.').count() == 4;
    assert_eq!(marks.iter().filter(apex).count(), 2, "{marks:?}");
    sandbox.settles("lan");
    // PowerDNS raises its serial a moment after the records can be read.
    let zone = server.zone(FORWARD);

    // The store knows them after a restart, and the marks go with them.
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("apply");
    assert_eq!(server.zone(FORWARD), zone);
    sandbox.does("record delete *.home.test");
    sandbox.does("record delete sub.home.test");
    sandbox.does(&format!("record delete {}", longest()));
    let zone = server.until(FORWARD, &[]);
    assert_eq!(zone.marks(), Vec::<&str>::new());
}

#[test]
fn wildcards_delegations_and_the_longest_names_are_marked_on_powerdns() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    odd_names(&powerdns("lan", &daemon.api_url(), "interval = \"1s\""), &Server::from(&daemon));
}

#[test]
fn wildcards_delegations_and_the_longest_names_are_marked_on_bind() {
    let Some(daemon) = Bind::start(&ZONES) else { return };
    odd_names(&rfc2136("lan", daemon.address(), daemon.key(), "interval = \"1s\""), &Server::from(&daemon));
}

#[test]
fn wildcards_delegations_and_the_longest_names_are_marked_on_knot() {
    let Some(daemon) = Knot::start(&ZONES) else { return };
    odd_names(&rfc2136("lan", daemon.address(), daemon.key(), "interval = \"1s\""), &Server::from(&daemon));
}
