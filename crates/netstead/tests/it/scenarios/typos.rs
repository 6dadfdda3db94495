//! A typo in the file of a running server, as a person makes it.

use netstead_testkit::{PowerDns, until};

use super::lab::{FORWARD, HOSTS, SOON, Server, ZONES, house, powerdns};

#[test]
fn a_typo_in_the_file_of_a_running_server_deletes_nothing() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    let settings = "grace = \"0s\"\nbreaker = { changes = 1000, percent = 100, total = 1000 }";
    let pool = "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ndomain = \"home.test\"\n";
    let good = format!("{HOSTS}{pool}{}", powerdns("lan", &daemon.api_url(), settings));
    let mut house = house(&good);
    house.write("hosts", "10.0.3.9 nas.home.test\n10.0.3.8 printer.home.test\n");
    house.start(&[]);
    house.does("claim lan web-1");
    let server = Server::from(&daemon);
    let all = ["nas.home.test A 10.0.3.9", "printer.home.test A 10.0.3.8", "web-1.home.test A 10.0.3.1"];
    server.until(FORWARD, &all);

    // Those that can be read, and mean something else.
    for (right, wrong) in [
        ("domains = [\"home.test\"]", "domains = [\"hmoe.test\"]"),
        ("[dns.lan]", "[dns.lna]"),
        ("path = \"hosts\"", "path = \"hsots\""),
        ("[source.office]", "[source.ofice]"),
        ("netstead-test", "netstead-tset"),
        ("domain = \"home.test\"", "domain = \"home.tset\""),
        (HOSTS, ""),
    ] {
        assert!(good.contains(right), "{right}");
        house.reload(&good.replace(right, wrong));
        for _ in 0..2 {
            house.netstead(["apply"]);
        }
        assert_eq!(server.zone(FORWARD).plain(), all, "after {wrong}");
    }
    // And one that cannot.
    let stays = "the old one stays";
    let before = house.server().log().matches(stays).count();
    house.write("netstead.toml", &good.replace("domains", "domian"));
    house.server().signal("HUP").unwrap();
    let told = until(SOON, || (house.server().log().matches(stays).count() > before).then_some(()));
    assert!(told.is_some(), "{}", house.server().log());
    assert_eq!(server.zone(FORWARD).plain(), all);

    house.reload(&good);
    house.does("apply");
    assert_eq!(server.zone(FORWARD).plain(), all);
    house.settles("lan");
}
