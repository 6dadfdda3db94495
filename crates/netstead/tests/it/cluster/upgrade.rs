//! Programs of several versions on one store.

use std::{collections::BTreeMap, time::Duration};

use netstead_testkit::{Etcd, Process, skip, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    nodes::{Nodes, ready, run},
    raft,
};
use crate::sandbox::{SOON, Sandbox};

/// The highest format that a debug build pretends to understand.
const FORMAT: &str = "PRETEND_STORE_FORMAT";
/// Less than a minute, after which a node that runs would ask by itself.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Whether a program can be told that it is another version.
fn can_pretend() -> bool {
    let can = cfg!(debug_assertions);
    if !can {
        skip("only a debug build can take itself for another version");
    }
    can
}

fn says_what_to_do(text: &str) -> bool {
    text.contains("this store has format 4") && text.contains("hint: start the version")
}

/// It has ended by itself and has said why.
fn assert_refused(server: &mut Process, patience: Duration) {
    assert_eq!(server.wait(patience).unwrap().code(), Some(1));
    assert!(says_what_to_do(&server.log()), "{}", server.log());
}

fn end(server: &mut Process) {
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
}

#[test]
fn a_program_that_is_older_than_the_store_is_refused() {
    let Some(nodes) = Nodes::start("") else { return };
    let format = || nodes.etcd.ctl(&["get", "--print-value-only", "/netstead/kv/meta/format"]).unwrap();
    assert_eq!(wait_until(SOON, || Some(format()).filter(|format| format == "3\n")).as_deref(), Some("3\n"));
    // Members of another version: one older and one newer than we are.
    let member = |id: &str, format: u32| {
        let value = format!(
            "1{{\"name\":\"{id}\",\"url\":\"http://{id}:5301\",\"version\":\"9\",\"format\":{format},\
             \"since\":\"2026-11-16T00:00:00Z\",\"seen\":\"2026-11-16T00:00:00Z\"}}"
        );
        nodes.etcd.ctl(&["put", &format!("/netstead/kv/cluster/member/{id}"), &value]).unwrap();
    };
    member("0123456789ab", 9);
    let sandbox = &nodes.sandboxes[0];
    let listed = wait_until(SOON, || {
        Some(sandbox.does("cluster status -o wide")).filter(|text| text.contains("0123456789ab"))
    });
    assert!(listed.is_some());
    sandbox.does("cluster remove 0123456789ab");
    assert!(!sandbox.does("cluster status -o wide").contains("0123456789ab"));
    let said = sandbox.fails("cluster remove 0123456789ab");
    assert!(said.err.contains("there is no member"), "{}", said.err);
    assert!(sandbox.netstead(["store", "check"]).err.contains("all well"));

    // The others were upgraded.
    nodes.etcd.ctl(&["put", "/netstead/kv/meta/format", "4"]).unwrap();
    let late = Sandbox::empty();
    std::fs::copy(sandbox.path().join("netstead.toml"), late.path().join("netstead.toml")).unwrap();
    let mut command = late.command();
    command.args(["run", "--listen", "127.0.0.1:0", "--dns-listen", "127.0.0.1:0"]);
    let mut server = Process::start("netstead", &mut command).unwrap();
    assert_refused(&mut server, SOON);
}

