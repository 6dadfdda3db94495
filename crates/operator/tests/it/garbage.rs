//! The operator beside the real garbage collector of Kubernetes.

use std::thread;

use netstead_testkit::{KubeApiServer, wait_until};
use serde_json::{Value, json};

use crate::world::{A_WHILE, SOON, Space, define};

/// A server of its own: on the shared one nothing collects garbage.
fn server() -> &'static KubeApiServer {
    let server = Box::leak(Box::new(KubeApiServer::start(&[])));
    define(server);
    server.collect_garbage();
    server
}

/// Deletes an object as `kubectl delete --cascade=foreground` does.
fn delete_with_dependents(space: &Space, path: &str) {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground" });
    let (status, answer) = space.server.call("DELETE", path, Some(&options));
    assert!(matches!(status, 200 | 202), "{answer}");
}

fn owner(object: &Value) -> String {
    let metadata = &object["metadata"];
    json!([{ "apiVersion": object["apiVersion"], "kind": object["kind"], "name": metadata["name"], "uid": metadata["uid"],
        "blockOwnerDeletion": true }])
    .to_string()
}

#[test]
fn whatever_is_deleted_first_nothing_is_left_behind() {
    let server = server();
    pool_first(&Space::on(server, "pool-first"));
    cluster_first(&Space::on(server, "cluster-first"));
    claim_past_its_finalizer(&Space::on(server, "orphaned"));
}

fn pool_first(space: &Space) {
    let _operator = space.operator();
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        let low = kind.to_lowercase();
        let path = space.pool_path(kind, &low);
        space.pool(kind, &low, "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
        space.claim(&low, kind, &low);
        let address = space.bound(&low);
        delete_with_dependents(space, &path);
        thread::sleep(A_WHILE);
        // The collector deletes what the pool owns, and the finalizer keeps it while its claim lives.
        assert_eq!(space.address(&low), Some(address));
        assert!(space.get(&path).is_some());
        space.server.delete(&space.claim_path(&low));
        space.gone(&space.claim_path(&low));
        space.gone(&space.address_path(&low));
        space.gone(&path);
    }
}

fn cluster_first(space: &Space) {
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    space.apply("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: { name: prod }\nspec: { paused: false }\n");
    let cluster = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{}/clusters/prod", space.name);
    let owners = owner(&space.get(&cluster).unwrap());
    for claim in ["one", "two"] {
        let metadata = format!(", ownerReferences: {owners}");
        space.claim_with(claim, "InClusterIPPool", "lan", &metadata, ", clusterName: prod");
        space.bound(claim);
    }
    // The cluster goes at once, and its claims after it.
    space.server.delete(&cluster);
    for claim in ["one", "two"] {
        space.gone(&space.claim_path(claim));
        space.gone(&space.address_path(claim));
    }
    space.counts("InClusterIPPool", "lan", "11/0/11/0");
}

fn claim_past_its_finalizer(space: &Space) {
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10], prefix: 24 }");
    space.claim("lost", "InClusterIPPool", "lan");
    space.bound("lost");
    space.claim("next", "InClusterIPPool", "lan");
    space.wait_for_reason("next", "PoolExhausted");
    space.annotate(&space.claim_path("lost"), "cluster.x-k8s.io/paused", Some(""));
    space.server.patch(&space.claim_path("lost"), &json!({ "metadata": { "finalizers": null } }));
    space.server.delete(&space.claim_path("lost"));
    // The collector takes the claim off the owners and leaves the object to its other owner, the pool: the address stays held,
    // until a person deletes the object, which the operator lets go.
    let path = space.address_path("lost");
    let has_one_owner = || {
        let owners = space.get(&path)?["metadata"]["ownerReferences"].as_array()?.len();
        (owners == 1).then_some(())
    };
    assert!(wait_until(SOON, has_one_owner).is_some());
    assert_eq!(space.get(&space.address_path("next")), None);
    space.server.delete(&path);
    space.gone(&path);
    assert_eq!(space.bound("next"), "10.0.0.10");
}
