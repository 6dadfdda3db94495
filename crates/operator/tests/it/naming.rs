//! How addresses of Netstead's own pool kinds are to be called.

use std::sync::Arc;

use netstead_operator::{OperatorOptions, PoolKind};
use netstead_testkit::wait_until;
use serde_json::json;

use crate::{
    system::{Subnet, System},
    world::{Running, SOON, Space},
};

const OWN: &str = "ipam.netstead.io";

/// A kind of an infrastructure provider, whose plural cannot be guessed.
const LINKS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: { name: chainlinkages.infrastructure.cluster.x-k8s.io }\nspec:\n  group: infrastructure.cluster.x-k8s.io\n  scope: Namespaced\n\
    \x20 names: { kind: ChainLink, plural: chainlinkages, singular: chainlink }\n  versions:\n  - name: v1beta1\n    served: true\n    storage: true\n\
    \x20   schema: { openAPIV3Schema: { type: object } }\n";

fn operator(space: &Space, system: &Arc<System>) -> Running {
    let options =
        OperatorOptions { kinds: vec![PoolKind::NetsteadPool], ..space.options(&space.server.kubeconfig()) };
    let system: Arc<System> = Arc::clone(system);
    Running::with_systems(options, system)
}

fn pool(space: &Space, system: &System, id: i64) -> Arc<Subnet> {
    let subnet = system.subnet(id, 20);
    space.apply(&format!(
        "apiVersion: {OWN}/v1alpha1\nkind: NetsteadIPPool\nmetadata: {{ name: lan }}\nspec: {{ pool: '{id}' }}\n"
    ));
    subnet
}

fn claim(space: &Space, name: &str, metadata: &str) {
    space.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name}{metadata} }}\n\
         spec: {{ poolRef: {{ apiGroup: {OWN}, kind: NetsteadIPPool, name: lan }} }}\n"
    ));
}

/// An owner reference as part of metadata.
fn owned(api_version: &str, kind: &str, name: &str) -> String {
    let reference =
        json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": "u-1", "controller": true });
    format!(", ownerReferences: [{reference}]")
}

fn link(name: &str) -> String {
    owned("infrastructure.cluster.x-k8s.io/v1beta1", "ChainLink", name)
}

/// Links, each owned by the next, and the last by a Machine.
fn chain(space: &Space, name: &str, links: usize) {
    for number in 1..=links {
        let owner = if number == links {
            owned("cluster.x-k8s.io/v1beta2", "Machine", &format!("machine-{name}"))
        } else {
            link(&format!("{name}-{}", number + 1))
        };
        space.apply(&format!(
            "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: ChainLink\nmetadata: {{ name: {name}-{number}{owner} }}\n"
        ));
    }
}

#[test]
fn an_address_is_called_after_the_machine_of_its_claim_else_after_the_claim() {
    let space = Space::new("naming");
    space.server.apply(LINKS);
    let system = Arc::new(System::default());
    let subnet = pool(&space, &system, 41);
    let _operator = operator(&space, &system);
    // A Machine four links up is the fifth step; one more is too far.
    chain(&space, "near", 4);
    chain(&space, "far", 5);
    claim(&space, "near-eth0", &link("near-1"));
    claim(&space, "far-eth0", &link("far-1"));
    claim(&space, "direct", &owned("cluster.x-k8s.io/v1beta2", "Machine", "machine-direct"));
    claim(&space, "orphan", &link("gone-1"));
    claim(&space, "unserved", &owned("infrastructure.cluster.x-k8s.io/v1beta1", "NoSuchKind", "x"));
    claim(&space, "bare", "");
    claim(&space, "asked", ", annotations: { netstead.io/hostname: 'web, db.example.com' }");
    for (name, own, machine) in [
        ("near-eth0", "machine-near", Some("naming/machine-near")),
        ("far-eth0", "far-eth0", None),
        ("direct", "machine-direct", Some("naming/machine-direct")),
        ("orphan", "orphan", None),
        ("unserved", "unserved", None),
        ("bare", "bare", None),
    ] {
        space.bound(name);
        let naming = subnet.naming(&format!("{name}.naming"));
        assert_eq!((naming.own.as_str(), naming.machine.as_deref()), (own, machine), "{name}");
        let address = space.get(&space.address_path(name)).unwrap();
        assert_eq!(address["metadata"]["annotations"]["ipam.netstead.io/names"], own);
        assert_eq!(address["spec"]["poolRef"]["apiGroup"], OWN);
    }
    space.bound("asked");
    assert_eq!(subnet.naming("asked.naming").asked, ["web", "db.example.com"]);
}

