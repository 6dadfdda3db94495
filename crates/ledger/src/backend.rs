//! The ledger as a pool backend: one of several places that addresses may come from.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{
    BackendError, Claim, ClaimRef, ClaimRequest, Ident, Key, PoolBackend, PoolStatus, Released,
};

use crate::{
    book::{ClaimCursor, ClaimFilter, ClaimView},
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

#[async_trait]
impl PoolBackend for LedgerBackend {
    async fn claim(&self, request: ClaimRequest) -> Result<Claim, BackendError> {
        let command = Command::Claim(Box::new(request));
        match self.ledger.submit(self.caller.clone(), command, self.patience).await?.reply {
            Reply::Claimed { claim, .. } => Ok(Arc::unwrap_or_clone(claim)),
            Reply::Queued(_) => {
                Err(BackendError::Exhausted { message: "the claim waits in the queue".into() })
            }
            _ => Err(odd_answer()),
        }
    }

    async fn release(&self, target: ClaimRef) -> Result<Released, BackendError> {
        match self.ledger.submit(self.caller.clone(), Command::Release(target), self.patience).await?.reply {
            Reply::Released(released) => Ok(released),
            Reply::Gone(_) => Ok(Released::AlreadyGone),
            _ => Err(odd_answer()),
        }
    }

    async fn look_up(&self, pool: &Ident, key: &Key) -> Result<Option<Claim>, BackendError> {
        let seen =
            self.ledger.read(Freshness::Fresh, |book| book.pool(pool).map(|_| book.claim(pool, key))).await?;
        let found = seen.value.ok_or_else(|| BackendError::NoSuchPool { pool: pool.clone() })?;
        Ok(found.map(|view| Arc::unwrap_or_clone(view.claim)))
    }

    async fn list(&self, pool: &Ident) -> Result<Vec<Claim>, BackendError> {
        let filter = ClaimFilter { pool: Some(pool.clone()), ..ClaimFilter::default() };
        let mut claims: Vec<Claim> = Vec::new();
        loop {
            let after = claims.last().map(|last| ClaimCursor { pool: pool.clone(), address: last.address });
            let look =
                |book: &crate::Book| book.pool(pool).map(|_| book.claims(&filter, after.as_ref(), PAGE));
            let page: Option<Vec<ClaimView>> = self.ledger.read(Freshness::Fresh, look).await?.value;
            let page = page.ok_or_else(|| BackendError::NoSuchPool { pool: pool.clone() })?;
            let full = page.len() == PAGE;
            claims.extend(page.into_iter().map(|view| Arc::unwrap_or_clone(view.claim)));
            if !full {
                return Ok(claims);
            }
        }
    }

    async fn describe(&self, pool: &Ident) -> Result<PoolStatus, BackendError> {
        let seen = self.ledger.read(Freshness::Fresh, |book| book.pool(pool)).await?;
        seen.value.ok_or_else(|| BackendError::NoSuchPool { pool: pool.clone() })
    }
}

fn odd_answer() -> BackendError {
    BackendError::Unavailable { message: "the ledger gave an answer to another question".into() }
}

impl From<LedgerError> for BackendError {
    fn from(error: LedgerError) -> Self {
        let message = error.to_string();
        match error {
            LedgerError::Refused(Refusal::NoSuchPool { pool }) => Self::NoSuchPool { pool },
            LedgerError::Refused(Refusal::Exhausted { .. }) => Self::Exhausted { message },
            LedgerError::Refused(
                Refusal::AddressHeld { .. }
                | Refusal::KeyHeld { .. }
                | Refusal::NotYours { .. }
                | Refusal::Reserved { .. }
                | Refusal::Resting { .. }
                | Refusal::Observed { .. }
                | Refusal::WaitingForOther { .. },
            ) => Self::Held { message },
            LedgerError::Refused(_) => Self::Refused { message },
            LedgerError::Unknown { .. } => Self::Unknown { message },
            LedgerError::Unavailable { .. }
            | LedgerError::NotLeading
            | LedgerError::TooLate
            | LedgerError::Gone { .. }
            | LedgerError::Moved { .. }
            | LedgerError::Damaged { .. } => Self::Unavailable { message },
        }
    }
}
