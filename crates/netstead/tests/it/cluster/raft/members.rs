//! Members of the cluster, and how others join it.

use std::net::TcpListener;

use netstead_testkit::wait_until;
use reqwest::Method;
use serde_json::Value;

use super::{
    super::nodes::{Http, run},
    nodes::{Nodes, address, join, store, voting},
};
use crate::sandbox::{SOON, Sandbox};

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
        let agreed = wait_until(SOON, || {
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
    std::fs::remove_dir_all(nodes.sandboxes[lost].path().join("node")).unwrap();
    nodes.servers[lost] = Some(run(&nodes.sandboxes[lost]));
    let changed = wait_until(SOON, || {
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
    let removed = nodes.sandboxes[third].netstead(["cluster", "remove", id]);
    assert!(removed.err.contains("is removed from the cluster"), "{}", removed.err);
    assert!(!agree(&nodes, third, 2).contains(&id.to_owned()));
    let said = wait_until(SOON, || {
        let text = nodes.http.try_get(&format!("{}/readyz", nodes.sandboxes[lost].url()))?;
        text.contains("removed from the cluster").then_some(())
    });
    assert!(said.is_some(), "the removed one says what it is");
    let said = nodes.sandboxes[lost].netstead(["cluster", "status"]);
    assert!(said.out.contains("removed") && said.err.contains("ask another one"), "{}{}", said.out, said.err);
}

/// A sandbox whose configuration is this.
fn configured(text: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox
}

fn until_ready(sandbox: &Sandbox) {
    let (http, url) = (Http::new(), format!("{}/readyz", sandbox.url()));
    let ready = wait_until(SOON, || http.try_get(&url).filter(|text| text.starts_with("ok")));
    ready.unwrap_or_else(|| panic!("{url} should say that it is ready"));
}

/// Addresses of this machine at which the usual port is free.
fn hosts() -> [String; 4] {
    let free = (1..=250).find_map(|net| {
        let hosts = [1, 2, 3, 9].map(|host| format!("127.{}.{net}.{host}", 1 + std::process::id() % 250));
        let free = hosts.iter().all(|host| TcpListener::bind(format!("{host}:5302")).is_ok());
        free.then_some(hosts)
    });
    free.expect("a network of this machine without nodes")
}

#[test]
fn a_node_joins_by_the_url_of_an_api_or_by_a_host_alone() {
    let [one, two, three, nobody] = hosts();
    let node = |host: &str| configured(&store(&format!("{host}:5302")));
    let first = node(&one);
    let _first = run(&first);
    until_ready(&first);
    first.does("pool create lan --range 10.0.3.1-10.0.3.9");

    // The port of the API is not the one at which nodes listen to each other.
    let second = node(&two);
    let mut lost = join(&second, &format!("http://{nobody}:5301"));
    let line = lost.wait_for_line("This node is in no cluster yet.", SOON).unwrap();
    assert!(line.contains(&format!("{nobody}:5302 cannot be reached")), "{line}");
    assert!(line.contains("only the host counts"), "{line}");
    lost.kill().unwrap();
    let said = second.netstead(["run", "--join", "ftp://node1"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let told = "error: `--join`: `ftp://node1` is no address of a node\nhint: write `--join 10.0.0.1:5302`";
    assert!(said.err.contains(told), "{}", said.err);
    let _second = join(&second, &format!("http://{one}:5301/"));
    until_ready(&second);
    voting(&first, 2);

    // Who is asked need not lead.
    let third = node(&three);
    let _third = join(&third, &two);
    until_ready(&third);
    voting(&first, 3);
    for sandbox in [&third, &second, &first] {
        assert_eq!(sandbox.does("claim lan web"), "10.0.3.1\n");
    }
}

#[test]
fn a_node_whose_peers_never_came_is_let_in_by_another() {
    let first = configured(&store(&address()));
    let _first = run(&first);
    until_ready(&first);
    first.does("pool create lan --range 10.0.3.1-10.0.3.9");
    assert_eq!(first.does("claim lan web"), "10.0.3.1\n");
    assert!(first.does("doctor").contains("one node alone survives no failure"));

    let waits = |address: &str| {
        let sandbox = configured(&format!("{}peers = [\"127.0.0.1:1\"]\n", store(address)));
        let mut server = run(&sandbox);
        server.wait_for_line("This node is in no cluster yet.", SOON).unwrap();
        (sandbox, server)
    };
    let (second_at, third_at) = (address(), address());
    let (second, _second) = waits(&second_at);
    let said = first.netstead(["cluster", "add", &second_at]);
    assert_eq!(
        (said.code, said.err),
        (0, format!("{second_at} is let in, and votes once it has everything\n"))
    );
    voting(&first, 2);
    until_ready(&second);
    assert_eq!(second.does("claim lan web"), "10.0.3.1\n");
    for sandbox in [&first, &second] {
        let said = sandbox.does("doctor");
        assert!(said.contains("two nodes survive no failure"), "{said}");
        assert!(said.contains("start a third one with `netstead run --join"), "{said}");
    }

    // Any node may be asked; who is in already is no news.
    let (third, _third) = waits(&third_at);
    second.does(&format!("cluster add {third_at}"));
    voting(&second, 3);
    until_ready(&third);
    let said = second.netstead(["cluster", "add", &third_at]);
    assert_eq!((said.code, said.err), (0, format!("{third_at} is in the cluster already, and votes\n")));
    assert!(third.does("doctor").contains("3 nodes, of which 1 may fail"));

    // Who cannot come says why.
    let said = second.fails("cluster add 127.0.0.1:1");
    assert!(said.err.contains("127.0.0.1:1 cannot be reached"), "{}", said.err);
    let said = second.fails("cluster add ftp://node4");
    assert!(said.err.contains("`ftp://node4` is no address of a node"), "{}", said.err);
    let other_at = address();
    let other = configured(&store(&other_at));
    let _other = run(&other);
    until_ready(&other);
    let said = first.fails(&format!("cluster add {other_at}"));
    assert!(said.err.contains(&format!("{other_at} is in a cluster of its own")), "{}", said.err);
    voting(&first, 3);
}

#[test]
fn a_member_that_falls_silent_is_told_in_the_log_and_counted_until_it_is_back() {
    let mut nodes = Nodes::start();
    let leader = nodes.leader();
    let (gone, other) = ((leader + 1) % 3, (leader + 2) % 3);
    assert_eq!(nodes.number(leader, "netstead_members_silent"), Some(0.0));
    assert_eq!(nodes.number(other, "netstead_members_silent"), None);
    nodes.kill(gone);
    // Another one may lead by now.
    let counted = |nodes: &Nodes, count: f64| {
        let found = wait_until(SOON, || {
            let counts = |node: &usize| nodes.number(*node, "netstead_members_silent") == Some(count);
            [leader, other].into_iter().find(counts)
        });
        found.unwrap_or_else(|| panic!("{count} should be silent"))
    };
    let leads = counted(&nodes, 1.0);
    let log = nodes.servers[leads].as_mut().unwrap();
    let line = log.wait_for_line("A node of the cluster does not answer.", SOON).unwrap();
    assert!(line.contains(&nodes.addresses[gone]), "{line}");
    nodes.servers[gone] = Some(run(&nodes.sandboxes[gone]));
    let leads = counted(&nodes, 0.0);
    let log = nodes.servers[leads].as_mut().unwrap();
    log.wait_for_line("A node of the cluster answers again.", SOON).unwrap();
}
