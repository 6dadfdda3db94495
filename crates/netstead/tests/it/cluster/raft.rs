//! Three servers that keep their store together, with nothing else running.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
};

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
        let addresses: Vec<String> = (0..3).map(|_| address()).collect();
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
        for node in 0..3 {
            nodes.ready(node);
        }
        nodes.leader();
        nodes
    }

    /// Waits until it answers. A free port may be another's a moment later, so it is started more than once.
    fn ready(&mut self, node: usize) {
        let house = &self.houses[node];
        let answers = until(SOON, || {
            let server = self.servers[node].as_mut()?;
            if !server.running() {
                *server = run(house);
            }
            self.http.try_get(&format!("{}/readyz", house.url())).filter(|text| text.starts_with("ok"))
        });
        assert!(answers.is_some(), "node {node} should be ready");
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
fn address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + (std::process::id() * 31 + number * 7) % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
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

#[test]
fn a_leader_that_is_told_to_stop_hands_over_and_writes_go_on() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let leader = nodes.leader();
    let other = (leader + 1) % 3;
    let mut server = nodes.servers[leader].take().unwrap();
    server.terminate().unwrap();
    for number in 0..30 {
        // One that was under way in that very moment may be unknown or refused, and is repeated as anybody would.
        nodes.done(other, &Method::PUT, &format!("/pools/lan/claims/k{number}"), &json!({}));
    }
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    let log = server.log();
    assert!(log.contains("Another node leads the cluster now; this one stops."), "{log}");
}

/// The ids of those that keep the store, and of those that serve it.
fn ids(cluster: &Value) -> [Vec<String>; 2] {
    ["nodes", "members"].map(|list| {
        let all = cluster[list].as_array().into_iter().flatten();
        let mut ids: Vec<String> = all.filter_map(|one| Some(one["id"].as_str()?.to_owned())).collect();
        ids.sort();
        ids
    })
}

#[test]
fn those_that_serve_are_those_that_keep_the_store_also_after_a_removal_and_a_lost_disk() {
    let mut nodes = Nodes::start();
    let agree = |nodes: &Nodes, node: usize, count: usize| {
        let agreed = until(SOON, || {
            let (_, cluster) = nodes.ask(node, Method::GET, "/cluster", None);
            let [keepers, members] = ids(&cluster);
            (keepers.len() == count && keepers == members).then_some(keepers)
        });
        agreed.unwrap_or_else(|| panic!("{:#}", nodes.ask(node, Method::GET, "/cluster", None).1))
    };
    let before = agree(&nodes, 0, 3);

    // One loses its disk and comes back as another.
    let leader = nodes.leader();
    let (lost, third) = ((leader + 1) % 3, (leader + 2) % 3);
    nodes.servers[lost].take().unwrap().kill().unwrap();
    std::fs::remove_dir_all(nodes.houses[lost].path().join("node")).unwrap();
    nodes.servers[lost] = Some(run(&nodes.houses[lost]));
    let changed = until(SOON, || {
        let now = agree(&nodes, third, 3);
        (now != before).then_some(now)
    });
    let now = changed.expect("the new node takes the place of the old one");
    assert_eq!(now.iter().filter(|id| before.contains(id)).count(), 2);

    // One is removed: it is gone from both, and says so itself.
    let (_, cluster) = nodes.ask(third, Method::GET, "/cluster", None);
    let list = cluster["nodes"].as_array().unwrap();
    let found = list.iter().find(|node| node["address"] == nodes.addresses[lost].as_str()).unwrap();
    let id = found["id"].as_str().unwrap();
    // As one that serves it cannot be forgotten while it keeps the store.
    let (status, told) = nodes.ask(third, Method::DELETE, &format!("/cluster/members/{id}"), None);
    assert_eq!((status, told["type"].as_str()), (409, Some("urn:netstead:not-now")), "{told}");
    let removed = nodes.houses[third].netstead(["cluster", "remove", id]);
    assert!(removed.err.contains("is removed from the cluster"), "{}", removed.err);
    assert!(!agree(&nodes, third, 2).contains(&id.to_owned()));
    let said = until(SOON, || {
        let text = nodes.http.try_get(&format!("{}/readyz", nodes.houses[lost].url()))?;
        text.contains("removed from the cluster").then_some(())
    });
    assert!(said.is_some(), "the removed one says what it is");
    let said = nodes.houses[lost].netstead(["cluster", "status"]);
    assert!(said.out.contains("removed") && said.err.contains("ask another one"), "{}{}", said.out, said.err);
}

