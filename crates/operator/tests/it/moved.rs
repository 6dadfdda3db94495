//! `clusterctl move`: objects are made anew in another cluster, with other UIDs and without their status.

use std::thread;

use netstead_testkit::KubeApiServer;
use serde_json::{Value, json};

use crate::world::{A_WHILE, Space, define};

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
    // At the source clusterctl marks and deletes, and takes the finalizers off itself. Whatever comes between, and although the
    // cluster runs here again, the operator releases nothing: an address that is released would go to the next claim.
    let mark =
        json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
    let paths =
        || claims.iter().skip(1).flat_map(|claim| [source.address_path(claim), source.claim_path(claim)]);
    for path in paths() {
        source.server.patch(&path, &mark);
        source.server.delete(&path);
    }
    source.server.patch(
        &source.pool_path("InClusterIPPool", "lan"),
        &json!({ "metadata": { "labels": { "touched": "yes" } } }),
    );
    source.claim("next", "InClusterIPPool", "lan");
    assert_eq!(source.bound("next"), "10.0.0.10");
    source.claim("after", "InClusterIPPool", "lan");
    assert_eq!(source.bound("after"), "10.0.0.18");
    thread::sleep(A_WHILE);
    for path in paths() {
        let object = source.get(&path).unwrap_or_else(|| panic!("{path} was released"));
        assert!(object["metadata"]["finalizers"].is_array(), "{path} has no finalizer any more");
    }
    for path in paths() {
        source.server.patch(&path, &json!({ "metadata": { "finalizers": null } }));
        source.gone(&path);
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

/// A pool of the whole cluster is copied and stays at the source. It is deleted there by hand, with the mark that lets it go.
#[test]
fn a_moved_global_pool_keeps_every_address() {
    let here = Space::new("move-global");
    let other: &'static KubeApiServer = Box::leak(Box::new(KubeApiServer::start(&[])));
    define(other);
    let kind = "GlobalInClusterIPPool";
    let operator = here.operator();
    here.pool(kind, "move-global", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    let claims = ["a", "b", "c"];
    for claim in claims {
        here.claim(claim, kind, "move-global");
        here.bound(claim);
    }
    let before = claims.map(|claim| here.bound(claim));
    let there = Space::on(other, "move-global");
    let pool = here.pool_path(kind, "move-global");
    there.apply(&moved(&here.get(&pool).unwrap(), None).to_string());
    for claim in claims {
        for path in [here.claim_path(claim), here.address_path(claim)] {
            there.apply(&moved(&here.get(&path).unwrap(), Some("move-global")).to_string());
        }
    }
    let _operator_there = there.operator();
    assert_eq!(claims.map(|claim| there.bound(claim)), before);
    there.claim("new", kind, "move-global");
    assert_eq!(there.bound("new"), "10.0.0.13");
    there.counts(kind, "move-global", "11/4/7/0");
    // Deleted at the source, the pool goes although objects there still name it.
    here.annotate(&pool, "clusterctl.cluster.x-k8s.io/delete-for-move", Some(""));
    here.server.delete(&pool);
    here.gone(&pool);
    assert!(here.get(&here.address_path("a")).is_some());
    drop(operator);
}
