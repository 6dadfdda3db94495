//! Pools with a backend: completed with what the backend says of its pool.

use axum::http::StatusCode;
use netstead_client::types::PoolOutput;
use netstead_engine::Engine;
use netstead_ledger::UpstreamError;
use netstead_model::{PoolSpec, PoolStatus};

use crate::{cluster::FORMAT_OF_BACKENDS, http::session::RequestContext, problem::Failure};

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
