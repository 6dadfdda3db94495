//! By what one sees that a fault has happened: one that did not would be survived by anybody.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use netstead_client::types::{ClusterOutput, MemberOutput, NodeRole, ServerRole};
use netstead_model::{Clock as _, SystemClock};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    cluster::{Cluster, PATIENCE, REQUEST},
    node::Node,
};

/// Between two looks.
const GLANCE: Duration = Duration::from_millis(50);

/// The leader, and its epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) node: usize,
    pub(crate) epoch: u64,
}

impl Cluster {
    /// Waits until one leads; what it says of that itself.
    pub(crate) async fn lead(&self) -> Lead {
        self.wait_for("somebody leads", async || {
            let node = self.leader_now().await?;
            let seen = self.seen_by(node).await?;
            let epoch = seen.leader.filter(|_| seen.role == ServerRole::Leading)?.epoch;
            Some(Lead { node, epoch })
        })
        .await
    }

    /// Waits until another node leads.
    pub(crate) async fn another_leads(&self, before: Lead) -> Lead {
        let lead = async || Some(self.lead().await).filter(|now| now.node != before.node);
        let now = self.wait_for("another node leads", lead).await;
        assert!(now.epoch > before.epoch, "{now:?} comes after {before:?}");
        now
    }

    /// Waits until a node has taken the lead, even the same one.
    pub(crate) async fn led_anew(&self, before: Lead) {
        let anew = async || Some(self.lead().await).filter(|now| now.epoch > before.epoch);
        self.wait_for("the lead is taken anew", anew).await;
    }

    /// Waits until a node is ready.
    pub(crate) async fn serves(&self, node: usize) {
        let ready = async || self.readiness(node).await.filter(|said| said.starts_with("HTTP/1.1 200"));
        self.wait_for("the node is ready", ready).await;
    }

    /// The readiness of a node, with the headers of the answer.
    pub(crate) async fn readiness(&self, node: usize) -> Option<String> {
        let api = self.nodes()[node].api();
        get(api, "/readyz", "").await
    }

    /// The whole cluster in the eyes of one node.
    pub(crate) async fn seen_by(&self, node: usize) -> Option<ClusterOutput> {
        let client = self.clients(REQUEST).swap_remove(node);
        client.cluster().await.ok()
    }

    /// Waits until the nodes that keep their store together are three that vote, without `old`.
    pub(crate) async fn voters_without(&self, old: &str) {
        let voters = async || {
            let nodes = self.seen_by(self.leader_now().await?).await?.nodes;
            let voters: BTreeSet<&str> = nodes
                .iter()
                .filter(|node| node.role != NodeRole::Learner)
                .map(|node| node.id.as_str())
                .collect();
            (voters.len() == 3 && nodes.len() == 3 && !voters.contains(old)).then_some(())
        };
        self.wait_for("three vote, and the old node is not one of them", voters).await;
    }

    /// Waits until a node has told when it started, by a clock that is ahead of ours or is not.
    pub(crate) async fn tells_time(&self, node: usize, ahead: bool) {
        let told = async || {
            let ClusterOutput { node, members, .. } = self.seen_by(node).await?;
            let own = members.into_iter().find(|MemberOutput { id, .. }| *id == node)?;
            ((own.since > SystemClock.wall()) == ahead).then_some(())
        };
        self.wait_for(if ahead { "its clock is ahead" } else { "its clock is right" }, told).await;
    }

    /// How many commits all nodes together have made of which they did not learn whether they landed.
    pub(crate) async fn unknown_commits(&self) -> u64 {
        let nodes: Vec<SocketAddr> = self.nodes().iter().map(Node::api).collect();
        let mut sum = 0;
        for node in nodes {
            let token = format!("Authorization: Bearer {}\r\n", self.token());
            let count = async || {
                let text = get(node, "/metrics", &token).await?;
                let name = "netstead_ledger_unknown_commits_total ";
                text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok())
            };
            sum += self.wait_for("the node counts unknown commits", count).await;
        }
        sum
    }

    /// Looks until there is something to see.
    pub(crate) async fn wait_for<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                sleep(GLANCE).await;
            }
        };
        let found = timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("not so after {PATIENCE:?}: {what}"))
    }
}

/// One page with its headers, without a client of ours: who is asked may stand still.
pub(crate) async fn get(node: SocketAddr, path: &str, headers: &str) -> Option<String> {
    let asking = async {
        let mut stream = TcpStream::connect(node).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {node}\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    };
    timeout(Duration::from_secs(1), asking).await.ok().flatten()
}
