//! Pools of other systems.

use std::{path::Path, sync::Arc, thread, time::Duration};

use netstead_operator::{OperatorOptions, PoolKind};
use netstead_testkit::wait_until;
use serde_json::json;

use crate::{
    fault_proxy::FaultProxy,
    system::System,
    world::{Running, SOON, Space},
};

const KIND: &str = "PHPIPAMIPPool";

/// Pools of these kinds are of the whole cluster: a label says whose they are.
fn label(space: &Space) -> String {
    format!("cluster.x-k8s.io/watch-filter: {}", space.name)
}

fn pool(space: &Space, name: &str, subnet: i64, annotations: &str) {
    space.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha1\nkind: {KIND}\nmetadata: {{ name: {name}, labels: {{ {} }}, annotations: {{ \
         {annotations} }} }}\nspec: {{ subnetid: {subnet}, credentials: {{ username: u }} }}\n",
        label(space)
    ));
}

fn pool_path(name: &str) -> String {
    format!("/apis/ipam.cluster.x-k8s.io/v1alpha1/phpipamippools/{name}")
}

fn claim(space: &Space, name: &str, kind: &str, pool: &str, metadata: &str) {
    space.claim_with(name, kind, pool, &format!(", labels: {{ {} }}{metadata}", label(space)), "");
}

fn operator_at(space: &Space, system: &Arc<System>, kubeconfig: &Path) -> Running {
    let options = OperatorOptions {
        kinds: vec![PoolKind::InClusterIpPool, PoolKind::PhpIpamPool],
        watch_filter: Some(space.name.clone()),
        concurrency: 2,
        ..space.options(kubeconfig)
    };
    let system: Arc<System> = Arc::clone(system);
    Running::with_systems(options, system)
}

fn operator(space: &Space, system: &Arc<System>) -> Running {
    operator_at(space, system, &space.server.kubeconfig())
}

#[test]
fn a_system_that_hangs_holds_up_its_own_pool_alone() {
    const CLAIMS: usize = 24;
    let space = Space::new("hanging");
    let system = Arc::new(System::default());
    let (hanging, _fine) = (system.subnet(31, 100), system.subnet(32, 100));
    hanging.hang(true);
    let _operator = operator(&space, &system);
    pool(&space, "hanging", 31, "");
    pool(&space, "fine", 32, "");
    space.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\nmetadata: {{ name: lan, labels: {{ {} }} }}\n\
         spec: {{ addresses: [10.0.0.0/24], prefix: 24 }}\n",
        label(&space)
    ));
    let name = |number: usize| format!("h{number:02}");
    for number in 0..CLAIMS {
        claim(&space, &name(number), KIND, "hanging", "");
    }
    // More of them wait than there are workers.
    assert!(wait_until(SOON, || (hanging.waiting() >= 3).then_some(())).is_some());
    for number in 0..5 {
        claim(&space, &format!("in-cluster-{number}"), "InClusterIPPool", "lan", "");
        claim(&space, &format!("fine-{number}"), KIND, "fine", "");
    }
    for number in 0..5 {
        space.bound(&format!("in-cluster-{number}"));
        space.bound(&format!("fine-{number}"));
    }
    assert!(hanging.waiting() >= 3, "it does not hang any more");
    hanging.hang(false);
    for number in 0..CLAIMS {
        space.bound(&name(number));
    }
}

#[test]
fn claims_on_another_system_are_served_in_the_order_they_came() {
    let space = Space::new("external-order");
    let system = Arc::new(System::default());
    let subnet = system.subnet(33, 2);
    let _operator = operator(&space, &system);
    pool(&space, "external-order", 33, "");
    for name in ["h1", "h2"] {
        claim(&space, name, KIND, "external-order", "");
        space.bound(name);
    }
    for name in ["w1", "w2", "w3"] {
        claim(&space, name, KIND, "external-order", "");
        space.wait_for_reason(name, "PoolExhausted");
        thread::sleep(Duration::from_millis(1100));
    }
    // The first of the line asks for all of them.
    let asked = |name: &str| subnet.asked().iter().any(|one| *one == format!("{name}.external-order"));
    assert_eq!(["w1", "w2", "w3"].map(asked), [true, false, false]);
    space.server.delete(&space.claim_path("h1"));
    assert_eq!(space.bound("w1"), "10.33.0.1");
    space.server.delete(&space.claim_path("h2"));
    assert_eq!(space.bound("w2"), "10.33.0.2");
    space.stays_without("w3");
}

