//! From one machine to a cluster, and back.

use super::{
    super::nodes::run,
    nodes::{address, join, store, voting},
};
use crate::sandbox::{SOON, Sandbox};

#[test]
fn a_store_of_one_machine_moves_into_a_cluster_and_back() {
    let sandbox = Sandbox::empty();
    let place = |name: &str, text: &str| std::fs::write(sandbox.path().join(name), text).unwrap();
    place("netstead.toml", "[store]\ntype = \"local\"\npath = \"local\"\n");
    let mut server = run(&sandbox);
    server.wait_for_line("is ready", SOON).unwrap();
    server.terminate().unwrap();
    server.wait(SOON).unwrap();
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.9 --local");
    let web = sandbox.does("claim lan web --local");
    let address = address();
    place("cluster.toml", &store(&address));
    sandbox.does("store migrate cluster.toml");
    assert!(sandbox.fails("claim lan late --local").err.contains("was moved to raft"));

    // Others join the node that it became.
    place("netstead.toml", &store(&address));
    let server = run(&sandbox);
    let (other, joins) = (Sandbox::empty(), super::nodes::address());
    std::fs::write(other.path().join("netstead.toml"), store(&joins)).unwrap();
    let mut second = join(&other, &address);
    second.wait_for_line("is ready", SOON).unwrap();
    let cluster = voting(&sandbox, 2);
    let nodes = cluster["nodes"].as_array().unwrap();
    let joined = nodes.iter().find(|node| node["address"] == joins.as_str()).unwrap();
    assert_eq!(other.does("claim lan web"), web);

    // And back, once only one is left.
    sandbox.does(&format!("cluster remove {}", joined["id"].as_str().unwrap()));
    for mut server in [second, server] {
        server.terminate().unwrap();
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    }
    sandbox.does("store migrate back");
    assert_eq!(sandbox.does("claim lan web --local --data-dir back"), web);
    sandbox.does("store check --local --data-dir back");
}
