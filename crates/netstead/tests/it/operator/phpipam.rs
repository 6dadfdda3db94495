//! Pools of phpIPAM.

use netstead_testkit::{FakePhpIpam, KubeApiServer, Process, wait_until};
use serde_json::{Value, json};

use super::{CLUSTER_API, SOON};
use crate::sandbox::Sandbox;

const POOLS: &str = "/apis/ipam.cluster.x-k8s.io/v1alpha1/phpipamippools";

fn path(plural: &str, name: &str) -> String {
    format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/shop/{plural}/{name}")
}

fn claim(server: &KubeApiServer, name: &str, pool: &str, metadata: &str) {
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name}{metadata} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.cluster.x-k8s.io, kind: PHPIPAMIPPool, name: {pool} }} }}\n"
        ),
    );
}

fn bound(server: &KubeApiServer, name: &str) -> Option<Value> {
    let (_, claim) = server.call("GET", &path("ipaddressclaims", name), None);
    claim["status"]["addressRef"]["name"].as_str()?;
    let (_, address) = server.call("GET", &path("ipaddresses", name), None);
    Some(address["spec"].clone())
}

fn address_of(server: &KubeApiServer, name: &str) -> String {
    let spec = wait_until(SOON, || bound(server, name)).unwrap();
    spec["address"].as_str().unwrap().to_owned()
}

/// The reason of the condition `Ready` of an object.
fn reason(server: &KubeApiServer, path: &str) -> Option<String> {
    let (_, object) = server.call("GET", path, None);
    let ready = object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")?.clone();
    ready["reason"].as_str().map(str::to_owned)
}

fn wait_for(server: &KubeApiServer, path: &str, wanted: &str) {
    let seen = wait_until(SOON, || reason(server, path).filter(|seen| seen == wanted));
    assert!(seen.is_some(), "{path}: {}", server.call("GET", path, None).1);
}

fn gone(server: &KubeApiServer, path: &str) {
    assert!(wait_until(SOON, || (server.call("GET", path, None).0 == 404).then_some(())).is_some(), "{path}");
}

#[test]
fn claims_get_addresses_of_phpipam_and_those_of_another_program_are_kept() {
    let sandbox = Sandbox::empty();
    let server = KubeApiServer::start(&[]);
    server.apply(CLUSTER_API);
    server.apply(&sandbox.does("crds --kinds PHPIPAMIPPool"));
    let phpipam = FakePhpIpam::start();
    let subnet = phpipam.add_subnet(1, "10.5.0.0/29");
    let gateway = phpipam.put(subnet, "10.5.0.1", &[("description", "router")]);
    phpipam.make_gateway(gateway);
    // capi-phpipam leaves a record whose hostname is the claim, and for one of the two also the object of the address.
    for (ip, name) in [("10.5.0.2", "old.shop"), ("10.5.0.3", "half.shop")] {
        phpipam.put(subnet, ip, &[("hostname", name), ("description", name)]);
    }
    // A person's record with such a hostname is none of them.
    let of_a_person =
        phpipam.put(subnet, "10.5.0.6", &[("hostname", "new.shop"), ("description", "printer")]);
    claim(&server, "old", "lab", ", finalizers: [ipam.cluster.x-k8s.io/ReleaseAddress]");
    let object = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "old" },
        "spec": { "address": "10.5.0.2", "prefix": 29, "gateway": "10.5.0.1", "claimRef": { "name": "old" },
            "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "PHPIPAMIPPool", "name": "lab" } },
    });
    server.apply_in("shop", &object.to_string());
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{ name: phpipam }}\nstringData: {{ username: Admin, password: ipamadmin, \
             app_id: netstead, endpoint: '{}/api' }}\n",
            phpipam.url()
        ),
    );
    server.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha1\nkind: PHPIPAMIPPool\nmetadata: {{ name: lab }}\n\
         spec: {{ subnetid: {subnet}, credentialsRef: {{ name: phpipam, namespace: shop }} }}\n"
    ));
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut command = sandbox.command();
    command.args(["operator", "--kinds", "PHPIPAMIPPool", "--kubeconfig", &kubeconfig]);
    let start = |command: &mut std::process::Command| Process::start("netstead operator", command).unwrap();
    let mut operator = start(&mut command);
    wait_for(&server, &format!("{POOLS}/lab"), "IPPoolReady");
    let (_, pool) = server.call("GET", &format!("{POOLS}/lab"), None);
    assert_eq!((&pool["status"]["gateway"], &pool["status"]["mask"]), (&json!("10.5.0.1"), &json!("29")));
    // The object that was there is kept, and so is the record without one.
    assert_eq!(address_of(&server, "old"), "10.5.0.2");
    claim(&server, "half", "lab", "");
    assert_eq!(address_of(&server, "half"), "10.5.0.3");
    claim(&server, "new", "lab", "");
    let spec = wait_until(SOON, || bound(&server, "new")).unwrap();
    assert_eq!(
        (&spec["address"], &spec["prefix"], &spec["gateway"]),
        (&json!("10.5.0.4"), &json!(29), &json!("10.5.0.1"))
    );
    let uid = pool["metadata"]["uid"].as_str().unwrap();
    // Each gets our key, also the one that had an object already.
    for claim in ["half", "new", "old"] {
        let has_key = || {
            let lines = phpipam.lines();
            let line = lines.iter().find(|line| line.contains(&format!("hostname={claim}.shop")))?.clone();
            line.contains(&format!("[netstead-claim capi/{uid}/shop/{claim}]")).then_some(())
        };
        assert!(wait_until(SOON, has_key).is_some(), "{claim}: {:?}", phpipam.lines());
    }
    // A kill between record and object: the record is found by its key.
    operator.kill().unwrap();
    server.patch(&path("ipaddresses", "new"), &json!({ "metadata": { "finalizers": null } }));
    server.delete(&path("ipaddresses", "new"));
    let operator = start(&mut command);
    let back =
        wait_until(SOON, || (server.call("GET", &path("ipaddresses", "new"), None).0 == 200).then_some(()));
    assert!(back.is_some());
    assert_eq!(address_of(&server, "new"), "10.5.0.4");
    // The last one, and then none.
    claim(&server, "last", "lab", "");
    assert_eq!(address_of(&server, "last"), "10.5.0.5");
    claim(&server, "late", "lab", "");
    wait_for(&server, &path("ipaddressclaims", "late"), "PoolExhausted");
    // The records are released, and the one that waits is served.
    server.delete(&path("ipaddressclaims", "old"));
    gone(&server, &path("ipaddressclaims", "old"));
    assert_eq!(address_of(&server, "late"), "10.5.0.2");
    for name in ["half", "new", "last", "late"] {
        server.delete(&path("ipaddressclaims", name));
        gone(&server, &path("ipaddressclaims", name));
    }
    assert_eq!(phpipam.ids(), [gateway, of_a_person]);
    drop(operator);
}