#[test]
fn addresses_that_are_kept_for_claims_go_to_them() {
    let space = Space::new("external-kept");
    let system = Arc::new(System::default());
    let subnet = system.subnet(34, 20);
    let _operator = operator(&space, &system);
    pool(
        &space,
        "external-kept",
        34,
        "ipam.netstead.io/pre-allocations: 'vip=10.34.0.1,external-kept/db=10.34.0.2'",
    );
    // The system would give 10.34.0.1.
    claim(&space, "any", KIND, "external-kept", "");
    assert_eq!(space.bound("any"), "10.34.0.3");
    let wish = |text: &str| format!(", annotations: {{ ipam.netstead.io/address: '{text}' }}");
    claim(&space, "promised", KIND, "external-kept", &wish("10.34.0.1"));
    claim(&space, "nonsense", KIND, "external-kept", &wish("10.34.0"));
    for name in ["promised", "nonsense"] {
        space.wait_for_reason(name, "AllocationFailed");
        assert!(!subnet.asked().contains(&format!("{name}.external-kept")));
    }
    for (name, address) in [("vip", "10.34.0.1"), ("db", "10.34.0.2")] {
        claim(&space, name, KIND, "external-kept", "");
        assert_eq!(space.bound(name), address);
    }
    claim(&space, "wish", KIND, "external-kept", &wish("10.34.0.17"));
    assert_eq!(space.bound("wish"), "10.34.0.17");
    assert_eq!(subnet.records().len(), 4);
}

#[test]
fn an_address_whose_claim_is_gone_is_given_back() {
    let space = Space::new("orphan");
    let system = Arc::new(System::default());
    let subnet = system.subnet(35, 5);
    let _operator = operator(&space, &system);
    pool(&space, "orphan", 35, "");
    for name in ["one", "moved"] {
        claim(&space, name, KIND, "orphan", "");
        space.bound(name);
    }
    // An object that is in another cluster by now is not released.
    space.annotate(&space.address_path("moved"), "clusterctl.cluster.x-k8s.io/delete-for-move", Some(""));
    // A person removes the claims past their finalizers.
    for name in ["one", "moved"] {
        space.annotate(&space.claim_path(name), "cluster.x-k8s.io/paused", Some(""));
        space.server.patch(&space.claim_path(name), &json!({ "metadata": { "finalizers": null } }));
        space.server.delete(&space.claim_path(name));
        space.gone(&space.claim_path(name));
        space.server.delete(&space.address_path(name));
    }
    space.gone(&space.address_path("one"));
    assert!(wait_until(SOON, || (subnet.released() == ["one.orphan"]).then_some(())).is_some());
    thread::sleep(crate::world::A_WHILE);
    assert_eq!((subnet.records().len(), subnet.released().len()), (1, 1));
    assert!(space.get(&space.address_path("moved")).is_some());
}