#[test]
fn without_a_majority_a_node_says_so_and_its_own_copy_can_be_read_and_rescued() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    nodes.done(0, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    let (left, gone) = (0, [1, 2]);
    let seen = until(SOON, || {
        let (status, _) = nodes.ask(left, Method::GET, "/pools/lan/claims/web", None);
        (status == 200).then_some(())
    });
    seen.expect("it has everything");
    for node in gone {
        nodes.servers[node].take().unwrap().kill().unwrap();
    }
    let house = &nodes.houses[left];
    let refused = until(SOON, || {
        let said = house.netstead(["claim", "lan", "late"]);
        (said.code != 0 && said.err.contains("majority")).then_some(said)
    });
    refused.expect("a change says why it cannot be done");
    assert!(house.does("get claims --stale").contains("web"));
    let said = house.netstead(["cluster", "status"]);
    assert!(said.err.contains("only 1 of 3 nodes answer"), "{}{}", said.out, said.err);
    // Its own server is in the way, and that is what is told.
    let said = house.fails("get claims --local");
    assert!(said.err.contains("stop it first"), "{}", said.err);
    nodes.servers[left].take().unwrap().kill().unwrap();

    // What is left of it becomes a cluster of one.
    let config = house.path().join("netstead.toml");
    let said = house.fails("store backup whole.backup --local");
    assert!(said.err.contains("majority") && said.err.contains("--stale"), "{}", said.err);
    house.does("store backup rescue.backup --local --stale");
    std::fs::rename(house.path().join("node"), house.path().join("old-node")).unwrap();
    // With the old `peers` it would wait for the others, and says so.
    let said = house.netstead(["store", "restore", "rescue.backup"]);
    assert!(said.code == 1 && said.err.contains("leave `peers` out"), "{}", said.err);
    std::fs::remove_dir_all(house.path().join("node")).unwrap();
    std::fs::write(&config, store(&nodes.addresses[left])).unwrap();
    house.does("store restore rescue.backup");
    nodes.servers[left] = Some(run(house));
    nodes.leader();
    assert!(house.does("get claims").contains("web"));
}

#[test]
fn a_store_of_one_machine_moves_into_a_cluster_and_back() {
    let house = House::empty();
    let place = |name: &str, text: &str| std::fs::write(house.path().join(name), text).unwrap();
    place("netstead.toml", "[store]\ntype = \"local\"\npath = \"local\"\n");
    house.does("pool create lan --range 10.0.3.1-10.0.3.9 --local");
    let web = house.does("claim lan web --local");
    let address = address();
    place("cluster.toml", &store(&address));
    house.does("store migrate cluster.toml");
    assert!(house.fails("claim lan late --local").err.contains("was moved to raft"));

    // Others join the node that it became.
    place("netstead.toml", &store(&address));
    let server = run(&house);
    let (other, joins) = (House::empty(), self::address());
    std::fs::write(other.path().join("netstead.toml"), store(&joins)).unwrap();
    let mut command = other.command();
    let listen = other.url().replace("http://", "");
    command.args(["run", "--listen", &listen, "--dns-listen", "127.0.0.1:0", "--join", &address]);
    let second = Process::start("netstead", &mut command).unwrap();
    let both = until(SOON, || {
        let said = house.netstead(["cluster", "status", "-o", "json"]);
        let cluster: Value = serde_json::from_str(&said.out).ok()?;
        let list = cluster["nodes"].as_array()?;
        let voting = list.len() == 2 && list.iter().all(|node| node["role"] != "learner");
        voting.then(|| list.iter().find(|node| node["address"] == joins.as_str()).cloned()).flatten()
    });
    let both = both.expect("the second one joins");
    assert_eq!(other.does("claim lan web"), web);

    // And back, once only one is left.
    house.does(&format!("cluster remove {}", both["id"].as_str().unwrap()));
    for mut server in [second, server] {
        server.terminate().unwrap();
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    }
    house.does("store migrate back");
    assert_eq!(house.does("claim lan web --local --data-dir back"), web);
    house.does("store check --local --data-dir back");
}