#[test]
fn a_pool_of_phpipam_says_what_is_wrong() {
    let sandbox = Sandbox::empty();
    let server = KubeApiServer::start(&[]);
    server.apply(CLUSTER_API);
    server.apply(&sandbox.does("crds --kinds PHPIPAMIPPool"));
    let phpipam = FakePhpIpam::start();
    // A subnet without a gateway will do.
    let subnet = phpipam.add_subnet(1, "10.6.0.0/24");
    let pool = |name: &str, subnet: u64, endpoint: &str, password: &str| {
        server.apply(&format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1alpha1\nkind: PHPIPAMIPPool\nmetadata: {{ name: {name} }}\nspec: {{ subnetid: {subnet}, \
             credentials: {{ username: Admin, password: {password}, app_id: netstead, endpoint: '{endpoint}' }} }}\n"
        ));
    };
    let url = phpipam.url();
    pool("denied", subnet, &url, "wrong");
    pool("nowhere", subnet, "http://127.0.0.1:1", "ipamadmin");
    pool("no-subnet", 4711, &url, "ipamadmin");
    server.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha1\nkind: PHPIPAMIPPool\nmetadata: {{ name: no-secret }}\n\
         spec: {{ subnetid: {subnet}, credentialsRef: {{ name: none, namespace: default }} }}\n"
    ));
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut command = sandbox.command();
    command.args(["operator", "--kinds", "PHPIPAMIPPool", "--kubeconfig", &kubeconfig]);
    let _operator = Process::start("netstead operator", &mut command).unwrap();
    for (name, wanted) in [
        ("denied", "InvalidPHPIPamCredentials"),
        ("nowhere", "PHPIPamUnavailable"),
        ("no-subnet", "InvalidPHPIPamConfiguration"),
        ("no-secret", "InvalidPHPIPamConfiguration"),
    ] {
        wait_for(&server, &format!("{POOLS}/{name}"), wanted);
    }
    server.apply_in("shop", "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\n");
    claim(&server, "one", "denied", "");
    wait_for(&server, &path("ipaddressclaims", "one"), "PoolNotReady");
    // Mended, it serves the claim that waits.
    pool("denied", subnet, &url, "ipamadmin");
    assert_eq!(address_of(&server, "one"), "10.6.0.1");
    let spec = bound(&server, "one").unwrap();
    assert_eq!((spec.get("gateway"), &spec["prefix"]), (None, &json!(24)));
    // Without phpIPAM nothing is released, and with it again it is.
    phpipam.stop();
    server.delete(&path("ipaddressclaims", "one"));
    wait_for(&server, &path("ipaddressclaims", "one"), "PoolNotReady");
    assert_eq!(server.call("GET", &path("ipaddresses", "one"), None).0, 200);
    phpipam.restart();
    gone(&server, &path("ipaddressclaims", "one"));
    assert!(phpipam.ids().is_empty());
}
