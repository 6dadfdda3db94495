//! `netstead cluster status|remove`

use super::{Context, say};
use crate::{
    cli::{Format, cluster::Cluster},
    output,
};

pub(crate) async fn cluster(context: &Context, command: &Cluster) -> anyhow::Result<()> {
    match command {
        Cluster::Status => status(context).await,
        Cluster::Remove(args) => {
            context.client.remove_member(&args.node).await?;
            say!("{} is forgotten", args.node);
            Ok(())
        }
    }
}

async fn status(context: &Context) -> anyhow::Result<()> {
    let cluster = context.client.cluster().await?;
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        return output::document(&cluster, format);
    }
    output::list(&cluster.members, context.format, context.now())?;
    if matches!(context.format, None | Some(Format::Table | Format::Wide)) {
        match &cluster.leader {
            Some(leader) => say!("epoch {}, format {}", leader.epoch, cluster.format),
            None => say!("nobody leads; format {}", cluster.format),
        }
    }
    Ok(())
}
