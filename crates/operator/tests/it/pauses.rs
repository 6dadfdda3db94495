//! Pauses of pools, claims and clusters hold claims back until they end.

use serde_json::json;

use crate::world::Space;

const PAUSED: &str = "cluster.x-k8s.io/paused";

#[test]
fn a_paused_pool_neither_gives_nor_takes() {
    let space = Space::new("paused-pool");
    let _operator = space.operator();
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        let low = kind.to_lowercase();
        let (pool, path) = (format!("paused-{low}"), space.pool_path(kind, &format!("paused-{low}")));
        space.pool(kind, &pool, "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
        space.claim(&low, kind, &pool);
        space.bound(&low);
        space.annotate(&path, PAUSED, Some(""));
        let late = format!("late-{low}");
        space.claim(&late, kind, &pool);
        space.server.delete(&space.claim_path(&low));
        space.stays_without(&late);
        assert!(space.get(&space.address_path(&low)).is_some(), "the address was released");
        space.annotate(&path, PAUSED, None);
        space.bound(&late);
        space.gone(&space.claim_path(&low));
    }
}

#[test]
fn a_paused_claim_waits() {
    let space = Space::new("paused-claim");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    space.claim_with("one", "InClusterIPPool", "lan", ", annotations: { cluster.x-k8s.io/paused: '' }", "");
    space.stays_without("one");
    space.annotate(&space.claim_path("one"), PAUSED, None);
    space.bound("one");
    space.annotate(&space.claim_path("one"), PAUSED, Some("x"));
    space.server.delete(&space.claim_path("one"));
    std::thread::sleep(crate::world::A_WHILE);
    assert!(space.get(&space.address_path("one")).is_some());
    space.annotate(&space.claim_path("one"), PAUSED, None);
    space.gone(&space.claim_path("one"));
    space.gone(&space.address_path("one"));
}

#[test]
fn the_cluster_of_a_claim_decides() {
    let space = Space::new("clusters");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.30], prefix: 24 }");
    let cluster = |name: &str, metadata: &str, paused: bool| {
        space.apply(&format!(
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{ name: {name}{metadata} }}\nspec: {{ paused: {paused} }}\n"
        ));
    };
    let path = |name: &str| format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/clusters/clusters/{name}");
    // Each way to name the cluster, and each way in which the cluster holds its claims back.
    let field = |name: &str| (String::new(), format!(", clusterName: {name}"));
    let label =
        |name: &str| (format!(", labels: {{ cluster.x-k8s.io/cluster-name: {name} }}"), String::new());
    cluster("by-spec", "", true);
    cluster("by-annotation", ", annotations: { cluster.x-k8s.io/paused: '' }", false);
    let mut claims = Vec::new();
    for name in ["missing", "by-spec", "by-annotation"] {
        for (way, (metadata, spec)) in [("field", field(name)), ("label", label(name))] {
            let claim = format!("{name}-{way}");
            space.claim_with(&claim, "InClusterIPPool", "lan", &metadata, &spec);
            claims.push(claim);
        }
    }
    // The field goes before the label.
    let both = ", labels: { cluster.x-k8s.io/cluster-name: by-annotation }";
    space.claim_with("both", "InClusterIPPool", "lan", both, ", clusterName: by-spec");
    space.stays_without("missing-field");
    for claim in claims.iter().chain([&"both".to_owned()]) {
        assert_eq!(space.get(&space.address_path(claim)), None, "{claim} has an address");
    }
    cluster("missing", "", false);
    space.server.patch(&path("by-spec"), &json!({ "spec": { "paused": false } }));
    space.bound("both");
    space.annotate(&path("by-annotation"), PAUSED, None);
    for claim in &claims {
        space.bound(claim);
    }
    // A release waits too, and goes on without the cluster once that is gone.
    space.server.patch(&path("by-spec"), &json!({ "spec": { "paused": true } }));
    space.server.delete(&space.claim_path("by-spec-field"));
    std::thread::sleep(crate::world::A_WHILE);
    assert!(space.get(&space.address_path("by-spec-field")).is_some());
    space.server.delete(&path("by-spec"));
    space.gone(&space.claim_path("by-spec-field"));
    space.gone(&space.address_path("by-spec-field"));
}
