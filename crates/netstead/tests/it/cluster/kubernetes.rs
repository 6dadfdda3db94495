//! Nodes that read one Kubernetes cluster: the leader alone writes into it, and addresses of load balancers outlive it.

use netstead_testkit::{KubeApiServer, wait_until};

use super::nodes::Nodes;
use crate::{
    kubernetes::{balancer, service},
    resolve,
    sandbox::SOON,
};

/// Whether a node has written a status since it started.
fn writes(nodes: &Nodes, node: usize) -> bool {
    let url = format!("{}/metrics", nodes.sandboxes[node].url());
    let text = nodes.http.try_get(&url).unwrap_or_else(|| panic!("{url} does not answer"));
    assert!(text.contains("netstead_"), "{text}");
    text.lines().any(|line| line.contains("\"k8s\"") && line.contains("\"PATCH\""))
}

#[test]
fn only_the_leader_writes_a_status_and_the_next_one_gives_the_same_addresses() {
    let server = KubeApiServer::start(&[]);
    let config = format!(
        "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{}\"\n[pool.lan]\nnetwork = \"10.9.0.0/24\"\n\
         kubernetes = {{ load_balancer_class = \"netstead.io/lan\", grace = \"1s\" }}\n\
         [dns.own]\ntype = \"builtin\"\ndomains = [\"lb.test\"]\n",
        server.kubeconfig().display()
    );
    let Some(mut nodes) = Nodes::start(&config) else { return };
    let (leader, [one, other]) = (nodes.leader(), nodes.followers());
    let becomes = |name: &str, address: &str| {
        let wanted = (vec![address.to_owned()], "Assigned".to_owned());
        let found = wait_until(SOON, || (balancer(&server, name) == wanted).then_some(()));
        assert!(found.is_some(), "{name}: {:?}, not {wanted:?}", balancer(&server, name));
    };
    server.apply_in("lb", &service("web", "SingleStack", ""));
    becomes("web", "10.9.0.1");
    for node in [leader, one, other] {
        resolve::until(&["10.9.0.1"], || resolve::a(nodes.sandboxes[node].dns(), "web.lb.test"));
    }
    assert_eq!([leader, one, other].map(|node| writes(&nodes, node)), [true, false, false]);

    // 1. The leader dies. 2. Another leads, and reads the Services anew. 3. Nothing that has an address loses it.
    let written = || {
        let (_, object) = server.call("GET", "/api/v1/namespaces/lb/services/web", None);
        object["status"].clone()
    };
    let before = written();
    nodes.servers[leader].kill().unwrap();
    server.apply_in("lb", &service("next", "SingleStack", ""));
    becomes("next", "10.9.0.2");
    assert_eq!(written(), before);
    let (next, rest) = if nodes.leads(one) { (one, other) } else { (other, one) };
    assert_eq!([next, rest].map(|node| writes(&nodes, node)), [true, false]);
    resolve::until(&["10.9.0.1"], || resolve::a(nodes.sandboxes[rest].dns(), "web.lb.test"));
    // A Service that is gone gives its address back to the pool, and to no other node's memory.
    server.delete("/api/v1/namespaces/lb/services/web");
    let released = wait_until(SOON, || {
        (!nodes.sandboxes[next].does("get claims -o json").contains("k8s/lb/web/")).then_some(())
    });
    assert!(released.is_some(), "{}", nodes.sandboxes[next].does("get claims -o json"));
}
