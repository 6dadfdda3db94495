//! How the kinds look to other programs and to people, and which objects are touched.

use std::{thread, time::Duration};

use netstead_operator::{OperatorOptions, PoolKind, definition};
use netstead_testkit::wait_until;
use serde_json::json;

use crate::world::{Running, SOON, Space};

#[test]
fn definitions_have_the_names_and_labels_that_clusterctl_looks_for() {
    for kind in PoolKind::ALL {
        let definition = definition(kind);
        let plural = format!("{}s", kind.as_str().to_lowercase());
        let own = kind.as_str().contains("Netstead") || kind.as_str().contains("NetBox");
        let group = if own { "ipam.netstead.io" } else { "ipam.cluster.x-k8s.io" };
        assert_eq!(definition["metadata"]["name"], format!("{plural}.{group}"));
        assert_eq!(definition["spec"]["names"]["plural"], plural);
        let version = definition["spec"]["versions"][0]["name"].clone();
        assert_eq!(
            definition["metadata"]["labels"],
            json!({
                "cluster.x-k8s.io/provider": "ipam-netstead",
                "cluster.x-k8s.io/v1beta1": version,
                "cluster.x-k8s.io/v1beta2": version,
                "clusterctl.cluster.x-k8s.io": "",
                "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
            })
        );
    }
}

#[test]
fn tables_show_how_pools_stand_and_whose_claims_are() {
    let space = Space::new("tables");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    space.pool("InClusterIPPool", "wrong", "{ addresses: [10.0.0.10, 10.0.7.9-10.0.7.1], prefix: 16 }");
    space.pool("InClusterPrefixPool", "v6", "{ prefixes: ['fd00::/62'] }");
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    space.counts("InClusterIPPool", "lan", "11/1/10/0");
    space.counts("InClusterIPPool", "wrong", "0/0/0/0");
    space.counts("InClusterPrefixPool", "v6", "4/0/4/0");
    let base = "/apis/ipam.cluster.x-k8s.io";
    let table = |version: &str, plural: &str| {
        let table = space.server.table(&format!("{base}/{version}/namespaces/tables/{plural}"));
        // The last cell is the age: `7s`.
        let lines = table.lines().map(|line| match line.rsplit_once(' ') {
            Some((before, age)) if age.ends_with('s') => format!("{before} AGO"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        table("v1alpha2", "inclusterippools"),
        [
            "NAME ADDRESSES TOTAL FREE USED READY AGE",
            r#"lan ["10.0.0.10-10.0.0.20"] 11 10 1 True AGO"#,
            r#"wrong ["10.0.0.10","10.0.7.9-10.0.7.1"] 0 0 0 False AGO"#,
        ]
    );
    assert_eq!(
        table("v1alpha2", "inclusterprefixpools"),
        ["NAME PREFIXES TOTAL FREE USED READY AGE", r#"v6 ["fd00::/62"] 4 4 0 True AGO"#]
    );
    assert_eq!(
        table("v1beta2", "ipaddressclaims"),
        ["NAME POOL NAME POOL KIND AGE", "one lan InClusterIPPool AGO"]
    );
    assert_eq!(
        table("v1beta2", "ipaddresses"),
        ["NAME ADDRESS POOL NAME POOL KIND AGE", "one 10.0.0.10 lan InClusterIPPool AGO"]
    );
}

#[test]
fn objects_with_another_watch_filter_are_left_alone() {
    let space = Space::new("filtered");
    let options = OperatorOptions {
        watch_filter: Some("blue".to_owned()),
        ..space.options(&space.server.kubeconfig())
    };
    let _operator = Running::with(options);
    let pool = |name: &str, label: &str| {
        space.apply(&format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\nmetadata: {{ name: {name}{label} }}\n\
             spec: {{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }}\n"
        ));
    };
    let labelled = |value: &str| format!(", labels: {{ cluster.x-k8s.io/watch-filter: {value} }}");
    for (name, label) in [("bare", String::new()), ("green", labelled("green")), ("blue", labelled("blue"))] {
        pool(name, &label);
        space.claim_with(&format!("of-{name}"), "InClusterIPPool", "blue", &label, "");
    }
    assert_eq!(space.bound("of-blue"), "10.0.0.10");
    space.counts("InClusterIPPool", "blue", "11/1/10/0");
    thread::sleep(Duration::from_secs(2));
    for name in ["bare", "green"] {
        let claim = space.get(&space.claim_path(&format!("of-{name}"))).unwrap();
        let pool = space.get(&space.pool_path("InClusterIPPool", name)).unwrap();
        for object in [claim, pool] {
            assert_eq!(
                (object["metadata"].get("finalizers"), object.get("status")),
                (None, None),
                "{object}"
            );
        }
    }
    // With the label they are served.
    space.server.patch(
        &space.claim_path("of-bare"),
        &json!({ "metadata": { "labels": { "cluster.x-k8s.io/watch-filter": "blue" } } }),
    );
    assert_eq!(space.bound("of-bare"), "10.0.0.11");
    // An address holds its value whichever controller serves its claim: its label does not matter.
    let object = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "foreign" },
        "spec": { "address": "10.0.0.12", "prefix": 24, "claimRef": { "name": "foreign" },
            "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "blue" } },
    });
    space.apply(&object.to_string());
    let seen = wait_until(SOON, || {
        let status = space.get(&space.pool_path("InClusterIPPool", "blue"))?["status"].clone();
        (status["ipAddresses"]["used"] == 3).then_some(())
    });
    assert!(seen.is_some());
    space.claim_with("next", "InClusterIPPool", "blue", &labelled("blue"), "");
    assert_eq!(space.bound("next"), "10.0.0.13");
}
