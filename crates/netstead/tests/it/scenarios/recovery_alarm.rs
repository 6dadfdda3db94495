//! A lost store in front of a server that remembers the newest write.

use netstead_testkit::Bind;

use super::dns_fixture::{FORWARD, HOSTS, Server, ZONES, rfc2136, sandbox};

#[test]
fn the_first_approval_after_recover_raises_no_alarm() {
    let Some(daemon) = Bind::start(&ZONES) else { return };
    let server = Server::from(&daemon);
    let table = rfc2136("lan", daemon.address(), daemon.key(), "");
    let mut sandbox = sandbox(&format!("{HOSTS}{table}"));
    for (last, address) in [(8, "10.0.3.7"), (9, "10.0.3.8")] {
        sandbox.write("hosts", &format!("{address} www.home.test\n10.0.3.{last} mail.home.test\n"));
        sandbox.start(&[]);
        server.until(
            FORWARD,
            &[&format!("mail.home.test A 10.0.3.{last}"), &format!("www.home.test A {address}")],
        );
        sandbox.settles("lan");
        sandbox.stop();
    }
    let owner = server.zone(FORWARD).marks()[0].trim_start_matches("_netstead-").to_owned();
    let owner = owner.split('.').next().unwrap().to_owned();
    std::fs::remove_dir_all(sandbox.data()).unwrap();
    sandbox.write("hosts", "10.0.3.6 www.home.test\n10.0.3.9 mail.home.test\n");
    sandbox.start(&[]);

    sandbox.does(&format!("recover --owner {owner}"));
    let plan = sandbox.netstead(["plan", "lan"]);
    assert_eq!(plan.code, 3, "{}", plan.out);
    let hash = plan.out.split("apply ").nth(1).unwrap().split(['`', ' ', '\n']).next().unwrap().to_owned();
    let before = sandbox.server().log().len();
    let done = sandbox.netstead(["apply", &hash]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.out.contains("unknown") && !done.out.contains("left out"), "{done:?}");
    server.until(FORWARD, &["mail.home.test A 10.0.3.9", "www.home.test A 10.0.3.6"]);
    let log = sandbox.server().log();
    let alarms: Vec<_> =
        log[before..].lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    assert_eq!(alarms, Vec::<&str>::new());
    assert!(log.contains("The store was behind the server's fence"), "{log}");
    assert!(!sandbox.does("get changes").contains(" late "));
}
