//! `clusterctl move`: objects are made anew in another cluster, with other UIDs and without their status.

use serde_json::{Value, json};

use crate::world::Space;

/// An object as it arrives at the target: owners that move along have new UIDs there.
fn moved(object: &Value, namespace: Option<&str>) -> Value {
    let mut metadata = json!({ "name": object["metadata"]["name"] });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata, "spec": object["spec"] })
}

#[test]
fn a_moved_cluster_keeps_every_address() {
    let (source, target) = (Space::new("move-source"), Space::new("move-target"));
    let operator = source.operator();
    let cluster = |paused: bool| {
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{ name: prod }}\nspec: {{ paused: {paused} }}\n"
        )
    };
    source.apply(&cluster(false));
    source.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.40], prefix: 24 }");
    let claims: Vec<String> = (0..8).map(|number| format!("machine-{number}")).collect();
    let mut before = Vec::new();
    for claim in &claims {
        source.claim_with(claim, "InClusterIPPool", "lan", "", ", clusterName: prod");
        before.push(source.bound(claim));
    }
    // The lowest becomes free, so a claim that is served anew would get it.
    source.server.delete(&source.claim_path("machine-0"));
    source.gone(&source.claim_path("machine-0"));
    source.apply(&cluster(true));
    target.apply(&cluster(true));
    let there = target.operator();
    target.apply(
        &moved(&source.get(&source.pool_path("InClusterIPPool", "lan")).unwrap(), Some("move-target"))
            .to_string(),
    );
    for claim in claims.iter().skip(1) {
        // The claim first and its address last, as clusterctl goes from owners to what they own.
        for path in [source.claim_path(claim), source.address_path(claim)] {
            target.apply(&moved(&source.get(&path).unwrap(), Some("move-target")).to_string());
        }
    }
    // At the source the objects go without their finalizers, and nothing is released.
    for claim in claims.iter().skip(1) {
        for path in [source.address_path(claim), source.claim_path(claim)] {
            let mark = json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" }, "finalizers": null } });
            source.server.patch(&path, &mark);
            source.server.delete(&path);
        }
    }
    operator.stop();
    target.apply(&cluster(false));
    for (claim, address) in claims.iter().zip(&before).skip(1) {
        assert_eq!(&target.bound(claim), address);
        let uid = target.get(&target.claim_path(claim)).unwrap()["metadata"]["uid"].clone();
        let owners = target.get(&target.address_path(claim)).unwrap()["metadata"]["ownerReferences"].clone();
        assert_eq!((owners[0]["uid"].clone(), owners.as_array().unwrap().len()), (uid, 2));
    }
    target.counts("InClusterIPPool", "lan", "31/7/24/0");
    drop(there);
}
