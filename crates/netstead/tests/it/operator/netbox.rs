//! Pools of NetBox.

use netstead_testkit::{KubeApiServer, NetBox, Process, wait_until};
use serde_json::{Value, json};

use super::{CLUSTER_API, SOON};
use crate::sandbox::Sandbox;

fn path(plural: &str, name: &str) -> String {
    format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/shop/{plural}/{name}")
}

fn claim(server: &KubeApiServer, name: &str, metadata: &str) {
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name}{metadata} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.netstead.io, kind: NetBoxIPPool, name: lan }} }}\n"
        ),
    );
}

fn bound(server: &KubeApiServer, name: &str) -> Value {
    let look = || {
        let (_, claim) = server.call("GET", &path("ipaddressclaims", name), None);
        claim["status"]["addressRef"]["name"].as_str()?;
        let (_, address) = server.call("GET", &path("ipaddresses", name), None);
        Some(address["spec"].clone())
    };
    let said = || server.call("GET", &path("ipaddressclaims", name), None).1;
    wait_until(SOON, look).unwrap_or_else(|| panic!("{}", said()))
}

/// Address, length and gateway of a claim.
fn given(server: &KubeApiServer, name: &str) -> String {
    let spec = bound(server, name);
    let text = |field: &str| spec[field].as_str().unwrap_or("-").to_owned();
    format!("{}/{} {}", text("address"), spec["prefix"], text("gateway"))
}

/// The message of the condition `Ready` of an object, once it has this reason.
fn message(server: &KubeApiServer, path: &str, reason: &str) -> String {
    let look = || {
        let (_, object) = server.call("GET", path, None);
        let all = object["status"]["conditions"].as_array()?.clone();
        let ready = all.into_iter().find(|one| one["type"] == "Ready" && one["reason"] == reason)?;
        ready["message"].as_str().map(str::to_owned)
    };
    wait_until(SOON, look).unwrap_or_else(|| panic!("{path}: {}", server.call("GET", path, None).1))
}

fn delete(server: &KubeApiServer, name: &str) {
    let path = path("ipaddressclaims", name);
    server.delete(&path);
    assert!(
        wait_until(SOON, || (server.call("GET", &path, None).0 == 404).then_some(())).is_some(),
        "{path}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one pool from its first address to its last")]
