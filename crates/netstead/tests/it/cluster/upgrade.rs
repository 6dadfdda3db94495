//! Programs of several versions on one store.

use netstead_testkit::{Process, until};

use super::nodes::Nodes;
use crate::house::{House, SOON};

#[test]
fn a_program_that_is_older_than_the_store_is_refused() {
    let Some(nodes) = Nodes::start("") else { return };
    let format = || nodes.etcd.ctl(&["get", "--print-value-only", "/netstead/kv/meta/format"]).unwrap();
    assert_eq!(until(SOON, || Some(format()).filter(|format| format == "1\n")).as_deref(), Some("1\n"));
    // Members of another version: one older and one newer than we are.
    let member = |id: &str, format: u32| {
        let value = format!(
            "1{{\"name\":\"{id}\",\"url\":\"http://{id}:5301\",\"version\":\"9\",\"format\":{format},\
             \"since\":\"2026-11-16T00:00:00Z\",\"seen\":\"2026-11-16T00:00:00Z\"}}"
        );
        nodes.etcd.ctl(&["put", &format!("/netstead/kv/cluster/member/{id}"), &value]).unwrap();
    };
    member("0123456789ab", 9);
    let house = &nodes.houses[0];
    let listed = until(SOON, || {
        Some(house.does("cluster status -o wide")).filter(|text| text.contains("0123456789ab"))
    });
    assert!(listed.is_some());
    house.does("cluster remove 0123456789ab");
    assert!(!house.does("cluster status -o wide").contains("0123456789ab"));
    let said = house.fails("cluster remove 0123456789ab");
    assert!(said.err.contains("there is no member"), "{}", said.err);
    assert!(house.netstead(["store", "check"]).err.contains("all well"));

    // The others were upgraded.
    nodes.etcd.ctl(&["put", "/netstead/kv/meta/format", "2"]).unwrap();
    let late = House::empty();
    std::fs::copy(house.path().join("netstead.toml"), late.path().join("netstead.toml")).unwrap();
    let mut command = late.command();
    command.args(["run", "--listen", "127.0.0.1:0", "--dns-listen", "127.0.0.1:0"]);
    let mut server = Process::start("netstead", &mut command).unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(1));
    let log = server.log();
    assert!(log.contains("this store has format 2") && log.contains("hint: start the version"), "{log}");
}
