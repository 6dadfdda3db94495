//! The guide of the cluster of nodes, typed on machines of their own. Only addresses and directories are others.

use netstead_testkit::{Machine, Process, VirtualNetwork};

use crate::{
    guide_reader::{Reader, shell},
    sandbox::{CommandOutput, SOON, Sandbox},
};

/// A machine with a user and perhaps a server.
struct Node {
    machine: Machine,
    sandbox: Sandbox,
    server: Option<Process>,
}

impl Node {
    /// Types it without `NETSTEAD_URL`, so that the server is found as the guide says.
    fn command(&self, script: &str) -> std::process::Command {
        let mut command = shell(&self.sandbox, Some(&self.machine), script);
        command.env_remove("NETSTEAD_URL");
        command
    }

    /// Types it; it must end well. Returns stdout.
    fn does(&self, script: &str) -> String {
        let said = CommandOutput::from(self.command(script).output().unwrap());
        assert_eq!(said.code, 0, "`{script}` says:\n{}{}", said.out, said.err);
        said.out
    }

    /// Begins `netstead run`, as it is typed.
    fn begins(&mut self, line: &str) {
        self.server = Some(Process::start("netstead", &mut self.command(&format!("exec {line}"))).unwrap());
    }

    fn is_ready(&mut self) {
        self.server.as_mut().unwrap().wait_for_line("is ready", SOON).unwrap();
    }

    fn stops(&mut self) {
        let mut server = self.server.take().unwrap();
        server.terminate().unwrap();
        server.wait(SOON).unwrap();
    }

    fn directory(&self) -> String {
        self.sandbox.path().display().to_string()
    }

    fn configures(&self, text: &str) {
        std::fs::write(self.sandbox.path().join("netstead.toml"), text).unwrap();
    }
}

/// The lines of a script without their comments.
fn lines(script: &str) -> Vec<String> {
    let bare = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    script.lines().map(bare).filter(|line| !line.is_empty()).collect()
}

/// The text without the line of `peers`.
fn without_peers(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("peers")).collect()
}

#[test]
fn the_guide_of_three_nodes_works_as_typed() {
    let Some(lan) = VirtualNetwork::start(4) else { return };
    let reader = Reader::of("raft.md");
    let addresses: Vec<String> = lan.machines().iter().map(|machine| machine.address().to_string()).collect();
    let mut nodes: Vec<Node> = lan
        .machines()
        .iter()
        .map(|machine| Node { machine: machine.clone(), sandbox: Sandbox::empty(), server: None })
        .collect();

    // Before you begin.
    let here = nodes[0].directory();
    nodes[0].does(&reader.block("sh", 0, &[("/etc/netstead", &here)]));
    let configs: Vec<String> = (0..4)
        .map(|node| {
            let others: Vec<&String> =
                addresses.iter().take(3).filter(|one| **one != addresses[node]).collect();
            let directory = nodes[node].directory();
            std::fs::copy(
                nodes[0].sandbox.path().join("cluster-secret"),
                nodes[node].sandbox.path().join("secret"),
            )
            .unwrap();
            let secret = format!("{directory}/secret");
            let places = [
                ("10.0.0.1", addresses[node].as_str()),
                ("10.0.0.2", others[0]),
                ("10.0.0.3", others[1]),
                ("/var/lib/netstead", &directory),
                ("/etc/netstead/cluster-secret", &secret),
            ];
            reader.block("toml", 0, &places)
        })
        .collect();

    // Start.
    for (node, config) in nodes.iter_mut().zip(&configs).take(3) {
        node.configures(config);
        node.begins(reader.block("sh", 1, &[]).trim());
    }
    nodes.iter_mut().take(3).for_each(Node::is_ready);
    let status = reader.block("sh", 2, &[]);
    for node in nodes.iter().take(3) {
        let shown = node.does(&status);
        assert!(addresses[..3].iter().all(|address| shown.contains(address.as_str())), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
    nodes[0].does("netstead pool create lan --range 10.9.0.1-10.9.0.9");
    assert_eq!(nodes[1].does("netstead claim lan web"), "10.9.0.1\n");

    // One more node, one less.
    let script = lines(&reader.block("sh", 4, &[("10.0.0.1", &addresses[0])]));
    let [join, remove] = &script[..] else { panic!("{script:?}") };
    nodes[3].configures(&without_peers(&configs[3]));
    nodes[3].begins(join);
    nodes[3].is_ready();
    let members = |node: &Node| -> Vec<(String, String)> {
        let shown: serde_json::Value =
            serde_json::from_str(&node.does("netstead cluster status -o json")).unwrap();
        let nodes = shown["nodes"].as_array().unwrap();
        let text = |node: &serde_json::Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
        nodes.iter().map(|node| (text(node, "id"), text(node, "address"))).collect()
    };
    let all = members(&nodes[0]);
    assert_eq!(all.len(), 4, "{all:?}");
    let (id, _) = all.iter().find(|(_, address)| address.contains(&addresses[3])).unwrap();
    nodes[0].does(&remove.replace("3f9c0a17b2d4e865", id));
    assert_eq!(members(&nodes[0]).len(), 3);
    nodes[3].stops();

    // Most machines are lost.
    for lost in [1, 2] {
        nodes[lost].server.take().unwrap().kill().unwrap();
    }
    nodes[0].stops();
    let script = lines(&reader.block("sh", 3, &[("/var/lib/netstead", &here)]));
    let [backup, moved, restore, run, resume] = &script[..] else { panic!("{script:?}") };
    nodes[0].does(backup);
    nodes[0].does(moved);
    nodes[0].configures(&without_peers(&configs[0]));
    nodes[0].does(restore);
    nodes[0].begins(run);
    nodes[0].is_ready();
    assert_eq!(nodes[0].does("netstead get claims -o name"), "lan/web\n");
    let refused = CommandOutput::from(nodes[0].command("netstead claim lan new").output().unwrap());
    assert!(refused.code != 0 && refused.err.contains("resume"), "{refused:?}");
    nodes[0].does(resume);
    assert_eq!(nodes[0].does("netstead claim lan new"), "10.9.0.2\n");
    nodes[0].stops();
}