fn claims_get_addresses_of_prefixes_of_netbox_in_order_with_our_key() {
    let Some(netbox) = NetBox::start() else { return };
    let sandbox = Sandbox::empty();
    let server = KubeApiServer::start(&[]);
    server.apply(CLUSTER_API);
    server.apply(&sandbox.does("crds --kinds NetBoxIPPool,GlobalNetBoxIPPool"));
    // Two hosts and a gateway that NetBox knows nothing of; then a prefix with the gateway in a custom field, in a VRF.
    let first = netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.81.0.0/30" }));
    netbox.make(
        "/api/extras/custom-fields/",
        &json!({ "name": "gateway", "type": "text", "object_types": ["ipam.prefix"] }),
    );
    let vrf = netbox.make("/api/ipam/vrfs/", &json!({ "name": "lab" }));
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.82.0.0/29" }));
    netbox.make(
        "/api/ipam/prefixes/",
        &json!({ "prefix": "10.82.0.0/29", "vrf": vrf, "custom_fields": { "gateway": "10.82.0.6" } }),
    );
    netbox.make("/api/tenancy/tenants/", &json!({ "name": "Shop", "slug": "shop" }));
    netbox.make("/api/extras/tags/", &json!({ "name": "Cluster API", "slug": "capi" }));
    netbox.make(
        "/api/extras/custom-fields/",
        &json!({ "name": "rack", "type": "text", "object_types": ["ipam.ipaddress"] }),
    );
    netbox.make(
        "/api/ipam/ip-addresses/",
        &json!({ "address": "10.9.9.9/24", "dns_name": "printer.lab.test" }),
    );
    let secret = |namespace: &str, token: &str| {
        server.apply_in(
            namespace,
            &format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{ name: netbox }}\nstringData: {{ url: '{}', token: '{token}' }}\n",
                netbox.url()
            ),
        );
    };
    // The Secret of another namespace is none of this pool's.
    secret("default", netbox.token());
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: ipam.netstead.io/v1alpha1\nkind: NetBoxIPPool\nmetadata: {{ name: lan }}\nspec:\n\
             \x20 credentialsRef: {{ name: netbox }}\n  prefixes: [{{ id: {first}, gateway: 10.81.0.1 }}, {{ cidr: 10.82.0.0/29, vrf: lab }}]\n\
             \x20 gatewayField: gateway\n  tenant: shop\n  tags: [capi]\n  status: reserved\n  customFields: {{ rack: r7 }}\n  domain: lab.test\n"
        ),
    );
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut command = sandbox.command();
    command.args(["operator", "--kinds", "NetBoxIPPool,GlobalNetBoxIPPool", "--kubeconfig", &kubeconfig]);
    let start = |command: &mut std::process::Command| Process::start("netstead operator", command).unwrap();
    let mut operator = start(&mut command);
    let pool = "/apis/ipam.netstead.io/v1alpha1/namespaces/shop/netboxippools/lan";
    assert!(message(&server, pool, "InvalidSpec").contains("there is no Secret shop/netbox"));
    secret("shop", netbox.token());
    message(&server, pool, "PoolReady");
    let counts = server.call("GET", pool, None).1["status"]["ipAddresses"].clone();
    assert_eq!((&counts["total"], &counts["free"]), (&json!(6), &json!(6)));

    // NetBox would give the gateway first.
    claim(&server, "one", "");
    assert_eq!(given(&server, "one"), "10.81.0.2/30 10.81.0.1");
    let rows = netbox.list("/api/ipam/ip-addresses/?parent=10.81.0.0/30");
    assert_eq!(rows.len(), 1, "the gateway is given back: {rows:?}");
    let row = &rows[0];
    let (_, object) = server.call("GET", pool, None);
    let uid = object["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        row["custom_fields"],
        json!({ "rack": "r7", "netstead_key": format!("[netstead-claim capi/{uid}/shop/one]") })
    );
    assert_eq!(
        (&row["tenant"]["slug"], &row["tags"][0]["slug"], &row["status"]["value"], &row["dns_name"]),
        (&json!("shop"), &json!("capi"), &json!("reserved"), &json!("one.lab.test"))
    );
    assert!(row["description"].as_str().unwrap().contains("`one.shop`"), "{row}");
    // The next prefix of the list, in its VRF, with the gateway of its field.
    claim(&server, "two", ", annotations: { netstead.io/hostname: printer }");
    assert_eq!(given(&server, "two"), "10.82.0.1/29 10.82.0.6");
    let said = message(&server, &path("ipaddressclaims", "two"), "AddressAllocated");
    assert!(said.starts_with("the name printer.lab.test is taken: NetBox has it for 10.9.9.9"), "{said}");
    let in_vrf = netbox.list(&format!("/api/ipam/ip-addresses/?vrf_id={vrf}"));
    assert_eq!(
        (in_vrf.len(), &in_vrf[0]["address"], &in_vrf[0]["dns_name"]),
        (1, &json!("10.82.0.1/29"), &json!(""))
    );
    claim(&server, "wish", ", annotations: { ipam.netstead.io/address: 10.82.0.5 }");
    assert_eq!(given(&server, "wish"), "10.82.0.5/29 10.82.0.6");
    claim(&server, "gateway", ", annotations: { ipam.netstead.io/address: 10.82.0.6 }");
    assert!(
        message(&server, &path("ipaddressclaims", "gateway"), "AllocationFailed").contains("the gateway")
    );
    // A kill between address and object: the address is found by its key.
    operator.kill().unwrap();
    server.patch(&path("ipaddresses", "two"), &json!({ "metadata": { "finalizers": null } }));
    server.delete(&path("ipaddresses", "two"));
    let _operator = start(&mut command);
    let back = || (server.call("GET", &path("ipaddresses", "two"), None).0 == 200).then_some(());
    assert!(wait_until(SOON, back).is_some());
    assert_eq!(given(&server, "two"), "10.82.0.1/29 10.82.0.6");
    // The last three, and then none.
    for (name, address) in [("three", "10.82.0.2"), ("four", "10.82.0.3"), ("five", "10.82.0.4")] {
        claim(&server, name, "");
        assert_eq!(given(&server, name), format!("{address}/29 10.82.0.6"));
    }
    claim(&server, "late", "");
    message(&server, &path("ipaddressclaims", "late"), "PoolExhausted");
    // A record that a person removed is released too.
    let gone = netbox.list("/api/ipam/ip-addresses/?address=10.82.0.3");
    netbox.call("DELETE", &format!("/api/ipam/ip-addresses/{}/", gone[0]["id"]), None);
    delete(&server, "four");
    assert_eq!(given(&server, "late"), "10.82.0.3/29 10.82.0.6");
    for name in ["one", "two", "wish", "gateway", "three", "five", "late"] {
        delete(&server, name);
    }
    let left = netbox.list("/api/ipam/ip-addresses/");
    assert_eq!(left.len(), 1, "{left:?}");
    server.delete(pool);
    assert!(wait_until(SOON, || (server.call("GET", pool, None).0 == 404).then_some(())).is_some());
}
