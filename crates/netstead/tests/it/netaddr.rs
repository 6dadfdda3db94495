//! Pools out of ranges of terraform-provider-netaddr, and the way of those ranges into the ledger.

use netstead_testkit::{Etcd, NetaddrClient, netaddr_ipv4, wait_until};

use crate::sandbox::{SOON, Sandbox};

const LAN: &str = "/ranges/lan/";

/// An etcd with a range of eleven addresses: one is fixed, one was given in turn, one was given back.
fn etcd() -> Option<(Etcd, NetaddrClient)> {
    let etcd = Etcd::start(1)?;
    let mut original = NetaddrClient::connect(&etcd.endpoints()[0]).unwrap();
    let (first, last) = (netaddr_ipv4([10, 0, 3, 50]), netaddr_ipv4([10, 0, 3, 60]));
    assert!(original.create_range(LAN, "ipv4", &first, &last).unwrap());
    assert!(original.create_hardcoded(LAN, "dns", &netaddr_ipv4([10, 0, 3, 53])).unwrap());
    let old = original.create_generated(&[LAN], "old").unwrap().unwrap();
    original.create_generated(&[LAN], "web").unwrap().unwrap();
    assert!(original.delete_generated(LAN, "old", &old).unwrap());
    Some((etcd, original))
}

#[test]
fn a_pool_on_a_range_gives_names_and_history_beside_the_original() {
    let Some((etcd, mut original)) = etcd() else { return };
    let mut sandbox = Sandbox::empty();
    let file = format!(
        "[backend.etcd]\ntype = \"netaddr\"\nendpoints = [\"{}\"]\n\n[pool.lan]\nbackend = \"etcd\"\nbackend_pool = \"{LAN}\"\n\
         cooldown = \"0\"\ndomain = \"home.test\"\n",
        etcd.endpoints()[0]
    );
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    let made =
        wait_until(SOON, || (sandbox.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(()));
    assert!(made.is_some(), "{:?}", sandbox.netstead(["get", "pools"]));
    // The lowest that was given back, then the next.
    assert_eq!(sandbox.does("claim lan db-1 --hostname db-1"), "10.0.3.50\n");
    assert_eq!(sandbox.does("claim lan db-2"), "10.0.3.52\n");
    assert_eq!(sandbox.does("claim lan db-1"), "10.0.3.50\n");
    let theirs = original.create_generated(&[LAN], "theirs").unwrap().unwrap();
    assert_eq!(theirs, netaddr_ipv4([10, 0, 3, 54]), "the original goes on behind ours, round the fixed one");
    let taken = sandbox.netstead(["claim", "lan", "mine", "--address", "10.0.3.54"]);
    assert_ne!(taken.code, 0, "{taken:?}");
    // The names in etcd are those of the claims; the ledger knows when each came and went.
    let names = original.dump(&format!("{LAN}data/name/")).unwrap();
    assert!(names.keys().any(|key| key.ends_with(b"/lan/db-1")), "{names:?}");
    let history = sandbox.does("history 10.0.3.50");
    assert!(history.contains("db-1"), "{history}");
    assert!(sandbox.does("explain 10.0.3.50").contains("db-1.home.test"));
    sandbox.does("release lan db-1");
    let freed = wait_until(SOON, || {
        let names = original.dump(&format!("{LAN}data/name/")).unwrap();
        (!names.keys().any(|key| key.ends_with(b"/lan/db-1"))).then_some(())
    });
    assert!(freed.is_some(), "the range has it back");
    assert_eq!(original.create_generated(&[LAN], "again").unwrap().unwrap(), netaddr_ipv4([10, 0, 3, 50]));
}

#[test]
fn a_keyspace_is_shown_and_then_moved_into_the_ledger() {
    let Some((etcd, mut original)) = etcd() else { return };
    let keys = original.dump(LAN).unwrap();
    let sandbox = Sandbox::with_server();
    let line = format!("import netaddr --endpoints {} --range {LAN}", etcd.endpoints()[0]);
    let shown =
        "pool lan: 10.0.3.50-10.0.3.60, from /ranges/lan/\n  10.0.3.53  dns  fixed\n  10.0.3.51  web\n";
    assert_eq!(sandbox.does(&line), shown);
    assert_eq!(sandbox.does("get pools -o name"), "", "a preview makes nothing");
    // Twice: what is there stays as it is.
    for _ in 0..2 {
        sandbox.does(&format!("{line} --yes"));
    }
    let claims = sandbox.does("get claims -o json");
    let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
    let held: Vec<_> = claims
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| (claim["key"].clone(), claim["address"].clone()))
        .collect();
    assert_eq!(held.len(), 2);
    assert!(
        held.contains(&("dns".into(), "10.0.3.53".into()))
            && held.contains(&("web".into(), "10.0.3.51".into()))
    );
    assert_eq!(original.dump(LAN).unwrap(), keys, "the etcd is as it was");
    // As the range did: what is free behind the pointer, from the lowest on.
    assert_eq!(sandbox.does("claim lan new"), "10.0.3.50\n");
    let wrong =
        sandbox.netstead(["import", "netaddr", "--endpoints", &etcd.endpoints()[0], "--range", "/nowhere/"]);
    assert!(wrong.err.contains("there is no range `/nowhere/`"), "{wrong:?}");
}
