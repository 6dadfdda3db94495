//! Three servers that keep their store together, with nothing else running.

use netstead_testkit::{Process, until};
use reqwest::Method;
use serde_json::{Value, json};

use super::nodes::{Http, run};
use crate::house::{House, SOON};

const SECRET: &str = "a secret of sixteen or more";

struct Nodes {
    houses: Vec<House>,
    addresses: Vec<String>,
    servers: Vec<Option<Process>>,
    http: Http,
}

impl Nodes {
    fn start() -> Self {
        let addresses: Vec<String> = (0..3).map(address).collect();
        let houses: Vec<House> = (0..3).map(|_| House::empty()).collect();
        let mut nodes =
            Self { houses, addresses, servers: (0..3).map(|_| None).collect(), http: Http::new() };
        for node in 0..3 {
            let peers: Vec<_> =
                nodes.addresses.iter().filter(|other| **other != nodes.addresses[node]).collect();
            let text = format!("{}peers = {peers:?}\n", store(&nodes.addresses[node]));
            std::fs::write(nodes.houses[node].path().join("netstead.toml"), text).unwrap();
        }
        for node in 0..3 {
            nodes.servers[node] = Some(run(&nodes.houses[node]));
        }
        nodes.leader();
        nodes
    }

    fn leader(&self) -> usize {
        let found = until(SOON, || {
            let leads = |node: &usize| {
                let url = format!("{}/readyz", self.houses[*node].url());
                self.http.try_get(&url).as_deref() == Some("ok, leading\n")
            };
            let running = (0..self.servers.len()).filter(|node| self.servers[*node].is_some());
            let leading: Vec<usize> = running.filter(leads).collect();
            match leading[..] {
                [one] => Some(one),
                _ => None,
            }
        });
        found.expect("one of them leads")
    }

    fn ask(&self, node: usize, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let house = &self.houses[node];
        let answer =
            self.http.ask(method, &format!("{}/api/v1{path}", house.url()), &house.token(), &[], body);
        (answer.status, answer.body)
    }

    /// Asks until it is done: while leaders change, some answers are errors.
    fn done(&self, node: usize, method: &Method, path: &str, body: &Value) -> Value {
        let done = until(SOON, || {
            let (status, answer) = self.ask(node, method.clone(), path, Some(body.clone()));
            (status < 300).then_some(answer)
        });
        done.unwrap_or_else(|| panic!("{method} {path} should have worked"))
    }
}

/// Where a node listens: none of the ports that connections of this machine begin at, which come and go.
fn address(node: u32) -> String {
    format!("127.0.0.1:{}", 10_000 + (std::process::id() * 31 + node * 7) % 20_000)
}

fn store(address: &str) -> String {
    format!("[store]\ntype = \"raft\"\npath = \"node\"\nlisten = \"{address}\"\nsecret = \"{SECRET}\"\n")
}

#[test]
fn three_servers_keep_their_store_together_and_survive_the_loss_of_one() {
    let mut nodes = Nodes::start();
    let leader = nodes.leader();
    let (follower, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(follower, &Method::PUT, "/pools/lan", &pool);
    let first = nodes.done(follower, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    // Every node has it.
    for node in 0..3 {
        let (status, claim) = nodes.ask(node, Method::GET, "/pools/lan/claims/web", None);
        assert_eq!((status, &claim["address"]), (200, &first["address"]));
    }
    let (_, cluster) = nodes.ask(third, Method::GET, "/cluster", None);
    let list = cluster["nodes"].as_array().unwrap();
    assert_eq!(list.len(), 3, "{cluster}");
    assert_eq!(list.iter().filter(|node| node["role"] == "leader").count(), 1);
    let shown = nodes.houses[third].does("cluster status");
    for address in &nodes.addresses {
        assert!(shown.contains(address), "{shown}");
    }

    // The leader is killed: another one goes on with everything.
    drop(nodes.servers[leader].take());
    let next = nodes.leader();
    assert_ne!(next, leader);
    let again = nodes.done(third, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    assert_eq!(again["address"], first["address"]);
    nodes.done(third, &Method::PUT, "/pools/lan/claims/db", &json!({}));

    // It comes back with an empty directory, as a new node in the old one's place.
    std::fs::remove_dir_all(nodes.houses[leader].path().join("node")).unwrap();
    nodes.servers[leader] = Some(run(&nodes.houses[leader]));
    let whole = until(SOON, || {
        let (_, cluster) = nodes.ask(third, Method::GET, "/cluster", None);
        let list = cluster["nodes"].as_array()?;
        let voting = list.iter().all(|node| node["role"] != "learner");
        let answering =
            list.iter().all(|node| node["last_contact_ms"].as_u64().is_some_and(|age| age < 2000));
        (list.len() == 3 && voting && answering).then_some(())
    });
    whole.expect("three nodes again");
    let back = until(SOON, || {
        let (status, claim) = nodes.ask(leader, Method::GET, "/pools/lan/claims/db", None);
        (status == 200).then_some(claim)
    });
    assert!(back.is_some(), "the new node has everything");

    // A node is removed by name of its address, and the last word on a stranger is clear.
    let (status, told) = nodes.ask(third, Method::DELETE, "/cluster/nodes/nobody", None);
    assert_eq!(status, 404, "{told}");
}
