//! Two objects with one address, as two replicas may make them that work at the same time.

use serde_json::json;

use crate::world::Space;

/// The claims and objects of two replicas that stopped before either told an owner.
fn rivals(space: &Space, told: Option<&str>) {
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    for name in ["b", "a"] {
        let object = json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": name },
            "spec": { "address": "10.0.0.10", "prefix": 24, "claimRef": { "name": name },
                "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "lan" } },
        });
        space.apply(&object.to_string());
        space.claim_with(
            name,
            "InClusterIPPool",
            "lan",
            ", finalizers: [ipam.cluster.x-k8s.io/ReleaseAddress]",
            "",
        );
        if told == Some(name) {
            let status = json!({ "status": { "addressRef": { "name": name } } });
            space.server.patch(&format!("{}/status", space.claim_path(name)), &status);
        }
    }
}

#[test]
fn one_of_two_with_one_address_gives_way_whichever_replica_looks() {
    let space = Space::new("rivals");
    rivals(&space, None);
    let _replicas = [space.operator(), space.operator()];
    let (a, b) = (space.bound("a"), space.bound("b"));
    assert_ne!(a, b);
    assert!([&a, &b].iter().any(|address| **address == "10.0.0.10"), "{a} {b}");
    space.counts("InClusterIPPool", "lan", "11/2/9/0");
}

#[test]
fn an_address_that_an_owner_was_told_stays() {
    let space = Space::new("told");
    // By the rule of two that were not told, a would keep it.
    rivals(&space, Some("b"));
    let _replicas = [space.operator(), space.operator()];
    assert_eq!((space.bound("b").as_str(), space.bound("a").as_str()), ("10.0.0.10", "10.0.0.11"));
    assert_eq!(space.bound("b"), "10.0.0.10");
}

#[test]
fn an_address_of_a_claim_that_does_not_move_stays() {
    let space = Space::new("unmoved");
    rivals(&space, None);
    // The other claim is paused, so it neither tells its owner nor gives way.
    space.annotate(&space.claim_path("b"), "cluster.x-k8s.io/paused", Some(""));
    let _operator = space.operator();
    assert_eq!(space.bound("a"), "10.0.0.11");
    space.annotate(&space.claim_path("b"), "cluster.x-k8s.io/paused", None);
    assert_eq!(space.bound("b"), "10.0.0.10");
}