#[test]
fn a_node_that_runs_and_has_become_too_old_ends_and_never_leads() {
    let Some(mut nodes) = Nodes::start("") else { return };
    if !can_pretend() {
        return;
    }
    let kept = |nodes: &Nodes, key: &str| {
        nodes.etcd.ctl(&["get", "--print-value-only", &format!("/netstead/kv/{key}")]).unwrap()
    };
    let start = |nodes: &mut Nodes, node: usize| {
        nodes.servers[node] = run(&nodes.sandboxes[node]);
        nodes.servers[node].wait_for_line("is ready", SOON).unwrap();
    };
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    assert_eq!(nodes.ask(0, Method::PUT, "/pools/lan", Some(pool)).status, 201);
    let web = nodes.claim(1, "web");

    // One of them is newer than the others, and leads.
    let (new, [runs, sleeps]) = (0, [1, 2]);
    for node in [new, runs, sleeps] {
        end(&mut nodes.servers[node]);
    }
    nodes.sandboxes[new].set(FORMAT, "4");
    start(&mut nodes, new);
    assert_eq!(nodes.leader(), new);
    for node in [runs, sleeps] {
        start(&mut nodes, node);
    }
    let again = nodes.claim(runs, "web");
    assert_eq!(again.address(), web.address());
    assert_eq!(kept(&nodes, "meta/format"), "3\n", "two members understand no more");

    // The older ones are forgotten while they are there, and one of them sleeps.
    let cluster = nodes.ask(new, Method::GET, "/cluster", None).body;
    let ids: BTreeMap<&str, &str> = cluster["members"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|member| (member["url"].as_str().unwrap(), member["id"].as_str().unwrap()))
        .collect();
    nodes.servers[sleeps].signal("STOP").unwrap();
    for node in [runs, sleeps] {
        nodes.sandboxes[new].does(&format!("cluster remove {}", ids[nodes.sandboxes[node].url().as_str()]));
    }
    let raised = wait_until(SOON, || (kept(&nodes, "meta/format") == "4\n").then_some(()));
    assert!(raised.is_some(), "nobody holds it up any more");
    assert_refused(&mut nodes.servers[runs], AT_ONCE);

    // A node that wakes finds no leader, and must not lead.
    end(&mut nodes.servers[new]);
    let written = |nodes: &Nodes| ["ledger/head", "cluster/leader"].map(|key| kept(nodes, key));
    let before = written(&nodes);
    nodes.servers[sleeps].signal("CONT").unwrap();
    assert_refused(&mut nodes.servers[sleeps], SOON);
    assert_eq!(written(&nodes), before);

    // Upgraded, both are welcome.
    for node in [runs, sleeps] {
        nodes.sandboxes[node].set(FORMAT, "4");
        start(&mut nodes, node);
        assert_eq!(nodes.claim(node, "web").address(), web.address());
    }
}

#[test]
fn a_command_that_waited_for_the_lead_looks_again_before_it_writes() {
    let Some(etcd) = Etcd::start(1) else { return };
    let store = format!("[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\n", etcd.endpoints()[0]);
    let (sandbox, mut server) = ready(&store);
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.9");
    let mut command = sandbox.command();
    command.args(["claim", "lan", "late", "--local"]);
    let mut waits = Process::start("netstead", &mut command).unwrap();
    // It finds a store that it understands, and a leader.
    std::thread::sleep(Duration::from_secs(3));
    assert!(waits.running(), "{}", waits.log());
    server.signal("STOP").unwrap();
    etcd.ctl(&["put", "/netstead/kv/meta/format", "4"]).unwrap();
    let written =
        || ["ledger/", "access/"].map(|keys| etcd.ctl(&["get", "--prefix", &format!("/netstead/kv/{keys}")]));
    let before = written().map(Result::unwrap);
    server.kill().unwrap();
    assert_refused(&mut waits, SOON);
    assert_eq!(written().map(Result::unwrap), before);
}

/// Addresses that were handed out, and to whom, while nodes came and went.
#[derive(Default)]
struct Claims(BTreeMap<String, Value>);

impl Claims {
    fn make(&mut self, nodes: &raft::Nodes, node: usize) {
        for _ in 0..5 {
            let path = format!("/pools/lan/claims/k{}", self.0.len());
            let claim = nodes.done(node, &Method::PUT, &path, &json!({}));
            let address = claim["address"].clone();
            assert!(!self.0.values().any(|held| *held == address), "{address} is held already");
            self.0.insert(path, address);
        }
    }

    fn assert_at(&self, nodes: &raft::Nodes, node: usize) {
        for (path, address) in &self.0 {
            let (status, claim) = nodes.ask(node, Method::GET, path, None);
            assert_eq!((status, &claim["address"]), (200, address), "{path}");
        }
    }
}

