//! The pool backend `netstead`: another Netstead, by its API.

use std::sync::Arc;

use async_trait::async_trait;
use netstead_model::{
    BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, GivenBack, ObjectPage,
    PoolBackend, Want,
};

use crate::{
    ClaimQuery, Client, ClientError,
    types::{ClaimInput, ClaimOutput, PoolOutput, ReleaseOutcome},
};

mod convert;

/// Claims of one page of a list.
const PAGE: u32 = 1000;

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
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let (address, prefer) = match claim.want {
            Want::Any => (None, None),
            Want::Exact(address) => (Some(address.to_string()), None),
            Want::Prefer(address) => (None, Some(address.to_string())),
        };
        let description = Some(claim.note.clone()).filter(|note| !note.is_empty());
        let input =
            ClaimInput { address, prefer, length: claim.length, description, ..ClaimInput::default() };
        let (output, _) = self.client.claim(&claim.pool, &claim.key, &input).await?;
        if output.address.is_none() {
            // The other Netstead has a backend of its own, which has not answered yet.
            let why = output.why.as_deref().unwrap_or("it waits for a backend of its own");
            return Err(BackendError::unknown(format!("the claim waits at the other Netstead: {why}")));
        }
        convert::object(output).map_err(foreign)
    }

    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        let answer = self.client.release(pool, &object.key, &object.reference).await?;
        Ok(if answer.outcome == ReleaseOutcome::Released { GivenBack::Done } else { GivenBack::AlreadyGone })
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        let found = self.client.look_up(pool, key).await?;
        match found {
            Some(claim) if claim.address.is_none() => {
                Err(BackendError::unknown("the claim waits at the other Netstead"))
            }
            Some(claim) => Ok(vec![convert::object(claim).map_err(foreign)?]),
            None => Ok(Vec::new()),
        }
    }

    async fn list(&self, pool: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, BackendError> {
        let (pool, after) = (Some(pool.to_owned()), after.map(ToOwned::to_owned));
        let query = ClaimQuery { pool, after, limit: Some(PAGE), ..ClaimQuery::default() };
        let page = self.client.page(&query).await?;
        let ours = |claim: &ClaimOutput| claim.address.is_some() && claim.key.starts_with(prefix);
        let objects = page.items.into_iter().filter(ours).map(convert::object);
        Ok(ObjectPage { objects: objects.collect::<Result<_, _>>().map_err(foreign)?, next: page.next })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        pool_info(self.client.pool(pool).await?.value)
    }

    async fn changed(&self, pool: &str) -> Result<Option<String>, BackendError> {
        // Counters would not do: one claim may take the place of another. The sequence number of the other ledger grows with
        // every change there, so the list is sometimes read without need.
        let query = ClaimQuery { pool: Some(pool.to_owned()), limit: Some(1), ..ClaimQuery::default() };
        Ok(Some(self.client.page(&query).await?.seq.to_string()))
    }
}

/// A pool of another Netstead as its backends see it.
pub fn pool_info(pool: PoolOutput) -> Result<BackendPoolInfo, BackendError> {
    convert::pool(pool).map_err(foreign)
}

fn foreign(reason: impl std::fmt::Display) -> BackendError {
    BackendError::unavailable(format!("the other Netstead's answer cannot be used: {reason}"))
}

impl From<ClientError> for BackendError {
    fn from(error: ClientError) -> Self {
        failed(&error)
    }
}

/// Turns the other server's error into the kind that says what to do next.
fn failed(error: &ClientError) -> BackendError {
    let slug = error.problem().map(|problem| problem.slug().to_owned());
    let kind = match (slug.as_deref(), error) {
        (_, ClientError::Unknown { .. }) | (Some("backend-does-not-answer"), _) => BackendErrorKind::Unknown,
        (Some("exhausted" | "quota-reached" | "paused"), _) => BackendErrorKind::Exhausted,
        (
            Some(
                "address-held" | "key-held" | "not-yours" | "resting" | "observed" | "reserved"
                | "waiting-for-other",
            ),
            _,
        ) => BackendErrorKind::Held,
        (Some("not-in-pool" | "withheld"), _) => BackendErrorKind::NotHere,
        (Some("no-such-pool"), _) => BackendErrorKind::NoSuchPool,
        (Some("backend-refuses"), ClientError::Refused(problem)) => {
            match problem.facts.get("kind").map(String::as_str) {
                Some("held") => BackendErrorKind::Held,
                Some("not-here") => BackendErrorKind::NotHere,
                Some("exhausted") => BackendErrorKind::Exhausted,
                _ => BackendErrorKind::Refused,
            }
        }
        (_, ClientError::Denied { .. }) => BackendErrorKind::Denied,
        (_, ClientError::Refused(_) | ClientError::Unusable { .. }) => BackendErrorKind::Refused,
        _ => BackendErrorKind::Unavailable,
    };
    let facts = error.problem().map(|problem| problem.facts.clone()).unwrap_or_default();
    let mut told = BackendError::new(kind, error.to_string());
    told.facts.extend(facts);
    match kind {
        BackendErrorKind::Denied => {
            told.hint("give the token of the backend the role `claim` and the scope of the pool")
        }
        _ => told,
    }
}
