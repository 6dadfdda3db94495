//! Nodes that know each other by certificates.

use netstead_testkit::{Process, wait_until};
use reqwest::Method;
use serde_json::json;

use super::nodes::{Nodes, address, join, listening, voting};
use crate::{
    authority::Authority,
    sandbox::{SOON, Sandbox},
};

const HERE: &str = "127.0.0.1";

#[test]
fn nodes_with_certificates_of_one_authority_make_a_cluster_and_others_stay_out() {
    let (ours, another) = (Authority::new(), Authority::new());
    let nodes = Nodes::start_known_by(|sandbox| ours.equip(HERE, sandbox.path(), &ours), "");
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    for (node, sandbox) in nodes.sandboxes.iter().enumerate() {
        assert_eq!(sandbox.does(&format!("claim lan web-{node}")), format!("10.0.3.5{node}\n"));
    }
    voting(&nodes.sandboxes[0], 3);

    let knocks = |security: &dyn Fn(&Sandbox) -> String| -> ((Sandbox, Process), String) {
        let sandbox = Sandbox::empty();
        let text = listening(&address()) + &security(&sandbox);
        std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
        let mut server = join(&sandbox, &nodes.addresses[0]);
        let line = server.wait_for_line("This node is in no cluster yet.", SOON).unwrap();
        ((sandbox, server), line)
    };
    // One of another sandbox, one that trusts ours and is not trusted, one with another's name, and one with a secret instead.
    let (_first, line) = knocks(&|sandbox| another.equip(HERE, sandbox.path(), &another));
    assert!(line.contains("its certificate is not signed by the authority in our `ca_file`"), "{line}");
    let (_second, line) = knocks(&|sandbox| another.equip(HERE, sandbox.path(), &ours));
    assert!(line.contains("is our certificate signed by the authority in its `ca_file`?"), "{line}");
    let (_third, line) = knocks(&|sandbox| ours.equip("10.0.0.1", sandbox.path(), &ours));
    assert!(line.contains("does not let this node in: ") && line.contains("not valid for name"), "{line}");
    let (_fourth, line) = knocks(&|_| "secret = \"a secret of sixteen or more\"\n".to_owned());
    assert!(
        line.contains("it knows other nodes by certificates (`ca_file`), and this node has a `secret`"),
        "{line}"
    );
    // Who was called says it too, and not with every knock.
    let said = "it has a `secret`, and this node knows others by certificates (`ca_file`)";
    let told = || nodes.servers[0].as_ref().unwrap().log().matches(said).count();
    assert_eq!(wait_until(SOON, || Some(told()).filter(|times| *times > 0)), Some(1));
    voting(&nodes.sandboxes[1], 3);

    // While they knock, all goes on; and one more of ours is let in.
    assert_eq!(nodes.sandboxes[2].does("claim lan db"), "10.0.3.53\n");
    let more = Sandbox::empty();
    let text = listening(&address()) + &ours.equip(HERE, more.path(), &ours);
    std::fs::write(more.path().join("netstead.toml"), text).unwrap();
    let _more = join(&more, &nodes.addresses[1]);
    voting(&nodes.sandboxes[0], 4);
}
