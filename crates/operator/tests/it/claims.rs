//! How claims get their addresses.

use serde_json::json;

use crate::world::Space;

const KINDS: [&str; 2] = ["InClusterIPPool", "GlobalInClusterIPPool"];

#[test]
fn a_claim_gets_an_address_object_with_all_that_the_contract_asks_for() {
    let space = Space::new("whole");
    let _operator = space.operator();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let (pool, claim) = (format!("whole-{number}"), format!("claim-{number}"));
        space.pool(kind, &pool, "{ addresses: [10.0.0.0/24], prefix: 24, gateway: 10.0.0.1 }");
        let label = ", labels: { cluster.x-k8s.io/cluster-name: prod }";
        space.apply("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: { name: prod }\nspec: { paused: false }\n");
        space.claim_with(&claim, kind, &pool, label, "");
        assert_eq!(space.bound(&claim), "10.0.0.2");
        let uid = |path: String| space.get(&path).unwrap()["metadata"]["uid"].clone();
        let address = space.get(&space.address_path(&claim)).unwrap();
        assert_eq!(
            address["spec"],
            json!({ "address": "10.0.0.2", "prefix": 24, "gateway": "10.0.0.1", "claimRef": { "name": claim },
                "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": kind, "name": pool } })
        );
        let metadata = &address["metadata"];
        assert_eq!(metadata["finalizers"], json!(["ipam.cluster.x-k8s.io/ProtectAddress"]));
        assert_eq!(metadata["labels"], json!({ "cluster.x-k8s.io/cluster-name": "prod" }));
        assert_eq!(
            metadata["ownerReferences"],
            json!([
                { "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim", "name": claim,
                  "uid": uid(space.claim_path(&claim)), "controller": true, "blockOwnerDeletion": true },
                { "apiVersion": "ipam.cluster.x-k8s.io/v1alpha2", "kind": kind, "name": pool,
                  "uid": uid(space.pool_path(kind, &pool)), "controller": false, "blockOwnerDeletion": true },
            ])
        );
        let object = space.get(&space.claim_path(&claim)).unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["ipam.cluster.x-k8s.io/ReleaseAddress"]));
        let ready = &object["status"]["conditions"][0];
        assert_eq!(
            (&ready["type"], &ready["status"], &ready["reason"]),
            (&json!("Ready"), &json!("True"), &json!("AddressAllocated"))
        );
        assert_eq!(ready["observedGeneration"], object["metadata"]["generation"]);
        assert_eq!(object["status"]["deprecated"]["v1beta1"]["conditions"][0]["status"], "True");
    }
}

#[test]
fn claims_of_others_are_left_alone_and_a_pool_may_come_later() {
    let space = Space::new("strangers");
    let _operator = space.operator();
    space.claim("other-kind", "MetalPool", "lan");
    space.apply(
        "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: { name: other-group }\n\
         spec: { poolRef: { apiGroup: ipam.example.net, kind: InClusterIPPool, name: lan } }\n",
    );
    for (number, kind) in KINDS.into_iter().enumerate() {
        let (pool, claim) = (format!("strangers-{number}"), format!("early-{number}"));
        space.claim(&claim, kind, &pool);
        space.wait_for_reason(&claim, "PoolNotReady");
        space.stays_without(&claim);
        space.pool(kind, &pool, "{ addresses: [10.0.0.9], prefix: 24 }");
        assert_eq!(space.bound(&claim), "10.0.0.9");
        // Without a gateway there is none.
        assert_eq!(space.get(&space.address_path(&claim)).unwrap()["spec"].get("gateway"), None);
    }
    for claim in ["other-kind", "other-group"] {
        let object = space.get(&space.claim_path(claim)).unwrap();
        assert_eq!((object["metadata"].get("finalizers"), object.get("status")), (None, None));
    }
}

#[test]
fn older_versions_of_claims_are_served() {
    let space = Space::new("versions");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    for (version, address) in [("v1alpha1", "10.0.0.10"), ("v1beta1", "10.0.0.11")] {
        space.apply(&format!(
            "apiVersion: ipam.cluster.x-k8s.io/{version}\nkind: IPAddressClaim\nmetadata: {{ name: {version} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: lan }} }}\n"
        ));
        assert_eq!(space.bound(version), address);
    }
}

#[test]
fn the_lowest_allowed_address_is_given_and_a_full_pool_says_so() {
    let space = Space::new("full");
    let _operator = space.operator();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let (pool, first, second) =
            (format!("full-{number}"), format!("first-{number}"), format!("second-{number}"));
        let spec = "{ addresses: [10.0.0.4/30], prefix: 30, gateway: 10.0.0.5 }";
        space.pool(kind, &pool, spec);
        space.claim(&first, kind, &pool);
        assert_eq!(space.bound(&first), "10.0.0.6");
        space.claim(&second, kind, &pool);
        space.wait_for_reason(&second, "PoolExhausted");
        space.stays_without(&second);
        // The address goes to the one that waits.
        space.server.delete(&space.claim_path(&first));
        assert_eq!(space.bound(&second), "10.0.0.6");
        assert_eq!(space.reason(&second).as_deref(), Some("AddressAllocated"));
    }
    space.pool(
        "InClusterIPPool",
        "order",
        "{ addresses: [10.0.1.30, 10.0.1.10-10.0.1.12], prefix: 24, excludedAddresses: [10.0.1.10] }",
    );
    for (claim, address) in [("a", "10.0.1.11"), ("b", "10.0.1.12"), ("c", "10.0.1.30")] {
        space.claim(claim, "InClusterIPPool", "order");
        assert_eq!(space.bound(claim), address);
    }
}