#[test]
fn a_pool_stays_while_an_address_is_drawn_from_it() {
    let space = Space::new("drawing");
    let system = Arc::new(System::default());
    let subnet = system.subnet(36, 5);
    let _operator = operator(&space, &system);
    pool(&space, "drawing", 36, "");
    let path = pool_path("drawing");
    let has_finalizer = || {
        let object = space.get(&path)?;
        object["metadata"]["finalizers"].is_array().then_some(())
    };
    assert!(wait_until(SOON, has_finalizer).is_some());
    subnet.hang(true);
    claim(&space, "one", KIND, "drawing", "");
    assert!(wait_until(SOON, || (subnet.waiting() == 1).then_some(())).is_some());
    space.server.delete(&path);
    thread::sleep(crate::world::A_WHILE);
    assert!(space.get(&path).is_some(), "the pool is gone in the middle of a draw");
    subnet.hang(false);
    assert!(wait_until(SOON, || space.get(&space.address_path("one"))).is_some());
    space.server.delete(&space.claim_path("one"));
    space.gone(&space.claim_path("one"));
    space.gone(&path);
    assert_eq!((subnet.records().len(), subnet.released()), (0, vec!["one.drawing".to_owned()]));
}

#[test]
fn a_pool_gives_back_what_a_crash_left_without_an_object() {
    let space = Space::new("left-over");
    let system = Arc::new(System::default());
    let subnet = system.subnet(37, 5);
    pool(&space, "left-over", 37, "");
    let path = pool_path("left-over");
    claim(&space, "one", KIND, "left-over", ", finalizers: [ipam.cluster.x-k8s.io/ReleaseAddress]");
    let uid = space.get(&path).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    subnet.record(&format!("capi/{uid}/left-over/one"), "10.37.0.1");
    space
        .server
        .patch(&path, &json!({ "metadata": { "finalizers": ["ipam.cluster.x-k8s.io/ProtectPool"] } }));
    space.server.delete(&path);
    let _operator = operator(&space, &system);
    space.gone(&path);
    assert_eq!(subnet.released(), ["one.left-over"]);
    // The claim that is left can go too.
    space.server.delete(&space.claim_path("one"));
    space.gone(&space.claim_path("one"));
}

#[test]
fn an_address_that_was_there_gets_our_key() {
    let space = Space::new("no-key");
    let system = Arc::new(System::default());
    let subnet = system.subnet(38, 5);
    pool(&space, "no-key", 38, "");
    claim(&space, "old", KIND, "no-key", "");
    let object = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "old" },
        "spec": { "address": "10.38.0.4", "prefix": 24, "claimRef": { "name": "old" },
            "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": KIND, "name": "no-key" } },
    });
    space.apply(&object.to_string());
    let _operator = operator(&space, &system);
    assert_eq!(space.bound("old"), "10.38.0.4");
    let uid = space.get(&pool_path("no-key")).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let key = format!("capi/{uid}/no-key/old");
    let has_key = || {
        let object = space.get(&space.address_path("old"))?;
        (object["metadata"]["annotations"]["ipam.netstead.io/key"] == key.as_str()).then_some(())
    };
    assert!(wait_until(SOON, has_key).is_some());
    assert_eq!(subnet.records().into_iter().collect::<Vec<_>>(), [(key, "10.38.0.4".to_owned())]);
}

#[test]
fn a_release_goes_from_the_outside_in() {
    let space = Space::new("release-order");
    let system = Arc::new(System::default());
    let subnet = system.subnet(39, 5);
    let proxy = FaultProxy::recording(space.server.kubeconfig());
    let operator = operator_at(&space, &system, &proxy.kubeconfig);
    pool(&space, "release-order", 39, "");
    claim(&space, "one", KIND, "release-order", "");
    space.bound("one");
    let before = proxy.changes().len();
    space.server.delete(&space.claim_path("one"));
    space.gone(&space.claim_path("one"));
    assert_eq!(subnet.released(), ["one.release-order"]);
    let of_claim = |change: &String| change.ends_with("/one");
    let changes: Vec<String> = proxy.changes().into_iter().skip(before).filter(of_claim).collect();
    let base = "/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/release-order";
    assert_eq!(
        changes,
        [
            format!("PATCH {base}/ipaddresses/one"),
            format!("DELETE {base}/ipaddresses/one"),
            format!("PATCH {base}/ipaddressclaims/one"),
        ]
    );
    drop(operator);
    proxy.end();
}
