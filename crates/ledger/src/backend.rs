//! The ledger as a pool backend: one of several places that addresses may come from.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, Claim, ClaimRef,
    ClaimRequest, GivenBack, Ident, Key, ObjectPage, PoolBackend, PoolStatus, Released,
};

use crate::{
    book::{Book, ClaimCursor, ClaimFilter},
    command::{Caller, Command, Reply},
    ledger::{Freshness, Ledger},
    refusal::{LedgerError, Refusal},
};

const PAGE: usize = 1000;

/// The ledger's pools, asked by one caller.
#[derive(Debug, Clone)]
pub struct LedgerBackend {
    pub ledger: Ledger,
    pub caller: Caller,
    /// How long a request may take.
    pub patience: Duration,
}

impl LedgerBackend {
    async fn look<T>(&self, pool: &str, look: impl Fn(&Book, &Ident) -> T) -> Result<T, BackendError> {
        let name = ident(pool)?;
        let seen = self.ledger.read(Freshness::Fresh, |book| book.pool(&name).map(|_| look(book, &name)));
        seen.await?.value.ok_or_else(|| no_such_pool(pool))
    }
}

#[async_trait]
impl PoolBackend for LedgerBackend {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let request = ClaimRequest {
            want: claim.want,
            length: claim.length,
            description: Some(claim.note.clone()).filter(|note| !note.is_empty()),
            ..ClaimRequest::any(ident(&claim.pool)?, key(&claim.key)?)
        };
        let command = Command::Claim(Box::new(request));
        match self.ledger.submit(self.caller.clone(), command, self.patience).await?.reply {
            Reply::Claimed { claim, .. } => Ok(object(&claim)),
            Reply::Queued(_) => Err(BackendError::unknown("the claim waits for a backend of its own")),
            _ => Err(odd_answer()),
        }
    }

    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        let id = object.reference.parse().map_err(|_| refused("the object is not one of this ledger"))?;
        let target = ClaimRef { pool: ident(pool)?, key: key(&object.key)?, id: Some(id) };
        match self.ledger.submit(self.caller.clone(), Command::Release(target), self.patience).await?.reply {
            Reply::Released(Released::Done(_)) => Ok(GivenBack::Done),
            Reply::Released(Released::AlreadyGone) | Reply::Gone(_) => Ok(GivenBack::AlreadyGone),
            _ => Err(odd_answer()),
        }
    }

    async fn look_up(&self, pool: &str, of: &str) -> Result<Vec<BackendObject>, BackendError> {
        let key = key(of)?;
        let found = self.look(pool, |book, name| book.claim(name, &key)).await?;
        Ok(found.map(|view| object(&view.claim)).into_iter().collect())
    }

    async fn list(&self, pool: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, BackendError> {
        let after: Option<Address> =
            after.map(str::parse).transpose().map_err(|_| refused("the cursor is not of this ledger"))?;
        let page = self.look(pool, |book, name| {
            let filter = ClaimFilter { pool: Some(name.clone()), ..ClaimFilter::default() };
            let cursor = after.map(|address| ClaimCursor { pool: name.clone(), address });
            book.claims(&filter, cursor.as_ref(), PAGE)
        });
        let page = page.await?;
        let next = page.last().filter(|_| page.len() == PAGE).map(|last| last.claim.address.to_string());
        let ours = page.iter().filter(|view| view.claim.key.as_str().starts_with(prefix));
        Ok(ObjectPage { objects: ours.map(|view| object(&view.claim)).collect(), next })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        self.look(pool, Book::pool).await?.map(info).ok_or_else(|| no_such_pool(pool))
    }

    async fn changed(&self, pool: &str) -> Result<Option<String>, BackendError> {
        // Counters would not do: one claim may take the place of another.
        self.look(pool, |book, _| Some(book.seq().to_string())).await
    }
}

fn info(status: PoolStatus) -> BackendPoolInfo {
    let spec = status.pool.spec;
    BackendPoolInfo {
        family: spec.family,
        network: spec.network,
        ranges: spec.ranges,
        exclude: spec.exclude,
        gateway: spec.gateway,
        use_reserved: spec.use_reserved,
        length: spec.length,
        size: status.usage.size,
        free: status.usage.free,
        installations: Vec::new(),
    }
}

fn object(claim: &Arc<Claim>) -> BackendObject {
    BackendObject {
        reference: claim.id.to_string(),
        key: claim.key.to_string(),
        holder: Some(claim.owner.to_string()),
        address: claim.address,
        length: claim.length,
        since: Some(claim.since),
    }
}

fn ident(pool: &str) -> Result<Ident, BackendError> {
    pool.parse().map_err(|_| no_such_pool(pool))
}

fn key(text: &str) -> Result<Key, BackendError> {
    text.parse().map_err(|error: netstead_model::ParseError| refused(error.to_string()))
}

fn no_such_pool(pool: &str) -> BackendError {
    BackendError::new(BackendErrorKind::NoSuchPool, format!("there is no pool `{pool}`")).fact("pool", pool)
}

fn refused(message: impl Into<String>) -> BackendError {
    BackendError::new(BackendErrorKind::Refused, message)
}

fn odd_answer() -> BackendError {
    BackendError::unavailable("the ledger gave an answer to another question")
}

impl From<LedgerError> for BackendError {
    fn from(error: LedgerError) -> Self {
        let kind = match &error {
            LedgerError::Refused(refusal) => kind_of(refusal),
            LedgerError::Unknown { .. } => BackendErrorKind::Unknown,
            _ => BackendErrorKind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}

fn kind_of(refusal: &Refusal) -> BackendErrorKind {
    match refusal {
        Refusal::NoSuchPool { .. } => BackendErrorKind::NoSuchPool,
        Refusal::Exhausted { .. } | Refusal::Paused => BackendErrorKind::Exhausted,
        Refusal::AddressHeld { .. }
        | Refusal::KeyHeld { .. }
        | Refusal::NotYours { .. }
        | Refusal::Reserved { .. }
        | Refusal::Resting { .. }
        | Refusal::Observed { .. }
        | Refusal::WaitingForOther { .. } => BackendErrorKind::Held,
        Refusal::NotInPool { .. } | Refusal::Withheld { .. } => BackendErrorKind::NotHere,
        Refusal::Backend { kind, .. } => *kind,
        _ => BackendErrorKind::Refused,
    }
}
