//! A typo in the file of a running server, as a person makes it.

use netstead_testkit::{PowerDns, wait_until};

use super::dns_fixture::{FORWARD, HOSTS, SOON, Server, ZONES, powerdns, sandbox};

#[test]
fn a_typo_in_the_file_of_a_running_server_deletes_nothing() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    let settings = "grace = \"0s\"\nbreaker = { changes = 1000, percent = 100, total = 1000 }";
    let pool = "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ndomain = \"home.test\"\n";
    let good = format!("{HOSTS}{pool}{}", powerdns("lan", &daemon.api_url(), settings));
    let mut sandbox = sandbox(&good);
    sandbox.write("hosts", "10.0.3.9 nas.home.test\n10.0.3.8 printer.home.test\n");
    sandbox.start(&[]);
    sandbox.does("claim lan web-1");
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
        sandbox.reload(&good.replace(right, wrong));
        for _ in 0..2 {
            sandbox.netstead(["apply"]);
        }
        assert_eq!(server.zone(FORWARD).plain(), all, "after {wrong}");
    }
    // And one that cannot.
    let stays = "the old one stays";
    let before = sandbox.server().log().matches(stays).count();
    sandbox.write("netstead.toml", &good.replace("domains", "domian"));
    sandbox.server().signal("HUP").unwrap();
    let told = wait_until(SOON, || (sandbox.server().log().matches(stays).count() > before).then_some(()));
    assert!(told.is_some(), "{}", sandbox.server().log());
    assert_eq!(server.zone(FORWARD).plain(), all);

    sandbox.reload(&good);
    sandbox.does("apply");
    assert_eq!(server.zone(FORWARD).plain(), all);
    sandbox.settles("lan");
}
