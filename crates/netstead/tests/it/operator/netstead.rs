//! Pools of Netstead's own ledger.

use netstead_testkit::{KubeApiServer, Process, wait_until};
use serde_json::{Value, json};

use super::{CLUSTER_API, SOON};
use crate::{resolve, sandbox::Sandbox};

/// A kind of an infrastructure provider.
const LAB_MACHINES: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: { name: labmachines.infrastructure.cluster.x-k8s.io }\nspec:\n  group: infrastructure.cluster.x-k8s.io\n  scope: Namespaced\n\
    \x20 names: { kind: LabMachine, plural: labmachines, singular: labmachine }\n  versions:\n  - name: v1beta1\n    served: true\n    storage: true\n\
    \x20   schema: { openAPIV3Schema: { type: object } }\n";

fn path(plural: &str, name: &str) -> String {
    format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/shop/{plural}/{name}")
}

fn claim(server: &KubeApiServer, name: &str, kind: &str, metadata: &str) {
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name}{metadata} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.netstead.io, kind: {kind}, name: lan }} }}\n"
        ),
    );
}

/// A machine of the infrastructure that belongs to a Machine, as metadata of a claim.
fn of_machine(server: &KubeApiServer, machine: &str) -> String {
    let owner = |group: &str, kind: &str, name: &str| json!([{ "apiVersion": group, "kind": kind, "name": name, "uid": "u-1", "controller": true }]);
    let above = owner("cluster.x-k8s.io/v1beta2", "Machine", machine);
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: LabMachine\nmetadata: {{ name: lab-{machine}, ownerReferences: {above} }}\n"
        ),
    );
    let own = owner("infrastructure.cluster.x-k8s.io/v1beta1", "LabMachine", &format!("lab-{machine}"));
    format!(", ownerReferences: {own}")
}

fn spec(server: &KubeApiServer, name: &str) -> Option<Value> {
    let (_, claim) = server.call("GET", &path("ipaddressclaims", name), None);
    claim["status"]["addressRef"]["name"].as_str()?;
    let (_, address) = server.call("GET", &path("ipaddresses", name), None);
    Some(address["spec"].clone())
}

fn address_of(server: &KubeApiServer, name: &str) -> String {
    let spec = wait_until(SOON, || spec(server, name));
    let said = || server.call("GET", &path("ipaddressclaims", name), None).1;
    spec.unwrap_or_else(|| panic!("{}", said()))["address"].as_str().unwrap().to_owned()
}

/// `reason: message` of the condition `Ready` of an object, once it has this reason.
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

fn claims_of(sandbox: &Sandbox) -> Vec<Value> {
    serde_json::from_str(&sandbox.does("get claims -o json")).unwrap()
}

fn server(sandbox: &Sandbox) -> KubeApiServer {
    let server = KubeApiServer::start(&[]);
    server.apply(CLUSTER_API);
    server.apply(LAB_MACHINES);
    server.apply(&sandbox.does("crds --kinds NetsteadIPPool,GlobalNetsteadIPPool"));
    server
}

