//! The nodes that keep the store together: add and remove.

use axum::http::StatusCode;
use netstead_client::types::{NodeInput, NodeOutput, NodeRole};
use netstead_store::{MemberId, MemberInfo, MemberList, Membership, Store, StoreError};

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
    let list = node.members().await;
    let named = |member: &&MemberInfo| is_id(&id, member.id) || member.name == id || member.address == id;
    let found: Vec<&MemberInfo> = list.members.iter().filter(named).collect();
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
fn is_id(text: &str, id: MemberId) -> bool {
    let id = id.to_string();
    id == text || id.trim_start_matches('0') == text
}

fn node(session: &RequestContext) -> Result<&dyn Membership, Failure> {
    let told = "this store is not kept by several nodes together; `[store] type = \"raft\"` is";
    cluster(session)?.store().membership().ok_or_else(|| Failure::not_found("not-found", told))
}

/// Turns a refusal into its reason; other errors are errors of the store.
fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Invalid { reason } => Failure::new(StatusCode::CONFLICT, "not-now", reason),
        error => error.into(),
    }
}

pub(super) async fn list(store: &dyn Store) -> Vec<NodeOutput> {
    let Some(node) = store.membership() else { return Vec::new() };
    let list = node.members().await;
    list.members.iter().map(|member| output(&list, member)).collect()
}

fn output(list: &MemberList, one: &MemberInfo) -> NodeOutput {
    let role = match one {
        one if list.removed && one.id == list.me => NodeRole::Removed,
        one if list.leader == Some(one.id) => NodeRole::Leader,
        one if one.voter => NodeRole::Follower,
        _ => NodeRole::Learner,
    };
    NodeOutput {
        id: one.id.to_string(),
        name: one.name.clone(),
        address: one.address.clone(),
        role,
        lag: one.lag,
        last_contact_ms: one.last_contact_ms,
        replaced_by: one.replaced_by.map(|id| id.to_string()),
        version: one.version.clone(),
    }
}
