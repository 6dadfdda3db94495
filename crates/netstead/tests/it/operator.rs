//! `netstead operator` and `[operator]` of `run`, as processes.

mod netbox;
mod netstead;
mod packaging;
mod phpipam;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use netstead_testkit::{KubeApiServer, Process, free_port, wait_until};

use crate::sandbox::Sandbox;

const CLUSTER_API: &str = include_str!("../../../operator/tests/it/cluster-api.yaml");
const SOON: Duration = Duration::from_mins(1);

fn server(sandbox: &Sandbox) -> KubeApiServer {
    let server = KubeApiServer::start(&[]);
    server.apply(CLUSTER_API);
    server.apply(&sandbox.does("crds --kinds InClusterIPPool,GlobalInClusterIPPool,InClusterPrefixPool"));
    server.apply_in(
        "shop",
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\nmetadata: { name: lan }\n\
         spec: { addresses: [10.0.0.0/24], prefix: 24, gateway: 10.0.0.1 }\n",
    );
    server
}

fn claim(server: &KubeApiServer, name: &str) {
    server.apply_in(
        "shop",
        &format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: lan }} }}\n"
        ),
    );
}

/// The address that the owner of a claim was told.
fn bound(server: &KubeApiServer, name: &str) -> Option<String> {
    let path = |plural| format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/shop/{plural}/{name}");
    let (_, claim) = server.call("GET", &path("ipaddressclaims"), None);
    claim["status"]["addressRef"]["name"].as_str()?;
    let (_, address) = server.call("GET", &path("ipaddresses"), None);
    address["spec"]["address"].as_str().map(str::to_owned)
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn a_process_of_its_own_serves_claims_and_a_kill_loses_nothing() {
    let sandbox = Sandbox::empty();
    let server = server(&sandbox);
    let (metrics, health) = (free_port().unwrap(), free_port().unwrap());
    let kubeconfig = server.kubeconfig().display().to_string();
    let start = || {
        let mut command = sandbox.command();
        command.args([
            "operator",
            "--kinds",
            "InClusterIPPool,InClusterPrefixPool",
            "--kubeconfig",
            &kubeconfig,
        ]);
        command.args(["--namespace", "shop", "--leader-elect", "--leader-elect-namespace", "shop"]);
        command.args(["--metrics-bind-address", &format!("127.0.0.1:{metrics}")]);
        command.args(["--health-probe-bind-address", &format!("127.0.0.1:{health}")]);
        Process::start("netstead operator", &mut command).unwrap()
    };
    let mut operator = start();
    claim(&server, "one");
    assert_eq!(wait_until(SOON, || bound(&server, "one")).as_deref(), Some("10.0.0.2"));
    assert!(wait_until(SOON, || get(health, "/readyz").filter(|text| text.contains("200 OK"))).is_some());
    let counted = "netstead_operator_pool_addresses{kind=\"InClusterIPPool\",namespace=\"shop\",pool=\"lan\",state=\"used\"} 1";
    assert!(wait_until(SOON, || get(metrics, "/metrics").filter(|text| text.contains(counted))).is_some());
    for number in 0..20 {
        claim(&server, &format!("burst-{number}"));
    }
    operator.kill().unwrap();
    let before: Vec<_> = (0..20).map(|number| bound(&server, &format!("burst-{number}"))).collect();
    let operator = start();
    let mut all = std::collections::BTreeSet::new();
    for (number, before) in before.into_iter().enumerate() {
        let after = wait_until(SOON, || bound(&server, &format!("burst-{number}"))).unwrap();
        assert!(before.is_none_or(|before| before == after));
        assert!(all.insert(after));
    }
    // Told to end, it ends, and leaves the lease to another.
    let mut operator = operator;
    operator.terminate().unwrap();
    assert_eq!(operator.wait(SOON).unwrap().code(), Some(0));
    let (_, lease) =
        server.call("GET", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/netstead-operator", None);
    assert_eq!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default(), "");
}

/// The objects of the packaged file. clusterctl puts in the default of its variable.
fn components() -> String {
    let text = include_str!("../../../../deploy/capi/ipam-components.yaml");
    let (before, rest) = text.split_once("${NETSTEAD_POOL_KINDS:=").unwrap();
    let (default, after) = rest.split_once('}').unwrap();
    format!("{before}{default}{after}")
}

#[test]
fn the_packaged_rights_and_flags_are_enough() {
    let sandbox = Sandbox::empty();
    let server = server(&sandbox);
    server.apply(&components());
    // Each field is one that the server knows.
    assert_eq!(server.dry_run(&components(), "netstead-ipam-system"), Vec::<String>::new());
    let deployment = "/apis/apps/v1/namespaces/netstead-ipam-system/deployments/netstead-operator";
    let (_, deployment) = server.call("GET", deployment, None);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "manager");
    let webhook = free_port().unwrap();
    let args: Vec<String> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|arg| arg.as_str())
        // Ports that are free in a pod.
        .map(|arg| arg.replace("=:8080", "=127.0.0.1:0").replace("=:9440", "=127.0.0.1:0"))
        .map(|arg| arg.replace("=9443", &format!("={webhook}")))
        .collect();
    let kubeconfig = server.service_account("netstead-ipam-system", "netstead-operator");
    let mut command = sandbox.command();
    command.args(&args).arg("--kubeconfig").arg(&kubeconfig);
    command.args(["--leader-elect-namespace", "netstead-ipam-system"]);
    // Nothing leads to a Service here.
    command.arg("--webhook-url").arg(format!("https://127.0.0.1:{webhook}"));
    let mut operator = Process::start("netstead operator", &mut command).unwrap();
    claim(&server, "one");
    assert_eq!(wait_until(SOON, || bound(&server, "one")).as_deref(), Some("10.0.0.2"));
    // The webhooks have the rights they need: the pool is in use, and is written in its old version too.
    let pool =
        |version: &str| format!("/apis/ipam.cluster.x-k8s.io/{version}/namespaces/shop/inclusterippools/lan");
    let deletion = format!("{}?dryRun=All", pool("v1alpha2"));
    let refused = || (server.call("DELETE", &deletion, None).0 == 400).then_some(());
    assert!(wait_until(SOON, refused).is_some());
    let old = wait_until(SOON, || {
        Some(server.call("GET", &pool("v1alpha1"), None)).filter(|(status, _)| *status == 200)
    });
    assert_eq!(old.unwrap().1["spec"]["gateway"], "10.0.0.1");
    let path = "/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/shop/ipaddressclaims/one";
    server.delete(path);
    assert!(wait_until(SOON, || (server.call("GET", path, None).0 == 404).then_some(())).is_some());
    server.apply_in(
        "shop",
        "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: { name: lost }\n\
         spec: { poolRef: { apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: none } }\n",
    );
    let events = || {
        let (_, events) = server.call("GET", "/apis/events.k8s.io/v1/namespaces/shop/events", None);
        events["items"].as_array()?.iter().find(|event| event["reason"] == "PoolNotReady").cloned()
    };
    assert!(wait_until(SOON, events).is_some());
    operator.terminate().unwrap();
    assert_eq!(operator.wait(SOON).unwrap().code(), Some(0));
    let log = operator.log();
    assert!(!log.contains("forbidden") && !log.contains("WARN"), "{log}");
}

