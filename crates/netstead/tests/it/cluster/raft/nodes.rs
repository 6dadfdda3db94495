//! Three sandboxes whose servers keep their store together.

use netstead_testkit::{Process, free_port, wait_until};
use reqwest::Method;
use serde_json::Value;

use super::super::nodes::{Answer, Http, run};
use crate::sandbox::{SOON, Sandbox};

pub(crate) struct Nodes {
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) addresses: Vec<String>,
    pub(crate) servers: Vec<Option<Process>>,
    pub(crate) http: Http,
}

impl Nodes {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// `more` stands in the configuration of each.
    pub(crate) fn start_with(more: &str) -> Self {
        Self::start_known_by(|_| secret(), more)
    }

    /// Nodes that know each other by what `security` says of each.
    pub(crate) fn start_known_by(security: impl Fn(&Sandbox) -> String, more: &str) -> Self {
        Self::prepare(security, more).started()
    }

    /// As [`Nodes::start_with`], and each node has this variable.
    pub(crate) fn start_as((name, value): (&'static str, &str), more: &str) -> Self {
        let mut nodes = Self::prepare(|_| secret(), more);
        for sandbox in &mut nodes.sandboxes {
            sandbox.set(name, value);
        }
        nodes.started()
    }

    fn started(mut self) -> Self {
        for node in 0..3 {
            self.servers[node] = Some(run(&self.sandboxes[node]));
        }
        for node in 0..3 {
            self.ready(node);
        }
        self.leader();
        self
    }

    /// The same, of which none runs yet.
    pub(crate) fn prepare(security: impl Fn(&Sandbox) -> String, more: &str) -> Self {
        let addresses: Vec<String> = (0..3).map(|_| address()).collect();
        let sandboxes: Vec<Sandbox> = (0..3).map(|_| Sandbox::empty()).collect();
        let nodes = Self { sandboxes, addresses, servers: (0..3).map(|_| None).collect(), http: Http::new() };
        for (sandbox, address) in nodes.sandboxes.iter().zip(&nodes.addresses) {
            let peers: Vec<_> = nodes.addresses.iter().filter(|other| *other != address).collect();
            let text = format!("{}{}peers = {peers:?}\n{more}", listening(address), security(sandbox));
            std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
        }
        nodes
    }

    /// Waits until it answers. A free port may be another's a moment later, so it is started more than once.
    pub(crate) fn ready(&mut self, node: usize) {
        let sandbox = &self.sandboxes[node];
        let answers = wait_until(SOON, || {
            let server = self.servers[node].as_mut()?;
            if !server.running() {
                *server = run(sandbox);
            }
            self.http.try_get(&format!("{}/readyz", sandbox.url())).filter(|text| text.starts_with("ok"))
        });
        assert!(answers.is_some(), "node {node} should be ready");
    }

    pub(crate) fn leader(&self) -> usize {
        let found = wait_until(SOON, || {
            let leads = |node: &usize| {
                let url = format!("{}/readyz", self.sandboxes[*node].url());
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

    /// SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        self.servers[node].take().unwrap().kill().unwrap();
    }

    /// Starts a node again that was killed.
    pub(crate) fn restart(&mut self, node: usize) {
        self.servers[node] = Some(run(&self.sandboxes[node]));
    }

    /// The value of `name` in `/metrics` of a node, with its labels.
    pub(crate) fn number(&self, node: usize, name: &str) -> Option<f64> {
        let text = self.http.try_get(&format!("{}/metrics", self.sandboxes[node].url()))?;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    pub(crate) fn ask(&self, node: usize, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.answer(node, method, path, body);
        (answer.status, answer.body)
    }

    /// As [`Nodes::ask`], with all that came back.
    pub(crate) fn answer(&self, node: usize, method: Method, path: &str, body: Option<Value>) -> Answer {
        let sandbox = &self.sandboxes[node];
        self.http.ask(method, &format!("{}/api/v1{path}", sandbox.url()), &sandbox.token(), &[], body)
    }

    /// Asks until it is done: while leaders change, some answers are errors.
    pub(crate) fn done(&self, node: usize, method: &Method, path: &str, body: &Value) -> Value {
        let done = wait_until(SOON, || {
            let (status, answer) = self.ask(node, method.clone(), path, Some(body.clone()));
            (status < 300).then_some(answer)
        });
        done.unwrap_or_else(|| panic!("{method} {path} should have worked"))
    }
}

/// Where a node listens.
pub(super) fn address() -> String {
    format!("127.0.0.1:{}", free_port().unwrap())
}

/// A store that is kept at this address, with nodes that know each other by a secret.
pub(super) fn store(address: &str) -> String {
    listening(address) + &secret()
}

/// The same without saying how nodes know each other.
pub(super) fn listening(address: &str) -> String {
    format!("[store]\ntype = \"raft\"\npath = \"node\"\nlisten = \"{address}\"\n")
}

pub(super) fn secret() -> String {
    "secret = \"a secret of sixteen or more\"\n".to_owned()
}

/// A node that is told to join another one.
pub(super) fn join(sandbox: &Sandbox, other: &str) -> Process {
    let listen = sandbox.url().replace("http://", "");
    let mut command = sandbox.command();
    command.args(["run", "--listen", &listen, "--dns-listen", "127.0.0.1:0", "--join", other]);
    Process::start("netstead", &mut command).unwrap()
}

/// Waits until as many nodes keep the store together, and all of them vote; the cluster as `sandbox` sees it.
pub(super) fn voting(sandbox: &Sandbox, count: usize) -> Value {
    let all = wait_until(SOON, || {
        let said = sandbox.netstead(["cluster", "status", "-o", "json"]);
        let cluster: Value = serde_json::from_str(&said.out).ok()?;
        let nodes = cluster["nodes"].as_array()?;
        let all = nodes.len() == count && nodes.iter().all(|node| node["role"] != "learner");
        all.then_some(cluster)
    });
    all.unwrap_or_else(|| panic!("{count} should vote:\n{}", sandbox.netstead(["cluster", "status"]).out))
}