#[test]
fn a_wider_pool_serves_those_who_wait_in_the_order_they_came() {
    let space = Space::new("wider");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10], prefix: 24 }");
    space.claim("holder", "InClusterIPPool", "lan");
    space.bound("holder");
    for claim in ["w1", "w2", "w3"] {
        space.claim(claim, "InClusterIPPool", "lan");
        space.wait_for_reason(claim, "PoolExhausted");
        // The server writes the time of creation in whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.12], prefix: 24 }");
    let mut got = [space.bound("w1"), space.bound("w2")];
    got.sort();
    assert_eq!(got, ["10.0.0.11", "10.0.0.12"]);
    space.stays_without("w3");
    space.server.delete(&space.claim_path("holder"));
    assert_eq!(space.bound("w3"), "10.0.0.10");
}

#[test]
fn pools_of_one_name_are_independent_and_a_global_one_is_shared() {
    let (one, two) = (Space::new("names-one"), Space::new("names-two"));
    let _operators = (one.operator(), two.operator());
    one.pool("GlobalInClusterIPPool", "names", "{ addresses: [10.9.0.10-10.9.0.11], prefix: 24 }");
    for space in [&one, &two] {
        space.pool("InClusterIPPool", "names", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
        space.claim("own", "InClusterIPPool", "names");
        assert_eq!(space.bound("own"), "10.0.0.10");
        space.claim("shared", "GlobalInClusterIPPool", "names");
    }
    let mut shared = [one.bound("shared"), two.bound("shared")];
    shared.sort();
    assert_eq!(shared, ["10.9.0.10", "10.9.0.11"]);
}

#[test]
fn wanted_and_promised_addresses_are_given() {
    let space = Space::new("wanted");
    let _operator = space.operator();
    space.apply(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\nmetadata: { name: lan, annotations: { \
         ipam.netstead.io/pre-allocations: 'vip=10.0.0.10' } }\nspec: { addresses: [10.0.0.10-10.0.0.20], prefix: 24 }\n",
    );
    space.claim("any", "InClusterIPPool", "lan");
    assert_eq!(space.bound("any"), "10.0.0.11");
    let wish = |address| format!(", annotations: {{ ipam.netstead.io/address: '{address}' }}");
    space.claim_with("wish", "InClusterIPPool", "lan", &wish("10.0.0.15"), "");
    assert_eq!(space.bound("wish"), "10.0.0.15");
    for (claim, address) in
        [("taken", "10.0.0.15"), ("outside", "10.0.7.7"), ("promised", "10.0.0.10"), ("nonsense", "x")]
    {
        space.claim_with(claim, "InClusterIPPool", "lan", &wish(address), "");
        space.wait_for_reason(claim, "AllocationFailed");
    }
    space.claim("vip", "InClusterIPPool", "lan");
    assert_eq!(space.bound("vip"), "10.0.0.10");
    space.server.delete(&space.claim_path("wish"));
    assert_eq!(space.bound("taken"), "10.0.0.15");
}

#[test]
fn an_address_that_is_there_is_adopted_and_repaired() {
    let space = Space::new("adopted");
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    let stranger = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "abc" });
    for (name, address, owners) in
        [("bare", "10.0.0.17", json!([])), ("owned", "10.0.0.18", json!([stranger]))]
    {
        let object = json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
            "metadata": { "name": name, "namespace": "adopted", "ownerReferences": owners },
            "spec": { "address": address, "prefix": 24, "claimRef": { "name": name },
                "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "lan" } },
        });
        space.apply(&object.to_string());
        space.claim(name, "InClusterIPPool", "lan");
    }
    let _operator = space.operator();
    for (name, address, others) in [("bare", "10.0.0.17", 0), ("owned", "10.0.0.18", 1)] {
        assert_eq!(space.bound(name), address);
        let metadata = space.get(&space.address_path(name)).unwrap()["metadata"].clone();
        let owners = metadata["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), 2 + others);
        assert_eq!(owners[..others], [stranger.clone()][..others]);
        assert_eq!(owners[others]["kind"], "IPAddressClaim");
        assert_eq!(metadata["finalizers"], json!(["ipam.cluster.x-k8s.io/ProtectAddress"]));
    }
}

#[test]
fn prefixes_are_given_out_of_prefix_pools() {
    let space = Space::new("prefixes");
    let _operator = space.operator();
    for kind in ["InClusterPrefixPool", "GlobalInClusterPrefixPool"] {
        let low = kind.to_lowercase();
        space.pool(
            kind,
            "prefixes",
            "{ prefixes: ['fd00::/62'], gateway: 'fd00::1', excludedPrefixes: ['fd00:0:0:1::/64'] }",
        );
        let mut got = Vec::new();
        for number in 0..3 {
            let claim = format!("{low}-{number}");
            space.claim(&claim, kind, "prefixes");
            got.push(space.bound(&claim));
        }
        assert_eq!(got, ["fd00::", "fd00:0:0:2::", "fd00:0:0:3::"]);
        let spec = space.get(&space.address_path(&format!("{low}-0"))).unwrap()["spec"].clone();
        assert_eq!((&spec["prefix"], &spec["gateway"]), (&json!(64), &json!("fd00::1")));
        let last = format!("{low}-last");
        space.claim(&last, kind, "prefixes");
        space.wait_for_reason(&last, "PoolExhausted");
        space.counts(kind, "prefixes", "3/3/0/0");
    }
}
