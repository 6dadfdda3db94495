//! The disk of a node is full, or what is on it is damaged.

use std::cell::Cell;

use netstead_testkit::{Tmpfs, wait_until};
use reqwest::Method;
use serde_json::json;

use super::{
    super::nodes::run,
    nodes::{Nodes, secret},
};
use crate::sandbox::SOON;

/// Three nodes, each on a small disk.
fn on_small_disks() -> Option<(Nodes, Vec<Tmpfs>)> {
    let disks: Vec<Tmpfs> = (0..3).map(|_| Tmpfs::mount(64 << 20)).collect::<Option<_>>()?;
    let next = Cell::new(0);
    let nodes = Nodes::start_known_by(
        |sandbox| {
            let disk = &disks[next.replace(next.get() + 1)];
            std::os::unix::fs::symlink(disk.path(), sandbox.path().join("node")).unwrap();
            secret()
        },
        "",
    );
    Some((nodes, disks))
}

/// Fills the disk of a node until the node has noticed it.
fn fill(nodes: &Nodes, disks: &[Tmpfs], node: usize) {
    let url = format!("{}/readyz", nodes.sandboxes[node].url());
    let other = (node + 1) % 3;
    let mut number = 0;
    let told = wait_until(SOON, || {
        // Again and again: files that are cut give room back.
        disks[node].fill().unwrap();
        number += 1;
        let path = format!("/pools/lan/claims/filling-{number}");
        nodes.ask(other, Method::PUT, &path, Some(json!({})));
        nodes.http.try_get(&url).filter(|said| said.contains("is full"))
    });
    told.expect("the node says that its disk is full");
}

#[test]
fn a_leader_whose_disk_is_full_follows_the_next_one_and_sends_it_what_it_is_asked() {
    let Some((mut nodes, disks)) = on_small_disks() else { return };
    let pool = json!({"family": "ipv4", "ranges": ["10.0.0.0-10.0.255.255"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let full = nodes.leader();
    fill(&nodes, &disks, full);
    let next = nodes.leader();
    assert_ne!(next, full);
    let first = nodes.done(full, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    for number in 0..20 {
        let path = format!("/pools/lan/claims/web-{number}");
        let (status, answer) = nodes.ask(full, Method::PUT, &path, Some(json!({})));
        assert_eq!(status, 201, "{answer}");
    }
    // It does not take itself for the leader any more, and is not ready.
    assert_eq!(nodes.number(full, "netstead_leader"), Some(0.0));
    let said = nodes.http.try_get(&format!("{}/readyz", nodes.sandboxes[full].url())).unwrap();
    assert!(said.contains("is full"), "{said}");

    disks[full].free().unwrap();
    nodes.ready(full);
    let (status, claim) = nodes.ask(full, Method::GET, "/pools/lan/claims/web", None);
    assert_eq!((status, &claim["address"]), (200, &first["address"]), "{claim}");
    let (status, claim) = nodes.ask(full, Method::PUT, "/pools/lan/claims/last", Some(json!({})));
    assert_eq!(status, 201, "{claim}");
}

#[test]
fn a_damaged_node_says_that_it_is_to_join_anew_and_then_has_everything() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let claim = nodes.done(0, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    let damaged = (nodes.leader() + 1) % 3;
    let mut server = nodes.servers[damaged].take().unwrap();
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    let sandbox = &nodes.sandboxes[damaged];
    let dir = sandbox.path().join("node");
    let tables = std::fs::read_dir(dir.join("db/keyspaces/1/tables")).unwrap();
    let table = tables.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::write(&table, "").unwrap();
    let mut server = run(sandbox);
    assert_eq!(server.wait(SOON).unwrap().code(), Some(1));
    let log = server.log();
    let told = "error: the store is damaged: node/db/keyspaces/1/tables/";
    let advice = " is empty; the other nodes have the same data: move node away and start this node again to join as a new \
                  one\nhint: with the same configuration and an empty directory it gets everything from the others; only a \
                  cluster of one node needs a backup\n";
    assert!(log.contains(told) && log.ends_with(advice), "{log}");

    std::fs::rename(&dir, sandbox.path().join("node.old")).unwrap();
    nodes.servers[damaged] = Some(run(sandbox));
    nodes.ready(damaged);
    let (status, answer) = nodes.ask(damaged, Method::GET, "/pools/lan/claims/web", None);
    assert_eq!((status, &answer["address"]), (200, &claim["address"]), "{answer}");
}
