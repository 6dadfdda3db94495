//! The nodes that serve this store.

pub(crate) mod nodes;

use axum::http::StatusCode;
use netstead_client::types::{ClusterOutput, LeaderOutput, MemberOutput, ServerRole};

use crate::{
    cluster::Cluster,
    http::{
        answer::Answer,
        path::TextPath,
        query::{NoParams, Query},
        session::{Admin, Read, RequestContext, Session},
    },
    openapi::{Ending, Listing},
    problem::Failure,
};

/// Shows all nodes, as the one that is asked knows them.
#[utoipa::path(get, path = "/cluster", tag = "server", operation_id = "get_cluster",
    responses((status = 200, description = "The nodes, and who leads", body = ClusterOutput), Listing))]
pub(crate) async fn get(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<ClusterOutput>, Failure> {
    let cluster = cluster(&session)?;
    Ok(Answer::ok(ClusterOutput { nodes: nodes::list(cluster.store()).await, ..output(cluster) }))
}

/// Forgets a node that is gone for good, by its id or name. The format of the store waits for it no longer.
#[utoipa::path(delete, path = "/cluster/members/{id}", tag = "server", operation_id = "remove_member",
    params(("id" = String, Path, description = "Its id or its name")),
    responses((status = 204, description = "It is forgotten"), Ending))]
pub(crate) async fn remove(
    session: Session<Admin>,
    TextPath(id): TextPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Failure> {
    session.check_unscoped()?;
    let cluster = cluster(&session)?;
    if nodes::list(cluster.store()).await.iter().any(|node| node.id == id || node.name == id) {
        let told = format!("`{id}` keeps the store together with others: remove it as one of `nodes`");
        return Err(Failure::new(StatusCode::CONFLICT, "not-now", told));
    }
    cluster.remove(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn cluster(session: &RequestContext) -> Result<&Cluster, Failure> {
    let told = "there is no node here, only a store that was opened for one command";
    let missing = || Failure::not_found("not-found", told);
    session.app.cluster.as_ref().map(|(cluster, _)| cluster).ok_or_else(missing)
}

pub(super) fn output(cluster: &Cluster) -> ClusterOutput {
    let (me, members) = (cluster.me(), cluster.members());
    // A node that hears of no majority does not lead, and knows of no leader.
    let leader = cluster.leader().filter(|leader| leader.node != me.id || cluster.leads());
    let role = if cluster.leads() { ServerRole::Leading } else { ServerRole::Following };
    let name_of = |node: &str| members.iter().find(|one| one.id == node).map(|one| one.name.clone());
    let leads = |node: &str| leader.as_ref().is_some_and(|leader| leader.node == node);
    let member = |one: &crate::cluster::Member| MemberOutput {
        id: one.id.clone(),
        name: one.name.clone(),
        url: one.url.clone(),
        version: one.version.clone(),
        format: one.format,
        leads: leads(&one.id),
        since: one.since,
        seen: one.seen,
    };
    ClusterOutput {
        node: me.id.clone(),
        name: me.name.clone(),
        role,
        format: cluster.format(),
        members: members.iter().map(member).collect(),
        nodes: Vec::new(),
        leader: leader.clone().map(|leader| LeaderOutput {
            name: name_of(&leader.node),
            node: leader.node,
            url: leader.url,
            epoch: leader.epoch,
        }),
    }
}
