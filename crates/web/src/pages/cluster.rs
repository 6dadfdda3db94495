//! The nodes that share the store, the leader, and the backups.

use askama::Template;
use axum::response::Response;
use netstead_client::types::{ClusterOutput, StatusOutput};

use crate::{
    calls::Target,
    parts::When,
    shell::{Section, Shell},
    visit::Visit,
};

#[derive(Debug, Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    shell: Shell,
    version: String,
    store: String,
    ledger: String,
    seq: u64,
    epoch: u64,
    started: When,
    nameserver: Vec<String>,
    backup: Option<Backup>,
    damage: Vec<(String, String)>,
    leader: String,
    format: u32,
    members: Vec<Member>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Backup {
    last: Option<When>,
    error: String,
}

#[derive(Debug)]
struct Member {
    name: String,
    url: String,
    version: String,
    leads: bool,
    is_this: bool,
    since: When,
    seen: When,
}

#[derive(Debug)]
struct Node {
    name: String,
    address: String,
    role: String,
    lag: String,
    contact: String,
}

pub(crate) async fn show(visit: Visit) -> Response {
    let status: StatusOutput = match visit.calls.look(Target::of(["status"])).await {
        Ok(status) => status,
        Err(trouble) => return visit.trouble(&trouble),
    };
    // A server whose store has one process only has no cluster.
    let cluster: Option<ClusterOutput> = visit.calls.get(Target::of(["cluster"])).await.ok();
    let when = |at| When::new(at, visit.now);
    let leader = cluster.as_ref().and_then(|cluster| cluster.leader.as_ref());
    let member = |cluster: &ClusterOutput| -> Vec<Member> {
        let member = |member: &netstead_client::types::MemberOutput| Member {
            name: member.name.clone(),
            url: member.url.clone(),
            version: member.version.clone(),
            leads: member.leads,
            is_this: member.id == cluster.node,
            since: when(member.since),
            seen: when(member.seen),
        };
        cluster.members.iter().map(member).collect()
    };
    let node = |node: &netstead_client::types::NodeOutput| Node {
        name: node.name.clone(),
        address: node.address.clone(),
        role: node.role.to_string(),
        lag: node.lag.map(|lag| lag.to_string()).unwrap_or_default(),
        contact: node.last_contact_ms.map(|ms| format!("{ms} ms ago")).unwrap_or_default(),
    };
    visit.page(&ClusterPage {
        leader: leader
            .map(|leader| leader.name.clone().unwrap_or_else(|| leader.node.clone()))
            .unwrap_or_default(),
        format: cluster.as_ref().map(|cluster| cluster.format).unwrap_or_default(),
        members: cluster.as_ref().map(member).unwrap_or_default(),
        nodes: cluster.as_ref().map(|cluster| cluster.nodes.iter().map(node).collect()).unwrap_or_default(),
        backup: status
            .backup
            .map(|backup| Backup { last: backup.last.map(when), error: backup.error.unwrap_or_default() }),
        damage: status.damage.into_iter().map(|damage| (damage.part, damage.reason)).collect(),
        version: status.version,
        store: status.store,
        ledger: status.ledger,
        seq: status.seq,
        epoch: status.epoch,
        started: when(status.started),
        nameserver: status.nameserver,
        shell: visit.shell(Section::Cluster, "Nodes"),
    })
}
