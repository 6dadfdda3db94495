//! Claims the address of a bound claim at its backend again, after the backend lost it. A person asks for it.

use std::{sync::Arc, time::Duration};

use netstead_model::{Address, BackendClaim, BackendError, BackendObject, Claim, Drawn, Ident, Key, Want};
use tokio::{sync::oneshot, time::timeout};

use super::{
    Backends, DrawWorker, Finished, Outcome, Stop, Target,
    asked_at::AskedAt,
    backends::{lock, not_configured},
    schedule::StartedRestore,
};
use crate::command::{DrawReply, DrawStep};

/// Restores that may wait at the same time.
const MOST_ORDERS: usize = 100;

/// Why the object of a claim was not restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    #[error("there is no such claim in a pool with a backend")]
    NoSuchClaim,
    #[error("the claim has no object at a backend")]
    NotDrawn,
    #[error("{reason}")]
    Idle { reason: String },
    #[error("backend `{backend}` is not asked now; end the pause with `netstead resume` first")]
    Paused { backend: Ident },
    #[error("{MOST_ORDERS} restores wait already; ask again later")]
    TooMany,
    #[error("backend `{backend}`: {error}")]
    Backend { backend: Ident, error: BackendError },
    /// The backend has an object under the key of the claim, with another address.
    #[error(
        "backend `{backend}` has {address} under the key of this claim; release the claim, and claim again"
    )]
    Elsewhere { backend: Ident, address: Address },
    #[error("the claim changed meanwhile; look at it, and ask again")]
    Changed,
    #[error("it is unknown whether this was done: ask again")]
    Unknown,
}

/// A person's wish to have the object of a claim back at its backend.
#[derive(Debug)]
pub(super) struct RestoreOrder {
    pub pool: Ident,
    pub key: Key,
    pub answer: oneshot::Sender<Result<(), RestoreError>>,
}

impl RestoreOrder {
    pub fn end(self, result: Result<(), RestoreError>) {
        // A caller that is gone asks again.
        drop(self.answer.send(result));
    }
}

impl Backends {
    /// Claims the address of a claim at its backend again. The worker of the leader does it, so that one operation at a time
    /// concerns a key. Safe to repeat.
    pub async fn restore(&self, pool: Ident, key: Key, patience: Duration) -> Result<(), RestoreError> {
        if let Some(reason) = self.idle_reason() {
            return Err(RestoreError::Idle { reason });
        }
        let (answer, answered) = oneshot::channel();
        {
            let mut orders = lock(&self.shared.orders);
            orders.retain(|order| !order.answer.is_closed());
            if orders.len() >= MOST_ORDERS {
                return Err(RestoreError::TooMany);
            }
            orders.push(RestoreOrder { pool, key, answer });
        }
        self.shared.wake.notify_one();
        match timeout(patience, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(RestoreError::Unknown),
        }
    }
}

impl DrawWorker {
    pub(super) async fn restore(&self, started: StartedRestore, asked_at: Arc<AskedAt>) -> Finished {
        let StartedRestore { order, upstream, claim, drawn } = started;
        let (name, key) = (upstream.backend.clone(), drawn.key.clone());
        let Some(backend) = self.backends.get(&name) else {
            let error = not_configured(&name);
            order.end(Err(RestoreError::Backend { backend: name, error: error.clone() }));
            return Finished::Job { upstream, key, result: Err(Stop::Backend(error)) };
        };
        let at = Target { backend: &*backend, pool: &upstream.pool, asked_at: &asked_at };
        let result = match self.restore_object(&at, &name, &claim, &drawn).await {
            Ok(restored) => {
                if restored.is_ok() {
                    self.backends.drop_drift(&claim.pool, &key);
                    self.backends.reconcile_soon();
                }
                order.end(restored);
                Ok(Outcome::Done)
            }
            Err(Stop::Backend(error)) => {
                order.end(Err(RestoreError::Backend { backend: name, error: error.clone() }));
                Err(Stop::Backend(error))
            }
            Err(stop) => {
                order.end(Err(RestoreError::Unknown));
                Err(stop)
            }
        };
        Finished::Job { upstream, key, result }
    }

    async fn restore_object(
        &self,
        at: &Target<'_>,
        name: &Ident,
        claim: &Claim,
        drawn: &Drawn,
    ) -> Result<Result<(), RestoreError>, Stop> {
        let fits = |object: &BackendObject| object.address == claim.address && object.length == claim.length;
        let elsewhere = |object: &BackendObject| {
            Ok(Err(RestoreError::Elsewhere { backend: name.clone(), address: object.address }))
        };
        let found = self.request(at, &drawn.key, at.backend.look_up(at.pool, &drawn.key)).await?;
        let object = match (found.iter().find(|object| fits(object)), found.first()) {
            (Some(object), _) => object.clone(),
            (None, Some(other)) => return elsewhere(other),
            (None, None) => {
                let asked = BackendClaim {
                    pool: at.pool.to_owned(),
                    key: drawn.key.to_string(),
                    want: Want::Exact(claim.address),
                    length: claim.length,
                    note: format!("`{}` of `{}`", claim.key, claim.owner),
                };
                let object = self.request(at, &drawn.key, at.backend.claim(&asked)).await?;
                if !fits(&object) {
                    self.request(at, &drawn.key, at.backend.release(at.pool, &object)).await?;
                    return elsewhere(&object);
                }
                object
            }
        };
        let (pool, key) = (claim.pool.clone(), claim.key.clone());
        let step = DrawStep::Rebound { pool, key, id: claim.id, reference: object.reference };
        Ok(match self.step(step).await? {
            DrawReply::Done => Ok(()),
            _ => Err(RestoreError::Changed),
        })
    }
}
