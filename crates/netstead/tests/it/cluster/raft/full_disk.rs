//! The disk of a node is full.

use std::cell::Cell;

use netstead_testkit::{Tmpfs, wait_until};
use reqwest::Method;
use serde_json::json;

use super::nodes::{Nodes, secret};
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
