//! Completes the description of a pool with a backend: network and ranges come from the backend when the pool is made.

use std::time::Duration;

use netstead_model::{BackendError, Ident, Pool, PoolSpec, Upstream};
use tokio::time::timeout;

use super::Backends;

/// How long a backend may take to describe a pool.
const DESCRIBE_TIME: Duration = Duration::from_secs(8);

/// Why a pool with a backend cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    #[error("there is no backend `{name}`{}; add a table `[backend.{name}]`", listed(known))]
    NoSuchBackend { name: Ident, known: Vec<Ident> },
    #[error("backend `{name}` cannot describe its pool `{pool}`: {error}")]
    Backend { name: Ident, pool: String, error: BackendError },
    #[error(
        "pool `{pool}` of backend `{name}` draws from this installation itself; a chain cannot lead back to its start"
    )]
    Circle { name: Ident, pool: String },
}

fn listed(names: &[Ident]) -> String {
    match names {
        [] => String::new(),
        names => {
            format!(" among {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

impl Backends {
    /// The pool as it is stored: with what `before` says if that draws from the same pool, else with what the backend says.
    ///
    /// `owner` is our owner id.
    pub async fn complete(
        &self,
        spec: PoolSpec,
        before: Option<&Pool>,
        owner: &str,
    ) -> Result<PoolSpec, UpstreamError> {
        let Some(asked) = spec.upstream.as_deref().cloned() else { return Ok(spec) };
        if let Some(spec) = complete_from(&spec, before) {
            return Ok(spec);
        }
        let (name, pool) = (asked.backend, asked.pool);
        let Some(backend) = self.get(&name) else {
            return Err(UpstreamError::NoSuchBackend { name, known: self.names() });
        };
        let described = timeout(DESCRIBE_TIME, backend.describe(&pool)).await;
        let described = described.unwrap_or_else(|_| Err(BackendError::unavailable("it does not answer")));
        let info = match described {
            Ok(info) => info,
            Err(error) => return Err(UpstreamError::Backend { name, pool, error }),
        };
        if info.installations.iter().any(|installation| installation == owner) {
            return Err(UpstreamError::Circle { name, pool });
        }
        let upstream =
            Upstream { backend: name, pool, owner: owner.to_owned(), installations: info.installations };
        Ok(PoolSpec {
            family: info.family,
            network: info.network,
            ranges: info.ranges,
            exclude: info.exclude,
            gateway: info.gateway,
            use_reserved: info.use_reserved,
            length: spec.length.or(info.length),
            upstream: Some(Box::new(upstream)),
            ..spec
        })
    }
}

/// The pool with what the ledger already knows of its backend; `None` if that draws from elsewhere, or is not known.
pub fn complete_from(spec: &PoolSpec, before: Option<&Pool>) -> Option<PoolSpec> {
    let Some(asked) = spec.upstream.as_deref() else { return Some(spec.clone()) };
    let known = &before?.spec;
    let upstream = known.upstream.as_deref()?;
    if upstream.backend != asked.backend || upstream.pool != asked.pool {
        return None;
    }
    Some(PoolSpec {
        family: known.family,
        network: known.network,
        ranges: known.ranges.clone(),
        exclude: known.exclude.clone(),
        gateway: known.gateway,
        use_reserved: known.use_reserved,
        length: spec.length.or(known.length),
        upstream: known.upstream.clone(),
        ..spec.clone()
    })
}
