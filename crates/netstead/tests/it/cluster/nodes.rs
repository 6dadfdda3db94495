//! Three sandboxes whose servers share an etcd.

use std::time::Duration;

use netstead_testkit::{Etcd, Process, wait_until};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::sandbox::{SOON, Sandbox};

pub(super) struct Nodes {
    pub(super) etcd: Etcd,
    pub(super) sandboxes: Vec<Sandbox>,
    pub(super) servers: Vec<Process>,
    pub(super) http: Http,
}

impl Nodes {
    /// Three that run, of which one leads; `more` stands in the configuration of each.
    pub(super) fn start(more: &str) -> Option<Self> {
        Some(Self::start_on(Etcd::start(1)?, more))
    }

    /// The same on this etcd.
    pub(super) fn start_on(etcd: Etcd, more: &str) -> Self {
        let store = format!(
            "[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\ntimeout = \"2s\"\n",
            etcd.endpoints()[0]
        );
        let text = format!("{store}{more}");
        let (sandboxes, servers) = (0..3).map(|_| ready(&text)).unzip();
        let nodes = Self { etcd, sandboxes, servers, http: Http::new() };
        nodes.leader();
        nodes
    }

    /// Which of them leads, in the eyes of all that run.
    pub(super) fn leader(&self) -> usize {
        let found = wait_until(SOON, || {
            let leading: Vec<usize> =
                (0..self.sandboxes.len()).filter(|node| self.role(*node) == "ok, leading\n").collect();
            match leading[..] {
                [one] => Some(one),
                _ => None,
            }
        });
        found.expect("one of them leads")
    }

    /// Whether a node leads in its own eyes.
    pub(super) fn leads(&self, node: usize) -> bool {
        self.role(node) == "ok, leading\n"
    }

    /// Two that do not lead.
    pub(super) fn followers(&self) -> [usize; 2] {
        match self.leader() {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        }
    }

    fn role(&self, node: usize) -> String {
        self.http.try_get(&format!("{}/readyz", self.sandboxes[node].url())).unwrap_or_default()
    }

    /// The value of `name` in `/metrics` of a node, with its labels.
    pub(super) fn number(&self, node: usize, name: &str) -> Option<f64> {
        let text = self.http.try_get(&format!("{}/metrics", self.sandboxes[node].url()))?;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// A request to a node by its admin.
    pub(super) fn ask(&self, node: usize, method: Method, path: &str, body: Option<Value>) -> Answer {
        let sandbox = &self.sandboxes[node];
        self.http.ask(method, &format!("{}/api/v1{path}", sandbox.url()), &sandbox.token(), &[], body)
    }

    /// Claims `key` at a node, if it can be had.
    pub(super) fn claim(&self, node: usize, key: &str) -> Answer {
        self.ask(node, Method::PUT, &format!("/pools/lan/claims/{key}"), Some(serde_json::json!({})))
    }
}

/// A sandbox with a server that is ready. A free port may be another's a moment later, so it is tried more than once.
pub(super) fn ready(config: &str) -> (Sandbox, Process) {
    loop {
        let sandbox = Sandbox::empty();
        std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
        let mut server = run(&sandbox);
        match server.wait_for_line("is ready", SOON) {
            Ok(_) => return (sandbox, server),
            Err(error) if error.to_string().contains("Address already in use") => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A server whose store the configuration names.
pub(super) fn run(sandbox: &Sandbox) -> Process {
    let listen = sandbox.url().replace("http://", "");
    let dns = format!("127.0.0.1:{}", sandbox.dns());
    let mut command = sandbox.command();
    command.args(["run", "--listen", &listen, "--dns-listen", &dns]);
    Process::start("netstead", &mut command).unwrap()
}

/// HTTP without a client of ours.
pub(crate) struct Http {
    runtime: Runtime,
    client: Client,
}

/// The answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) status: u16,
    pub(super) age: Option<String>,
    pub(super) body: Value,
}

impl Answer {
    /// The kind of the problem, without its prefix.
    pub(super) fn problem(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default().trim_start_matches("urn:netstead:")
    }

    pub(super) fn address(&self) -> &str {
        self.body["address"].as_str().unwrap_or_default()
    }
}

impl Http {
    pub(super) fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = Client::builder().tls_certs_only([]).timeout(Duration::from_secs(30)).build().unwrap();
        Self { runtime, client }
    }

    pub(super) fn try_get(&self, url: &str) -> Option<String> {
        let asked = async { self.client.get(url).timeout(Duration::from_secs(2)).send().await?.text().await };
        self.runtime.block_on(asked).ok()
    }

    /// Status 0 if nothing answers.
    pub(super) fn ask(
        &self,
        method: Method,
        url: &str,
        token: &str,
        headers: &[(&'static str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut request = self.client.request(method, url).bearer_auth(token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        self.runtime.block_on(async {
            match request.send().await {
                Ok(response) => Self::read(response).await,
                Err(_) => Answer { status: 0, age: None, body: Value::Null },
            }
        })
    }

    async fn read(response: Response) -> Answer {
        let status = response.status().as_u16();
        let age = response.headers().get("netstead-age").and_then(|age| age.to_str().ok()).map(str::to_owned);
        let text = response.text().await.unwrap_or_default();
        Answer { status, age, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }
}
