//! `netstead run --once` waits until every guest is read.

use std::time::Duration;

use netstead_testkit::{FakePve, PowerDns, PveAgent, PveGuest, PveVersion};
use serde_json::Value;

use super::{configured, destination, once, source};
use crate::resolve;

#[test]
fn five_hundred_guests_of_a_slow_cluster_all_have_names_after_one_run() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2"]);
    // Each guest costs two or three calls, and eight of a node are read at once: no single look sees all of them.
    let slow = Duration::from_millis(200);
    fake.cluster().stalled.extend(["pve1", "pve2"].map(|node| (node.to_owned(), slow)));
    fake.cluster().hang = Duration::from_secs(4);
    for vmid in 1000..1500 {
        let node = if vmid % 2 == 0 { "pve1" } else { "pve2" };
        let (name, address) = (format!("m{vmid}"), format!("10.1.{}.{}/16", vmid / 250, vmid % 250 + 1));
        fake.add(match vmid % 3 {
            0 => PveGuest::machine(vmid, node, &name, &address),
            _ => PveGuest::container(vmid, node, &name, &address),
        });
    }
    let hung = PveGuest::machine(2000, "pve1", "hung", "10.1.9.9/16");
    fake.add(hung.with_agent(PveAgent::Hung));
    let sandbox = configured(&(source("pve", &fake, "") + &destination(&server)));
    let (code, made) = once(&sandbox);
    assert_eq!((code, made.len()), (0, 500), "the agent that hangs is no error, and has no name");
    let port = server.address().port();
    assert_eq!(resolve::a(port, "m1499.lab.test").values, ["10.1.5.250"]);
}

#[test]
fn guests_that_were_not_read_in_time_are_an_error() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2"]);
    fake.add(PveGuest::container(101, "pve1", "web", "10.0.3.11/24"));
    fake.add(PveGuest::container(102, "pve2", "db", "10.0.3.12/24"));
    fake.cluster().stalled.insert("pve2".into(), Duration::from_mins(1));
    let sandbox = configured(&(source("pve", &fake, "") + &destination(&server)));
    let said = sandbox.netstead(["run", "--once", "-o", "json", "--timeout", "16s"]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    assert_eq!((said.code, &told["result"], &told["unread"]["pve"]), (1, &"error".into(), &1.into()));
    let error = "source pve did not read 1 workload in time";
    assert!(said.err.contains(error) && said.err.contains("--timeout"), "{}", said.err);
    // The other has its name.
    assert_eq!(resolve::a(server.address().port(), "web.lab.test").values, ["10.0.3.11"]);
}
