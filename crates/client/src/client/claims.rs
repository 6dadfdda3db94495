//! Claims. A call that ends or changes a claim names its id, so a repeat never meets a later claim of the same key.

use std::time::Duration;

use netstead_model::{Key, Span};
use serde::{Deserialize, Serialize};

use super::{Change, Client};
use crate::{
    ClaimQuery, ClientError,
    transport::Repeat,
    types::{
        BulkEntry, BulkInput, BulkOutput, BulkResult, ClaimFrom, ClaimInput, ClaimOutput, MoveInput,
        ReleaseOutput, RenewInput, TargetInput,
    },
};

#[derive(Serialize)]
struct Id<'a> {
    id: &'a str,
}

#[derive(Deserialize)]
struct Claims {
    claims: Vec<ClaimOutput>,
}

impl Client {
    /// The claim of `key`, bound or waiting; `None` if it holds nothing.
    pub async fn look_up(&self, pool: &str, key: &str) -> Result<Option<ClaimOutput>, ClientError> {
        if is_path_step(key) {
            let (pool, key) = (Some(pool.to_owned()), Some(key.to_owned()));
            let found = self.page(&ClaimQuery { pool, key, ..ClaimQuery::default() }).await?;
            return Ok(found.items.into_iter().next());
        }
        match self.get(&["pools", pool, "claims", key], &()).await {
            Ok(claim) => Ok(Some(claim)),
            Err(error) if error.is("no-such-claim") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Claims from one pool. Asking again gives the same address, so a lost answer is asked for again.
    pub async fn claim(
        &self,
        pool: &str,
        key: &str,
        claim: &ClaimInput,
    ) -> Result<(ClaimOutput, Change), ClientError> {
        let call = self.put(&["pools", pool, "claims", key], claim)?.waiting(wait(claim)?);
        let answer = self.transport.json(call).await?;
        Ok((answer.value, answer.status.into()))
    }

    /// Claims from the first pool with room, or from several at once.
    pub async fn claim_from(&self, claim: &ClaimFrom) -> Result<Vec<ClaimOutput>, ClientError> {
        let call = self.post(&["claims"], Repeat::Idempotent, claim)?.waiting(wait(&claim.claim)?);
        Ok(self.send::<Claims>(call).await?.claims)
    }

    /// Ends the claim with this id, and no other.
    pub async fn release(&self, pool: &str, key: &str, id: &str) -> Result<ReleaseOutput, ClientError> {
        if is_path_step(key) {
            return self.release_in_bulk(pool, key, Some(id)).await;
        }
        let call = self.delete(&["pools", pool, "claims", key], Repeat::Idempotent, &Id { id })?;
        self.send(call).await
    }

    /// Takes a waiting claim, which has no id yet, out of the queue.
    pub async fn leave_queue(&self, pool: &str, key: &str) -> Result<ReleaseOutput, ClientError> {
        if is_path_step(key) {
            return self.release_in_bulk(pool, key, None).await;
        }
        let call = self.delete(&["pools", pool, "claims", key], Repeat::Once, &())?;
        self.send(call).await
    }

    /// Ends a claim whose key no path can hold.
    async fn release_in_bulk(
        &self,
        pool: &str,
        key: &str,
        id: Option<&str>,
    ) -> Result<ReleaseOutput, ClientError> {
        let (pool, key, id) = (pool.to_owned(), key.to_owned(), id.map(str::to_owned));
        let entries = vec![BulkEntry::Release(TargetInput { pool, key, id })];
        match self.bulk(&BulkInput { entries }).await?.results.into_iter().next() {
            Some(BulkResult::Released(released)) => Ok(released),
            Some(BulkResult::Failed(problem)) => Err(ClientError::Refused(Box::new(problem))),
            _ => Err(ClientError::unusable("the server answered with something else than a release")),
        }
    }

    /// Gives the claim with this id its full time again, or a new one.
    pub async fn renew(
        &self,
        pool: &str,
        key: &str,
        id: &str,
        ttl: Option<String>,
    ) -> Result<ClaimOutput, ClientError> {
        let body = RenewInput { id: Some(id.to_owned()), ttl };
        self.send(self.post(&["pools", pool, "claims", key, "renew"], Repeat::Idempotent, &body)?).await
    }

    /// Hands the address of the claim with this id to another key.
    pub async fn move_claim(
        &self,
        pool: &str,
        key: &str,
        id: &str,
        to: &str,
        owner: Option<String>,
    ) -> Result<ClaimOutput, ClientError> {
        let body = MoveInput { id: Some(id.to_owned()), key: to.to_owned(), owner };
        self.send(self.post(&["pools", pool, "claims", key, "move"], Repeat::Idempotent, &body)?).await
    }

    /// Many requests, 64 to a commit.
    pub async fn bulk(&self, bulk: &BulkInput) -> Result<BulkOutput, ClientError> {
        let repeat = if may_repeat(&bulk.entries) { Repeat::Idempotent } else { Repeat::Once };
        let answer = self.transport.json(self.post(&["bulk"], repeat, bulk)?).await?;
        Ok(answer.doubt.final_entries(answer.value))
    }
}

/// Claims may be sent again, and so may what names the ids of claims. Both together may not: a claim that was released
/// after it was confirmed would be made anew.
fn may_repeat(entries: &[BulkEntry]) -> bool {
    let is_claim = |entry: &BulkEntry| matches!(entry, BulkEntry::Claim(_));
    let has_id = |entry: &BulkEntry| match entry {
        BulkEntry::Claim(_) => false,
        BulkEntry::Release(target) => target.id.is_some(),
        BulkEntry::Renew(renew) => renew.target.id.is_some(),
        BulkEntry::Move(moved) => moved.target.id.is_some(),
    };
    entries.iter().all(is_claim) || entries.iter().all(has_id)
}

/// Whether a key is `.` or `..`. No claim gets one any more; what has one from before is named by other ways than a path.
fn is_path_step(key: &str) -> bool {
    key.parse::<Key>().is_ok_and(|key| key.is_path_step())
}

fn wait(claim: &ClaimInput) -> Result<Duration, ClientError> {
    let span = claim.wait.as_deref().map(str::parse::<Span>).transpose();
    span.map(|span| span.unwrap_or_default().into())
        .map_err(|error| ClientError::unusable(format!("wait: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_and_what_names_ids_are_repeated_but_not_both_together() {
        let claim = || BulkEntry::Claim(ClaimFrom::default());
        let release = |id: Option<&str>| {
            BulkEntry::Release(TargetInput { id: id.map(str::to_owned), ..TargetInput::default() })
        };
        assert!(may_repeat(&[claim(), claim()]));
        assert!(may_repeat(&[release(Some("1f0c22ab-17")), release(Some("1f0c22ab-18"))]));
        assert!(!may_repeat(&[release(Some("1f0c22ab-17")), release(None)]));
        assert!(!may_repeat(&[claim(), release(Some("1f0c22ab-17"))]));
    }
}
