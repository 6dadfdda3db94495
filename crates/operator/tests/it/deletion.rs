//! How addresses are given back.

use std::{thread, time::Duration};

use serde_json::json;

use crate::world::Space;

#[test]
fn a_deleted_claim_leaves_nothing_behind() {
    let space = Space::new("deleted");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.11], prefix: 24 }");
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    // One that never got an address goes as well.
    space.claim("two", "InClusterIPPool", "lan");
    space.bound("two");
    space.claim("three", "InClusterIPPool", "lan");
    space.wait_for_reason("three", "PoolExhausted");
    for claim in ["three", "one"] {
        space.server.delete(&space.claim_path(claim));
        space.gone(&space.claim_path(claim));
        space.gone(&space.address_path(claim));
    }
    space.counts("InClusterIPPool", "lan", "2/1/1/0");
    // The finalizer holds an address whose claim lives.
    space.server.delete(&space.address_path("two"));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(space.address("two").as_deref(), Some("10.0.0.11"));
    // Without its finalizer it goes, and comes again with the same value.
    space.server.patch(&space.address_path("two"), &json!({ "metadata": { "finalizers": null } }));
    let back = netstead_testkit::wait_until(crate::world::SOON, || {
        let address = space.get(&space.address_path("two"))?;
        address["metadata"].get("deletionTimestamp").is_none().then(|| address["spec"]["address"].clone())
    });
    assert_eq!(back, Some(json!("10.0.0.11")));
}

#[test]
fn the_pool_stays_until_its_last_address_is_released() {
    let space = Space::new("pool-first");
    let _operator = space.operator();
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        let pool = format!("pool-first-{}", kind.to_lowercase());
        let (path, claim) = (space.pool_path(kind, &pool), format!("of-{pool}"));
        // The grace ends with the pool.
        space.pool(
            kind,
            &pool,
            "{ addresses: [10.0.0.10-10.0.0.11], prefix: 24, addressReuseGracePeriodSeconds: 300 }",
        );
        space.claim(&claim, kind, &pool);
        space.bound(&claim);
        space.server.delete(&path);
        thread::sleep(Duration::from_secs(1));
        let object = space.get(&path).unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["ipam.cluster.x-k8s.io/ProtectPool"]));
        let late = format!("late-{pool}");
        space.claim(&late, kind, &pool);
        space.wait_for_reason(&late, "PoolNotReady");
        space.server.delete(&space.claim_path(&claim));
        space.gone(&space.claim_path(&claim));
        space.gone(&path);
    }
}

#[test]
fn a_claim_goes_although_its_pool_is_gone() {
    let space = Space::new("no-pool");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.11], prefix: 24 }");
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    let path = space.pool_path("InClusterIPPool", "lan");
    space.server.delete(&path);
    // As a person would who has enough of finalizers; the operator puts its own on no object that is being deleted.
    space.server.patch(&path, &json!({ "metadata": { "finalizers": null } }));
    space.gone(&path);
    space.server.delete(&space.claim_path("one"));
    space.gone(&space.claim_path("one"));
    space.gone(&space.address_path("one"));
}

#[test]
fn a_grace_keeps_the_address_for_its_time() {
    let space = Space::new("grace");
    let _operator = space.operator();
    space.pool(
        "InClusterIPPool",
        "lan",
        "{ addresses: [10.0.0.10-10.0.0.11], prefix: 24, addressReuseGracePeriodSeconds: 3 }",
    );
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    space.server.delete(&space.claim_path("one"));
    thread::sleep(Duration::from_secs(1));
    assert!(space.get(&space.address_path("one")).is_some(), "the address went before its time");
    space.gone(&space.address_path("one"));
    space.gone(&space.claim_path("one"));
}