#[test]
fn claims_draw_from_a_pool_of_a_server_and_get_the_names_of_their_machines() {
    let sandbox = Sandbox::with_server();
    let server = server(&sandbox);
    sandbox.does(
        "pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.53 --gateway 10.0.3.1 --domain lab.test --cooldown 0",
    );
    // A claim of a person is in the same pool, and has its name first.
    assert_eq!(sandbox.does("claim lan printer"), "10.0.3.50\n");
    let token = sandbox.does("token create operator --role claim --pool lan");
    server.apply_in(
        "shop",
        "apiVersion: ipam.netstead.io/v1alpha1\nkind: NetsteadIPPool\nmetadata: { name: lan }\nspec: { pool: lan }\n---\n\
         apiVersion: ipam.netstead.io/v1alpha1\nkind: NetsteadIPPool\nmetadata: { name: none }\nspec: { pool: nowhere }\n",
    );
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut command = sandbox.command();
    command.args([
        "operator",
        "--kinds",
        "NetsteadIPPool",
        "--kubeconfig",
        &kubeconfig,
        "--token",
        token.trim(),
    ]);
    let start = |command: &mut std::process::Command| Process::start("netstead operator", command).unwrap();
    let mut operator = start(&mut command);
    let pools = "/apis/ipam.netstead.io/v1alpha1/namespaces/shop/netsteadippools";
    message(&server, &format!("{pools}/lan"), "PoolReady");
    // A token for one pool learns nothing of others.
    assert!(message(&server, &format!("{pools}/none"), "CredentialsRefused").contains("not for `nowhere`"));
    let machine = of_machine(&server, "web-1");
    claim(&server, "web-1-eth0", "NetsteadIPPool", &machine);
    let given = wait_until(SOON, || spec(&server, "web-1-eth0")).unwrap();
    assert_eq!(
        (&given["address"], &given["prefix"], &given["gateway"]),
        (&json!("10.0.3.51"), &json!(24), &json!("10.0.3.1"))
    );
    resolve::until(&["10.0.3.51"], || resolve::a(sandbox.dns(), "web-1.lab.test"));
    let (_, pool) = server.call("GET", &format!("{pools}/lan"), None);
    let key = format!("capi/{}/shop/web-1-eth0", pool["metadata"]["uid"].as_str().unwrap());
    let held = claims_of(&sandbox).into_iter().find(|claim| claim["address"] == "10.0.3.51").unwrap();
    assert_eq!((&held["key"], &held["owner"]), (&json!(key), &json!("operator")));
    assert_eq!(held["labels"], json!({ "claim": "web-1-eth0.shop", "machine": "shop/web-1" }));
    // A second interface of the machine shares its name; a claim of others does not get it, but has its address.
    claim(&server, "web-1-eth1", "NetsteadIPPool", &machine);
    assert_eq!(address_of(&server, "web-1-eth1"), "10.0.3.52");
    let both = || {
        let mut values = resolve::a(sandbox.dns(), "web-1.lab.test").values;
        values.sort();
        (values == ["10.0.3.51", "10.0.3.52"]).then_some(())
    };
    assert!(wait_until(SOON, both).is_some());
    claim(&server, "other", "NetsteadIPPool", ", annotations: { netstead.io/hostname: printer.lab.test }");
    assert_eq!(address_of(&server, "other"), "10.0.3.53");
    let said = message(&server, &path("ipaddressclaims", "other"), "AddressAllocated");
    assert!(said.starts_with("the name printer.lab.test is taken: it leads to 10.0.3.50"), "{said}");
    assert_eq!(resolve::a(sandbox.dns(), "printer.lab.test").values, ["10.0.3.50"]);
    // A kill between claim and object: the same address.
    operator.kill().unwrap();
    server.patch(&path("ipaddresses", "web-1-eth1"), &json!({ "metadata": { "finalizers": null } }));
    server.delete(&path("ipaddresses", "web-1-eth1"));
    let _operator = start(&mut command);
    let back = || (server.call("GET", &path("ipaddresses", "web-1-eth1"), None).0 == 200).then_some(());
    assert!(wait_until(SOON, back).is_some());
    assert_eq!(address_of(&server, "web-1-eth1"), "10.0.3.52");
    // Full, and then not.
    claim(&server, "late", "NetsteadIPPool", "");
    message(&server, &path("ipaddressclaims", "late"), "PoolExhausted");
    delete(&server, "web-1-eth0");
    assert_eq!(address_of(&server, "late"), "10.0.3.51");
    resolve::until(&["10.0.3.52"], || resolve::a(sandbox.dns(), "web-1.lab.test"));
    resolve::until(&["10.0.3.51"], || resolve::a(sandbox.dns(), "late.lab.test"));
    for name in ["web-1-eth1", "other", "late"] {
        delete(&server, name);
    }
    let left: Vec<String> = claims_of(&sandbox).iter().map(|claim| claim["key"].to_string()).collect();
    assert_eq!(left, ["\"printer\""]);
}

#[test]
fn a_server_with_an_operator_serves_its_own_pools_in_process_and_for_every_namespace() {
    let mut sandbox = Sandbox::empty();
    let server = server(&sandbox);
    let config = format!(
        "[operator]\nkinds = [\"NetsteadIPPool\", \"GlobalNetsteadIPPool\"]\nkubeconfig = \"{}\"\n\
         [pool.lan]\nnetwork = \"10.0.4.0/24\"\ngateway = \"10.0.4.1\"\ndomain = \"lab.test\"\ncooldown = \"0\"\n",
        server.kubeconfig().display()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    server.apply(
        "apiVersion: ipam.netstead.io/v1alpha1\nkind: GlobalNetsteadIPPool\nmetadata: { name: lan }\nspec: { pool: lan }\n",
    );
    server.apply(
        "apiVersion: ipam.netstead.io/v1alpha1\nkind: GlobalNetsteadIPPool\nmetadata: { name: none }\nspec: { pool: nowhere }\n",
    );
    let none = "/apis/ipam.netstead.io/v1alpha1/globalnetsteadippools/none";
    assert!(message(&server, none, "InvalidSpec").contains("there is no pool `nowhere`"));
    // Two claims ask for one name at the same time: one gets it, and both have an address.
    for name in ["one", "two"] {
        claim(&server, name, "GlobalNetsteadIPPool", ", annotations: { netstead.io/hostname: shared }");
    }
    let mut addresses = ["one", "two"].map(|name| address_of(&server, name));
    addresses.sort();
    assert_eq!(addresses, ["10.0.4.2", "10.0.4.3"]);
    let named = || {
        let values = resolve::a(sandbox.dns(), "shared.lab.test").values;
        (values.len() == 1 && addresses.contains(&values[0])).then_some(())
    };
    assert!(wait_until(SOON, named).is_some());
    let messages =
        ["one", "two"].map(|name| message(&server, &path("ipaddressclaims", name), "AddressAllocated"));
    let taken = |text: &&String| text.contains("the name shared.lab.test is taken");
    assert_eq!(messages.iter().filter(taken).count(), 1, "{messages:?}");
    let owners: Vec<Value> = claims_of(&sandbox).into_iter().map(|claim| claim["owner"].clone()).collect();
    assert_eq!(owners, ["operator", "operator"]);
    for name in ["one", "two"] {
        delete(&server, name);
    }
    assert_eq!(claims_of(&sandbox).len(), 0);
    let gone = || resolve::a(sandbox.dns(), "shared.lab.test").values.is_empty().then_some(());
    assert!(wait_until(SOON, gone).is_some());
    // The next machine with this name has it at once.
    claim(&server, "three", "GlobalNetsteadIPPool", ", annotations: { netstead.io/hostname: shared }");
    let address = address_of(&server, "three");
    resolve::until(&[&address], || resolve::a(sandbox.dns(), "shared.lab.test"));
    sandbox.stop();
}