/// Every node that runs comes to see a store of this format, and so many members that understand 4.
fn assert_formats(nodes: &raft::Nodes, format: u64, newer: usize) {
    let seen_by = |node: usize| {
        let (_, cluster) = nodes.ask(node, Method::GET, "/cluster", None);
        let members = cluster["members"].as_array().into_iter().flatten();
        (cluster["format"].as_u64().unwrap_or(0), members.filter(|member| member["format"] == 4).count())
    };
    for node in 0..3 {
        let agreed = wait_until(SOON, || (seen_by(node) == (format, newer)).then_some(()));
        assert!(agreed.is_some(), "node {node} sees {:?}", seen_by(node));
    }
}

#[test]
fn a_cluster_is_upgraded_node_by_node_and_then_refuses_the_old_version() {
    if !can_pretend() {
        return;
    }
    let mut nodes = raft::Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let mut claims = Claims::default();
    // As the guide says: the leader last.
    let leader = nodes.leader();
    let order = [(leader + 1) % 3, (leader + 2) % 3, leader];
    for (upgraded, node) in order.into_iter().enumerate() {
        let other = (node + 1) % 3;
        assert_formats(&nodes, 3, upgraded);
        let mut server = nodes.servers[node].take().unwrap();
        server.terminate().unwrap();
        claims.make(&nodes, other);
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
        nodes.sandboxes[node].set(FORMAT, "4");
        nodes.servers[node] = Some(run(&nodes.sandboxes[node]));
        claims.make(&nodes, other);
        nodes.ready(node);
        claims.make(&nodes, node);
    }
    assert_formats(&nodes, 4, 3);
    for node in 0..3 {
        claims.assert_at(&nodes, node);
    }
    assert!(nodes.sandboxes[0].netstead(["store", "check"]).err.contains("all well"));

    // No node goes back to the old version.
    let back = order[0];
    end(&mut nodes.servers[back].take().unwrap());
    nodes.sandboxes[back].set(FORMAT, "3");
    assert_refused(&mut run(&nodes.sandboxes[back]), SOON);
    nodes.sandboxes[back].set(FORMAT, "4");
    nodes.servers[back] = Some(run(&nodes.sandboxes[back]));
    nodes.ready(back);
    claims.make(&nodes, back);
    claims.assert_at(&nodes, back);
}

#[test]
fn no_command_touches_a_store_that_is_newer_than_the_program() {
    if !can_pretend() {
        return;
    }
    let mut sandbox = Sandbox::empty();
    sandbox.set(FORMAT, "4");
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.9");
    let web = sandbox.does("claim lan web");
    sandbox.stop();
    sandbox.set(FORMAT, "3");
    for line in [
        "store check --local",
        "store check --repair --local",
        "store backup whole.backup --local",
        "store backup own.backup --local --stale",
        "store migrate elsewhere",
        "claim lan late --local",
    ] {
        let said = sandbox.fails(&format!("{line} --data-dir data"));
        assert!(says_what_to_do(&said.err), "`netstead {line}` said:\n{}", said.err);
    }
    for name in ["whole.backup", "own.backup", "elsewhere"] {
        assert!(!sandbox.path().join(name).exists(), "{name} should not be there");
    }

    // The newer one can do all of it.
    sandbox.set(FORMAT, "4");
    sandbox.does("store check --repair --local --data-dir data");
    sandbox.does("store backup whole.backup --local --data-dir data");
    sandbox.does("store migrate elsewhere --data-dir data");
    assert_eq!(sandbox.does("claim lan web --local --data-dir elsewhere"), web);

    // Nor is what the newer one saved put into another store by the older one.
    sandbox.set(FORMAT, "3");
    let said = sandbox.fails("store restore whole.backup --data-dir restored");
    assert!(
        said.err
            .contains("is of a store of format 4, and this version of Netstead understands formats up to 3"),
        "{}",
        said.err
    );
    assert!(said.err.contains("hint: upgrade Netstead"), "{}", said.err);
    sandbox.set(FORMAT, "4");
    sandbox.does("store restore whole.backup --data-dir restored");
    assert_eq!(sandbox.does("claim lan web --local --data-dir restored"), web);
}