#[test]
fn a_name_that_is_taken_is_said_on_the_claim_and_its_address_is_bound() {
    let space = Space::new("name-taken");
    let system = Arc::new(System::default());
    pool(&space, &system, 42);
    let _operator = operator(&space, &system);
    claim(&space, "one", ", annotations: { netstead.io/hostname: taken }");
    assert_eq!(space.bound("one"), "10.42.0.1");
    let ready = || {
        let claim = space.get(&space.claim_path("one"))?;
        claim["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready").cloned()
    };
    let ready = wait_until(SOON, ready).unwrap();
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (&json!("True"), &json!("AddressAllocated"), &json!("the name is taken"))
    );
    let event = || {
        let events = space.get("/apis/events.k8s.io/v1/namespaces/name-taken/events")?;
        events["items"].as_array()?.iter().find(|event| event["reason"] == "NameNotGiven").cloned()
    };
    assert_eq!(wait_until(SOON, event).unwrap()["note"], "the name is taken");
}

#[test]
fn a_pool_says_its_network_and_never_changes_the_pool_that_it_means() {
    let space = Space::new("own-table");
    let system = Arc::new(System::default());
    pool(&space, &system, 43);
    let _operator = operator(&space, &system);
    claim(&space, "one", "");
    space.bound("one");
    let path = format!("/apis/{OWN}/v1alpha1/namespaces/own-table/netsteadippools");
    let table = || {
        let table = space.server.table(&path);
        table.lines().nth(1)?.strip_prefix("lan 43  24 20 19 1 True ").map(str::to_owned)
    };
    assert!(wait_until(SOON, table).is_some(), "{}", space.server.table(&path));
    let titles = space.server.table(&path).lines().next().unwrap().to_owned();
    assert_eq!(titles, "NAME POOL GATEWAY MASK TOTAL FREE USED READY AGE");
    let refused = space.server.dry_run(
        &format!("apiVersion: {OWN}/v1alpha1\nkind: NetsteadIPPool\nmetadata: {{ name: lan }}\nspec: {{ pool: other }}\n"),
        "own-table",
    );
    assert!(refused.join("\n").contains("the pool never changes"), "{refused:?}");
}

#[test]
fn wrong_prefixes_of_netbox_are_refused_by_the_rules() {
    let space = Space::new("netbox-rules");
    let refused = |kind: &str, spec: &str| {
        let yaml = format!(
            "apiVersion: {OWN}/v1alpha1\nkind: {kind}\nmetadata: {{ name: lan }}\nspec: {{ {spec} }}\n"
        );
        space.server.dry_run(&yaml, "netbox-rules").join("\n")
    };
    let own = "credentialsRef: { name: netbox }";
    let fine = "prefixes: [{ id: 7 }, { cidr: 10.0.3.0/24, vrf: lab, gateway: 10.0.3.1 }], customFields: { rack: 7, owner: me }";
    assert_eq!(refused("NetBoxIPPool", &format!("{own}, {fine}")), "");
    assert_eq!(
        refused(
            "GlobalNetBoxIPPool",
            &format!("credentialsRef: {{ name: netbox, namespace: ipam }}, {fine}")
        ),
        ""
    );
    assert!(refused("GlobalNetBoxIPPool", &format!("{own}, {fine}")).contains("namespace"));
    for (prefixes, why) in [
        ("[]", "at least 1"),
        ("[{ gateway: 10.0.3.1 }]", "one of id and cidr"),
        ("[{ id: 7, cidr: 10.0.3.0/24 }]", "one of id and cidr"),
        ("[{ id: 7, vrf: lab }]", "a vrf goes with a cidr"),
        ("[{ cidr: 10.0.3.7/24 }]", "bits behind its length"),
        ("[{ cidr: 10.0.3.0/24, gateway: 'fd00::1' }]", "not of one family"),
        ("[{ id: 7, gateway: router }]", "no IP address"),
    ] {
        let said = refused("NetBoxIPPool", &format!("{own}, prefixes: {prefixes}"));
        assert!(said.contains(why), "{prefixes}: {said}");
    }
}