#[test]
fn a_server_serves_claims_beside_everything_else() {
    let mut sandbox = Sandbox::empty();
    let server = server(&sandbox);
    let config = format!(
        "[operator]\nkinds = [\"InClusterIPPool\"]\nkubeconfig = \"{}\"\n",
        server.kubeconfig().display()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    claim(&server, "one");
    assert_eq!(wait_until(SOON, || bound(&server, "one")).as_deref(), Some("10.0.0.2"));
    sandbox.stop();
}

#[test]
fn a_flag_that_means_nothing_is_refused() {
    let sandbox = Sandbox::empty();
    let said = |line: &str| sandbox.fails(line).err;
    assert!(said("operator").contains("no kind of pool is switched on"));
    assert!(said("operator --kinds InClusterIPool").contains("do you mean `InClusterIPPool`?"));
    assert!(said("operator --kinds InClusterIPPool --webhook").contains("unexpected argument"));
    assert!(
        said("operator --kinds InClusterIPPool --metrics-bind-address 8080")
            .contains("write an address and a port")
    );
    assert!(said("operator --kinds InClusterIPPool --concurrency 0").contains("concurrency"));
    assert!(said("operator --kinds InClusterIPPool --webhook-port 70000").contains("webhook-port"));
    for url in ["http://192.0.2.7:9443", "https://", "https://a@b", "https://192.0.2.7/?x", "192.0.2.7:9443"]
    {
        let said = said(&format!("operator --kinds InClusterIPPool --webhook-port 9443 --webhook-url {url}"));
        assert!(said.contains("write `https://192.0.2.7:9443`"), "{url}: {said}");
    }
    let without = said("operator --kinds InClusterIPPool --webhook-cert-dir /etc/netstead/webhook");
    assert!(
        without.contains("the webhooks have no port") && without.contains("--webhook-port 9443"),
        "{without}"
    );
}
