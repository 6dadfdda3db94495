//! `netstead cluster status|add|remove`

use netstead_client::types::{NodeInput, NodeOutput};

use super::{Context, say};
use crate::{
    cli::{Format, cluster::Cluster},
    output,
};

pub(crate) async fn cluster(context: &Context, command: &Cluster) -> anyhow::Result<()> {
    match command {
        Cluster::Status => status(context).await,
        Cluster::Add(args) => {
            let node = NodeInput { address: args.address.clone() };
            context.client.add_node(&node).await?;
            say!("{} is let in, and votes once it has everything", args.address);
            Ok(())
        }
        Cluster::Remove(args) => remove(context, &args.node).await,
    }
}

/// A node that keeps the store together with others is removed there; in any case it is forgotten as one that serves.
async fn remove(context: &Context, node: &str) -> anyhow::Result<()> {
    let cluster = context.client.cluster().await?;
    let is_one = |one: &NodeOutput| one.id == node || one.name == node || one.address == node;
    if cluster.nodes.iter().any(is_one) {
        context.client.remove_node(node).await?;
        say!("{node} is removed from the cluster");
        if cluster.members.iter().filter(|member| member.name == node).count() == 1 {
            // It may be told of itself once more before it ends; it is forgotten then after a while by itself.
            let _ = context.client.remove_member(node).await;
        }
        return Ok(());
    }
    context.client.remove_member(node).await?;
    say!("{node} is forgotten");
    Ok(())
}

async fn status(context: &Context) -> anyhow::Result<()> {
    let cluster = context.client.cluster().await?;
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        return output::document(&cluster, format);
    }
    output::list(&cluster.members, context.format, context.now())?;
    if !cluster.nodes.is_empty() && matches!(context.format, None | Some(Format::Table | Format::Wide)) {
        output::emit("\n")?;
        output::list(&cluster.nodes, context.format, context.now())?;
    }
    if matches!(context.format, None | Some(Format::Table | Format::Wide)) {
        match &cluster.leader {
            Some(leader) => say!("epoch {}, format {}", leader.epoch, cluster.format),
            None => say!("nobody leads; format {}", cluster.format),
        }
    }
    Ok(())
}
