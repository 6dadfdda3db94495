//! `netstead cluster status|add|remove`

use netstead_client::types::{ClusterOutput, MemberOutput, NodeInput, NodeOutput, NodeRole};
use netstead_store::raft::node_address;
use serde::Serialize;

use super::{Context, say};
use crate::{
    cli::{Format, cluster::Cluster},
    output::{self, Audience, Row},
};

pub(crate) async fn cluster(context: &Context, command: &Cluster) -> anyhow::Result<()> {
    match command {
        Cluster::Status => status(context).await,
        Cluster::Add(args) => {
            let before = context.client.cluster().await?.nodes;
            let node = NodeInput { address: args.address.clone() };
            context.client.add_node(&node).await?;
            let after = context.client.cluster().await?.nodes;
            if was_in(&before, &after, &args.address) {
                say!("{} is in the cluster already, and votes", args.address);
            } else {
                say!("{} is let in, and votes once it has everything", args.address);
            }
            Ok(())
        }
        Cluster::Remove(args) => remove(context, &args.node).await,
    }
}

/// Whether the one at this address voted before it was added, and is the only one there also after that.
fn was_in(before: &[NodeOutput], after: &[NodeOutput], address: &str) -> bool {
    let at = |nodes: &[NodeOutput]| -> Vec<(String, bool)> {
        let there = nodes.iter().filter(|node| Some(&node.address) == node_address(address).as_ref());
        there.map(|node| (node.id.clone(), node.role != NodeRole::Learner)).collect()
    };
    matches!(at(before).as_slice(), [(_, true)]) && at(before) == at(after)
}

/// A node that keeps the store together with others is removed there; in any case it is forgotten as one that serves.
async fn remove(context: &Context, node: &str) -> anyhow::Result<()> {
    let cluster = context.client.cluster().await?;
    let short = |id: &str| id.trim_start_matches('0') == node;
    let is_one =
        |one: &NodeOutput| one.id == node || short(&one.id) || one.name == node || one.address == node;
    if cluster.nodes.iter().any(is_one) {
        context.client.remove_node(node).await?;
        say!("{node} is removed from the cluster");
        return Ok(());
    }
    context.client.remove_member(node).await?;
    say!("{node} is forgotten");
    Ok(())
}

/// Milliseconds without an answer after which a node is held to be gone.
const GONE: u64 = 3000;

/// A node that keeps the store together with others, and what it tells of itself as one that serves.
#[derive(Debug, Serialize)]
struct NodeRow {
    node: NodeOutput,
    member: Option<MemberOutput>,
}

impl NodeRow {
    fn all(cluster: &ClusterOutput) -> Vec<Self> {
        let member = |id: &str| cluster.members.iter().find(|member| member.id == id).cloned();
        cluster.nodes.iter().map(|node| Self { node: node.clone(), member: member(&node.id) }).collect()
    }
}

impl Row for NodeRow {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["NAME", "ROLE", "URL", "STORE", "LAG", "ANSWERED"], &["NODE", "VERSION", "SEEN", "AGE", "FORMAT"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        let Self { node, member } = self;
        let of = |cell: &dyn Fn(&MemberOutput) -> String| member.as_ref().map(cell).unwrap_or_default();
        let answered = match (node.last_contact_ms, look) {
            (None, _) => "never".to_owned(),
            (Some(age), Audience::Programs) => age.to_string(),
            (Some(age), Audience::People { .. }) => ago(age),
        };
        vec![
            node.name.clone(),
            node.role.to_string(),
            of(&|member| member.url.clone()),
            node.address.clone(),
            node.lag.map(|lag| lag.to_string()).unwrap_or_default(),
            answered,
            node.id.clone(),
            node.version.clone(),
            of(&|member| look.since(member.seen)),
            of(&|member| look.since(member.since)),
            of(&|member| member.format.to_string()),
        ]
    }

    fn name(&self) -> String {
        self.node.id.clone()
    }
}

/// A warning when too few nodes answer for anything to be changed, or when the node that answers is not in the cluster any more.
fn majority_lost(nodes: &[NodeOutput]) -> Option<String> {
    if nodes.iter().any(|node| node.role == NodeRole::Removed) {
        return Some("the node that was asked was removed from the cluster; ask another one".to_owned());
    }
    let voters: Vec<_> = nodes.iter().filter(|node| node.role != NodeRole::Learner).collect();
    let there = voters.iter().filter(|node| node.last_contact_ms.is_some_and(|age| age < GONE)).count();
    let needed = voters.len() / 2 + 1;
    (!voters.is_empty() && there < needed).then(|| {
        format!("only {there} of {} nodes answer: nothing can be changed until {needed} do", voters.len())
    })
}

/// Nodes hear of each other many times a second, so less than a second is not worth telling.
fn ago(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        0 => "now".to_owned(),
        seconds @ 1..120 => format!("{seconds}s ago"),
        seconds => format!("{}m ago", seconds / 60),
    }
}

async fn status(context: &Context) -> anyhow::Result<()> {
    let cluster = context.client.cluster().await?;
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        return output::document(&cluster, format);
    }
    if cluster.nodes.is_empty() {
        output::list(&cluster.members, context.format, context.now())?;
    } else {
        output::list(&NodeRow::all(&cluster), context.format, context.now())?;
    }
    if matches!(context.format, None | Some(Format::Table | Format::Wide)) {
        match &cluster.leader {
            Some(leader) => say!("epoch {}, format {}", leader.epoch, cluster.format),
            None => say!("no node leads; format {}", cluster.format),
        }
        if let Some(told) = majority_lost(&cluster.nodes) {
            say!("{told}");
        }
        for node in &cluster.nodes {
            if let Some(other) = &node.replaced_by {
                say!("{} is another node now ({other}): {} does not answer", node.address, node.id);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(role: &str, last_contact_ms: Option<u64>) -> NodeOutput {
        NodeOutput {
            id: "1".into(),
            name: "n".into(),
            address: "10.0.0.1:5302".into(),
            role: role.into(),
            lag: None,
            last_contact_ms,
            replaced_by: None,
            version: "1".into(),
        }
    }

    #[test]
    fn who_is_added_again_is_no_news() {
        let (votes, learns) = (node("follower", Some(0)), node("learner", Some(0)));
        let new = NodeOutput { id: "2".into(), ..learns.clone() };
        let was_in = |before: &NodeOutput, after: Vec<&NodeOutput>| {
            let after: Vec<NodeOutput> = after.into_iter().cloned().collect();
            was_in(std::slice::from_ref(before), &after, "10.0.0.1")
        };
        assert!(was_in(&votes, vec![&votes]));
        assert!(!was_in(&learns, vec![&learns]));
        // It lost its disk, and comes back as another one.
        assert!(!was_in(&votes, vec![&votes, &new]));
    }

    #[test]
    fn a_lost_majority_is_told() {
        let three = |second, third| {
            majority_lost(&[node("leader", Some(0)), node("follower", second), node("follower", third)])
        };
        assert_eq!(three(Some(100), Some(9000)), None);
        let told = three(Some(9000), None).unwrap();
        assert_eq!(told, "only 1 of 3 nodes answer: nothing can be changed until 2 do");
        assert!(majority_lost(&[node("removed", Some(0))]).unwrap().contains("was removed"));
        assert_eq!(majority_lost(&[]), None);
    }
}
