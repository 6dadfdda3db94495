//! The pool backend `netstead`: another Netstead, by its API.

use std::sync::Arc;

use async_trait::async_trait;
use netstead_model::{
    BackendError, Claim, ClaimRef, ClaimRequest, Ident, Key, PoolBackend, PoolChoice, PoolStatus, Released,
    Want,
};

use crate::{
    ClaimQuery, Client, ClientError,
    types::{ClaimFrom, ClaimInput, ReleaseOutput},
};

mod convert;

/// Pools that another Netstead keeps.
#[derive(Debug, Clone)]
pub struct RemotePools {
    client: Arc<Client>,
}

impl RemotePools {
    pub fn new(client: Client) -> Self {
        Self { client: Arc::new(client) }
    }
}

#[async_trait]
impl PoolBackend for RemotePools {
    async fn claim(&self, request: ClaimRequest) -> Result<Claim, BackendError> {
        let claims = self.client.claim_from(&ask(&request)).await.map_err(failed)?;
        let claim = claims.into_iter().next().ok_or_else(|| foreign("it answered without a claim"))?;
        convert::claim(claim).map_err(foreign)
    }

    async fn release(&self, target: ClaimRef) -> Result<Released, BackendError> {
        let (pool, key) = (target.pool.as_str(), target.key.as_str());
        let id = match target.id {
            Some(id) => id.to_string(),
            None => match self.client.look_up(pool, key).await.map_err(failed)? {
                None => return Ok(Released::AlreadyGone),
                Some(claim) => match claim.id {
                    Some(id) => id,
                    None => return self.client.leave_queue(pool, key).await.map_err(failed).and_then(ended),
                },
            },
        };
        self.client.release(pool, key, &id).await.map_err(failed).and_then(ended)
    }

    async fn look_up(&self, pool: &Ident, key: &Key) -> Result<Option<Claim>, BackendError> {
        let found = self.client.look_up(pool.as_str(), key.as_str()).await.map_err(failed)?;
        found.filter(|claim| claim.address.is_some()).map(convert::claim).transpose().map_err(foreign)
    }

    async fn list(&self, pool: &Ident) -> Result<Vec<Claim>, BackendError> {
        let query = ClaimQuery { pool: Some(pool.to_string()), ..ClaimQuery::default() };
        let claims = self.client.all(query).await.map_err(failed)?;
        let bound = claims.into_iter().filter(|claim| claim.address.is_some());
        bound.map(convert::claim).collect::<Result<_, _>>().map_err(foreign)
    }

    async fn describe(&self, pool: &Ident) -> Result<PoolStatus, BackendError> {
        let found = self.client.pool(pool.as_str()).await.map_err(failed)?;
        convert::pool(found.value).map_err(foreign)
    }
}

fn ask(request: &ClaimRequest) -> ClaimFrom {
    let (address, prefer) = match request.want {
        Want::Any => (None, None),
        Want::Exact(address) => (Some(address.to_string()), None),
        Want::Prefer(address) => (None, Some(address.to_string())),
    };
    let (any, select) = match &request.from {
        PoolChoice::Pools(pools) => (pools.iter().map(ToString::to_string).collect(), None),
        PoolChoice::Select(selector) => (Vec::new(), Some(selector.to_string())),
    };
    let labels =
        |labels: &netstead_model::Labels| labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    ClaimFrom {
        key: request.key.to_string(),
        any,
        each: Vec::new(),
        select,
        claim: ClaimInput {
            address,
            prefer,
            length: request.length,
            ttl: request.ttl.map(|ttl| ttl.to_string()),
            labels: request.labels.as_ref().map(labels),
            hostnames: request
                .hostnames
                .as_ref()
                .map(|names| names.iter().map(ToString::to_string).collect()),
            description: request.description.clone(),
            owner: None,
            adopt: request.adopt,
            force: request.force,
            wait: request.wait.map(|wait| wait.to_string()),
            keep: request.keep,
        },
    }
}

fn ended(answer: ReleaseOutput) -> Result<Released, BackendError> {
    match answer.claim {
        Some(claim) if claim.address.is_some() => {
            convert::claim(claim).map(|claim| Released::Done(claim.into())).map_err(foreign)
        }
        _ => Ok(Released::AlreadyGone),
    }
}

fn foreign(reason: impl std::fmt::Display) -> BackendError {
    BackendError::Unavailable { message: format!("the other Netstead's answer cannot be used: {reason}") }
}

/// Turns the other server's error into one for a caller that only wants an address.
fn failed(error: ClientError) -> BackendError {
    let message = error.to_string();
    let slug = error.problem().map(|problem| problem.slug().to_owned());
    match (slug.as_deref(), error) {
        (_, ClientError::Unknown { .. }) => BackendError::Unknown { message },
        (Some("exhausted"), _) => BackendError::Exhausted { message },
        (
            Some("address-held" | "key-held" | "resting" | "observed" | "reserved" | "waiting-for-other"),
            _,
        ) => BackendError::Held { message },
        (Some("no-such-pool"), ClientError::Refused(problem)) => {
            match problem.facts.get("pool").and_then(|pool| pool.parse().ok()) {
                Some(pool) => BackendError::NoSuchPool { pool },
                None => BackendError::Refused { message },
            }
        }
        (_, ClientError::Refused(_) | ClientError::Denied { .. } | ClientError::Unusable { .. }) => {
            BackendError::Refused { message }
        }
        _ => BackendError::Unavailable { message },
    }
}
