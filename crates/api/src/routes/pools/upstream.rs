//! Pools with a backend: completed with what the backend says of its pool.

use axum::http::{HeaderMap, StatusCode};
use netstead_client::types::{self, Page, PoolOutput};
use netstead_engine::Engine;
use netstead_ledger::UpstreamError;
use netstead_model::{Ident, PoolSpec, PoolStatus};
use tracing::debug;

use crate::{
    cluster::FORMAT_OF_BACKENDS,
    http::{forward, session::RequestContext},
    problem::Failure,
};

/// Pages of the leader's pools that are read for one answer, at most.
const MOST_PAGES: usize = 10;

/// The pool with network and ranges of its backend.
pub(super) async fn complete(
    session: &RequestContext,
    spec: PoolSpec,
    before: Option<&PoolStatus>,
) -> Result<PoolSpec, Failure> {
    if spec.upstream.is_none() {
        return Ok(spec);
    }
    check_format(session)?;
    let owner = Engine::owner(&**session.app.ledger.store()).await?;
    let before = before.map(|status| &status.pool);
    let spec = session.app.backends.complete(spec, before, owner.as_str()).await?;
    spec.check().map_err(|error| Failure::impossible(error.field, error.reason))?;
    Ok(spec)
}

/// Refuses as long as a member of the cluster would not understand the pool.
fn check_format(session: &RequestContext) -> Result<(), Failure> {
    let Some((cluster, _)) = &session.app.cluster else { return Ok(()) };
    if cluster.format() >= FORMAT_OF_BACKENDS {
        return Ok(());
    }
    let told = match cluster.older_than(FORMAT_OF_BACKENDS) {
        Some(member) => format!(
            "a pool with a backend needs all members upgraded, and `{}` ({}) runs {}; upgrade it, or remove it with \
             `netstead cluster remove`",
            member.name, member.id, member.version
        ),
        None => "the format of the store is being raised; ask again in a moment".to_owned(),
    };
    Err(Failure::new(StatusCode::CONFLICT, "member-too-old", told))
}

/// Adds what backends say of their pools. Only the leader compares them, so another node asks it with the caller's token. A leader
/// that does not answer leaves the ledger's own count, without an age.
pub(super) async fn add_described_one(
    session: &RequestContext,
    headers: &HeaderMap,
    output: &mut PoolOutput,
) {
    if output.backend.is_some()
        && let Some(Ok((cluster, peers))) = forward::leader_to_ask(session, headers)
    {
        let target = format!("/api/v1/pools/{}?stale=ok", output.name);
        match forward::get_from_leader::<PoolOutput>(cluster, peers, headers, &target).await {
            Ok(known) => add_described(output, &known),
            Err(why) => debug!(pool = output.name, why, "The leader does not say how full the pool is."),
        }
    }
}

/// As [`add_described_one`], for a page of pools that follows `after`.
pub(super) async fn add_described_page(
    session: &RequestContext,
    headers: &HeaderMap,
    after: Option<&Ident>,
    outputs: &mut [PoolOutput],
) {
    if outputs.iter().all(|output| output.backend.is_none()) {
        return;
    }
    let Some(Ok((cluster, peers))) = forward::leader_to_ask(session, headers) else { return };
    let mut after = after.map(|name| format!("&after={name}")).unwrap_or_default();
    // Without the caller's selector, so there may be more pages than one.
    for _ in 0..MOST_PAGES {
        let target = format!("/api/v1/pools?stale=ok&limit=1000{after}");
        let page = forward::get_from_leader::<Page<PoolOutput>>(cluster, peers, headers, &target).await;
        let page = match page {
            Ok(page) => page,
            Err(why) => return debug!(why, "The leader does not say how full pools are."),
        };
        for known in &page.items {
            if let Some(output) = outputs.iter_mut().find(|output| output.name == known.name) {
                add_described(output, known);
            }
        }
        let last = outputs.last().map(|output| output.name.as_str());
        let all = page.items.last().is_none_or(|known| Some(known.name.as_str()) >= last);
        match page.next.filter(|_| !all) {
            Some(next) => after = format!("&after={next}"),
            None => return,
        }
    }
}

fn add_described(output: &mut PoolOutput, known: &PoolOutput) {
    let same = (&output.backend, &output.backend_pool) == (&known.backend, &known.backend_pool);
    if !same || known.described.is_none() {
        return;
    }
    output.described = known.described;
    output.usage = types::Usage {
        size: known.usage.size.clone(),
        free: known.usage.free.clone(),
        used_permyriad: known.usage.used_permyriad,
        ..output.usage.clone()
    };
}

/// Says through which installations the addresses come, this one first: a backend asks for it to find a chain that leads back.
pub(super) async fn name_installation(session: &RequestContext, output: &mut PoolOutput) {
    if let Ok(owner) = Engine::owner(&**session.app.ledger.store()).await {
        output.installations.insert(0, owner.as_str().to_owned());
    }
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        let told = error.to_string();
        match error {
            UpstreamError::NoSuchBackend { name, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "no-such-backend", told).fact("backend", name)
            }
            UpstreamError::Backend { name, error, .. } if error.kind.is_refusal() => {
                Self::new(StatusCode::CONFLICT, "backend-refuses", told)
                    .fact("backend", name)
                    .fact("kind", error.kind)
            }
            UpstreamError::Backend { name, .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "backend-does-not-answer", told)
                    .fact("backend", name)
            }
            other => Self::impossible("backend", other.to_string()),
        }
    }
}
