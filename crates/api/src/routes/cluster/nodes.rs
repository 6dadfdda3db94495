//! The nodes of a raft cluster: add and remove.

use axum::http::StatusCode;
use netstead_client::types::{NodeInput, NodeOutput, NodeRole};
use netstead_store::{
    RaftStore, Store, StoreError,
    raft::{MemberStatus, Role, Status, hex},
};

use super::cluster;
use crate::{
    http::{
        body::Json,
        path::TextPath,
        query::{NoParams, Query},
        session::{Admin, RequestContext, Session},
    },
    openapi::{Changing, Ending},
    problem::Failure,
};

/// Lets a node in that waits for it: one that was started with `--join` or `peers` and has an empty directory.
#[utoipa::path(post, path = "/cluster/nodes", tag = "server", operation_id = "add_node", request_body = NodeInput,
    responses((status = 204, description = "It is let in, and votes once it has everything"), Changing))]
pub(crate) async fn add(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<NodeInput>,
) -> Result<StatusCode, Failure> {
    session.check_unscoped()?;
    node(&session)?.add(&input.address).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a node for good, by its id, name or address. It can come back as a new one only.
#[utoipa::path(delete, path = "/cluster/nodes/{id}", tag = "server", operation_id = "remove_node",
    params(("id" = String, Path, description = "Its id, name or address")),
    responses((status = 204, description = "It is removed"), Ending))]
pub(crate) async fn remove(
    session: Session<Admin>,
    TextPath(id): TextPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Failure> {
    session.check_unscoped()?;
    let node = node(&session)?;
    let status = node.status().await;
    let named = |member: &&MemberStatus| {
        is_id(&id, member.id) || member.member.name == id || member.member.address == id
    };
    let found: Vec<&MemberStatus> = status.members.iter().filter(named).collect();
    match found.as_slice() {
        [member] => {
            node.remove(member.id).await.map_err(refused)?;
            // If this node removed itself, the next leader does it.
            let _ = cluster(&session)?.forget_removed(member.id).await;
        }
        [] => {
            return Err(Failure::not_found("not-found", format!("no node of the cluster is called `{id}`")));
        }
        _ => {
            let told = format!("more than one node is called `{id}`; name it by its id");
            return Err(Failure::new(StatusCode::CONFLICT, "ambiguous", told));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Whether this is the id of a node, with its zeros in front or without.
fn is_id(text: &str, id: u64) -> bool {
    hex(id) == text || hex(id).trim_start_matches('0') == text
}

fn node(session: &RequestContext) -> Result<&RaftStore, Failure> {
    let told = "this store is not kept by several nodes together; `[store] type = \"raft\"` is";
    cluster(session)?.store().as_node().ok_or_else(|| Failure::not_found("not-found", told))
}

/// What cannot be done says why; the rest is like any trouble of the store.
fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Invalid { reason } => Failure::new(StatusCode::CONFLICT, "not-now", reason),
        error => error.into(),
    }
}

pub(super) async fn list(store: &dyn Store) -> Vec<NodeOutput> {
    let Some(node) = store.as_node() else { return Vec::new() };
    let status = node.status().await;
    status.members.iter().map(|member| output(&status, member)).collect()
}

fn output(status: &Status, one: &MemberStatus) -> NodeOutput {
    let role = match one {
        one if status.role == Role::Removed && one.id == status.id => NodeRole::Removed,
        one if status.leader == Some(one.id) => NodeRole::Leader,
        one if one.voter => NodeRole::Follower,
        _ => NodeRole::Learner,
    };
    NodeOutput {
        id: hex(one.id),
        name: one.member.name.clone(),
        address: one.member.address.clone(),
        role,
        lag: one.lag,
        last_contact_ms: one.last_contact_ms,
        replaced_by: one.other.map(hex),
        version: one.member.version.clone(),
    }
}
