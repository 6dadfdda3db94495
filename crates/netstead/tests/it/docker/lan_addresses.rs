//! Containers that have an address of the LAN itself.

use super::*;
use crate::resolve::ptr;

#[test]
fn a_container_with_an_address_of_its_own_is_named_by_that_and_the_ledger_sees_it() {
    let Some(docker) = shared() else { return };
    let (_card, network) = (card(), fresh("lan"));
    // Docker's own bridge stands for the machine's card.
    let lan = ["network", "create", "-d", "macvlan", "-o", "parent=docker0", "--subnet", "10.250.9.0/24"];
    docker.docker(&[&lan[..], &[&network]].concat());
    let pool = "\n[pool.lan]\nnetwork = \"10.250.9.0/24\"\norder = \"lowest\"\n";
    let sandbox = sandbox(docker, &format!("{QUICK}{pool}"));
    let name = fresh("own");
    let host = format!("{name}.example.test");
    run(docker, &name, &host, &["--network", &network, "--ip", "10.250.9.2"]);
    until(&["10.250.9.2"], || a(sandbox.dns(), &host));
    until(&[&format!("{host}.")], || ptr(sandbox.dns(), "10.250.9.2".parse().unwrap()));
    let begun = Stopwatch::start();
    while !sandbox.does("explain 10.250.9.2").contains("dock") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("explain 10.250.9.2"));
    }
    assert_eq!(sandbox.does("claim lan first"), "10.250.9.1\n");
    assert_eq!(sandbox.does("claim lan second"), "10.250.9.3\n", ".2 is in use");
    docker.docker(&["rm", "-f", &name]);
    docker.docker(&["network", "rm", &network]);
}
