//! Leadership on an etcd: a leader key that lives as long as its holder's lease, and an epoch that is raised with it.
//!
//! 1. A has lease L1. The leader key has the value L1, and the epoch is 7, written at revision 100. A renews L1 four times in
//!    its lifetime, and every commit of A has the condition that the epoch's key is at revision 100.
//! 2. A stalls. L1 is not renewed.
//! 3. B looks every 200 ms. It sees that the leader key is gone, or, earlier, that L1 was not renewed in time
//!    (see `failure_detector`).
//! 4. B gets lease L2. In one transaction, on condition that both keys are as B saw them, it puts the leader key with L2 and
//!    the epoch 8 (revision 120). If C does the same at the same moment, one of the two transactions is refused.
//! 5. A goes on and commits. Its condition fails, the commit is refused, and A follows.
//!
//! So the lease only says when the next node may try. What protects the data is the epoch: it does not matter if A was alive
//! all the time.
//!
//! If the answer to step 4 is lost, B reads the keys: when the leader key has L2, B leads. If A's lease ran out and no other
//! node took the lead, A takes the leader key again with a new lease and keeps its epoch.

mod failure_detector;

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use netstead_wire::etcd::{
    KV_TXN, LEASE_GRANT,
    messages::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
        LeaseRevokeRequest, Nothing, Operation, PutRequest, RangeRequest, TxnRequest, TxnResponse,
    },
};
use tokio::time::{sleep, timeout};
use tonic::Status;

use self::failure_detector::FailureDetector;
use super::{EtcdShared, is_at};
use crate::{EPOCH_KEY, Epoch, StoreError, epoch};

const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";

/// The pause between two looks at the leader key.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a renewal may take before the next is tried: the answer may be lost with the member that had the request.
const RENEWAL: Duration = Duration::from_millis(800);
/// The pause after a renewal that failed.
const AGAIN: Duration = Duration::from_millis(100);

/// The lease and the fence of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leading {
    lease: i64,
    /// The revision at which the epoch was raised: commits are conditional on it.
    pub(super) fence: i64,
}

/// The two keys of leadership, as they were read.
struct LeadershipKeys {
    leader: i64,
    /// The lease of the leader.
    holder: Option<i64>,
    epoch: i64,
    number: u64,
}

/// Waits until no other process leads, then takes the lead with a new epoch. A process that leads already only raises the
/// epoch.
pub(super) async fn lead(shared: &Arc<EtcdShared>) -> Result<Epoch, StoreError> {
    if let Some(leading) = shared.leading() {
        return raise(shared, leading).await;
    }
    let mut doubt = FailureDetector::default();
    loop {
        let standing = read_leadership(shared).await?;
        if doubt.suspects(shared, standing.holder.filter(|_| standing.leader != 0)).await {
            tracing::info!("The leader does not renew its lease; this process takes the lead.");
        } else if standing.leader != 0 {
            tokio::select! {
                () = shared.closed.cancelled() => return Err(EtcdShared::closed_error()),
                () = sleep(POLL_INTERVAL) => {}
            }
            continue;
        }
        let lease = grant(shared).await?;
        let number = standing.number + 1;
        match acquire_leadership(shared, &standing, lease, Some(number)).await {
            Ok(Some(fence)) => return begin_leading(shared, lease, fence, number).await,
            // Another process was faster. The lease just granted runs out by itself.
            Ok(None) => {}
            Err(error) => {
                // Perhaps only the answer was lost.
                let LeadershipKeys { holder, epoch, number, .. } = read_leadership(shared).await?;
                return if holder == Some(lease) {
                    begin_leading(shared, lease, epoch, number).await
                } else {
                    Err(error)
                };
            }
        }
    }
}

async fn begin_leading(
    shared: &Arc<EtcdShared>,
    lease: i64,
    fence: i64,
    number: u64,
) -> Result<Epoch, StoreError> {
    shared.set_leading(Some(Leading { lease, fence }));
    if shared.closed.is_cancelled() {
        // The store was closed while the lead was being taken.
        resign(shared).await;
        return Err(EtcdShared::closed_error());
    }
    tokio::spawn(keep_lease_alive(Arc::clone(shared), lease));
    Ok(Epoch(number))
}

async fn raise(shared: &Arc<EtcdShared>, leading: Leading) -> Result<Epoch, StoreError> {
    let standing = read_leadership(shared).await?;
    if standing.epoch != leading.fence {
        shared.deposed();
        return Err(StoreError::Refused { key: EPOCH_KEY.to_vec() });
    }
    let number = standing.number + 1;
    match acquire_leadership(shared, &standing, leading.lease, Some(number)).await? {
        Some(fence) => {
            shared.set_leading(Some(Leading { fence, ..leading }));
            Ok(Epoch(number))
        }
        None => Err(StoreError::Refused { key: EPOCH_KEY.to_vec() }),
    }
}

async fn read_leadership(shared: &EtcdShared) -> Result<LeadershipKeys, StoreError> {
    let read = |key: Vec<u8>| Operation::Range(RangeRequest { key, ..RangeRequest::default() }).into();
    let question = TxnRequest {
        success: vec![read(shared.leader.clone()), read(shared.full(EPOCH_KEY))],
        ..TxnRequest::default()
    };
    let answer: TxnResponse =
        shared.client.read(KV_TXN, question).await.map_err(|status| shared.unavailable(&status))?;
    let mut found =
        answer.responses.into_iter().map(|op| op.range.unwrap_or_default().kvs.into_iter().next());
    let (leader, holder) = match found.next().flatten() {
        None => (0, None),
        Some(kv) => (kv.mod_revision, std::str::from_utf8(&kv.value).ok().and_then(|id| id.parse().ok())),
    };
    let (epoch, number) = match found.next().flatten() {
        None => (0, 0),
        Some(kv) => (kv.mod_revision, epoch::read(&kv.value)?),
    };
    Ok(LeadershipKeys { leader, holder, epoch, number })
}

/// Takes the leader key if both keys are unchanged, and with `number` raises the epoch. Returns the revision, or `None` if a
/// key changed.
async fn acquire_leadership(
    shared: &EtcdShared,
    standing: &LeadershipKeys,
    lease: i64,
    number: Option<u64>,
) -> Result<Option<i64>, StoreError> {
    let put = |key: Vec<u8>, value: String, lease: i64| {
        Operation::Put(PutRequest { key, value: value.into_bytes(), lease }).into()
    };
    let mut success = vec![put(shared.leader.clone(), lease.to_string(), lease)];
    if let Some(number) = number {
        success.push(put(shared.full(EPOCH_KEY), number.to_string(), 0));
    }
    let question = TxnRequest {
        compare: vec![
            is_at(shared.leader.clone(), standing.leader),
            is_at(shared.full(EPOCH_KEY), standing.epoch),
        ],
        success,
        ..TxnRequest::default()
    };
    let answer = shared.send_once(question).await.map_err(|status| shared.unavailable(&status))?;
    let revision = answer.header.map_or(0, |header| header.revision);
    Ok(answer.succeeded.then_some(revision))
}

/// Renews the lease. A lease that ran out is replaced if no other process took the lead; otherwise this store is deposed.
async fn keep_lease_alive(shared: Arc<EtcdShared>, mut lease: i64) {
    // The first renewal comes at once: taking the lead may have used up some of the time.
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            () = shared.closed.cancelled() => return,
            () = sleep(pause) => pause = shared.lease / 4,
        }
        let _keeping = shared.keeping.lock().await;
        // After a loss of the lead and a new one there is another lease, with a task of its own.
        let Some(leading) = shared.leading().filter(|leading| leading.lease == lease) else { return };
        let renewed = tokio::select! {
            () = shared.closed.cancelled() => return,
            renewed = renew(&shared, leading.lease) => renewed,
        };
        match renewed {
            Ok(0) => match reacquire_leadership(&shared, leading).await {
                Ok(Some(new)) => {
                    lease = new;
                    tracing::warn!("The lease of the lead had run out; no other node took it.");
                }
                Ok(None) => return shared.deposed(),
                Err(error) => tracing::debug!(%error, "The lead could not be taken again yet."),
            },
            Ok(_) => shared.note_ready(),
            Err(status) => {
                let _ = shared.unavailable(&status); // Said by `health`.
                pause = AGAIN;
            }
        }
    }
}

async fn reacquire_leadership(shared: &EtcdShared, leading: Leading) -> Result<Option<i64>, StoreError> {
    let standing = read_leadership(shared).await?;
    if standing.epoch != leading.fence {
        return Ok(None);
    }
    if standing.leader != 0 {
        return Err(StoreError::Unavailable { reason: "the old lease is still valid".into() });
    }
    let lease = grant(shared).await?;
    if acquire_leadership(shared, &standing, lease, None).await?.is_none() {
        return Err(StoreError::Unavailable { reason: "another node was faster".into() });
    }
    shared.set_leading(Some(Leading { lease, ..leading }));
    Ok(Some(lease))
}

/// Gives the lease back when the store is closed, so that a waiting process leads at once.
pub(super) async fn resign(shared: &EtcdShared) {
    // Not while the lease is being replaced: the new one would stay.
    let _kept = timeout(RENEWAL, shared.keeping.lock()).await;
    let leading = shared.leading.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(leading) = leading {
        let question = LeaseRevokeRequest { id: leading.lease };
        if let Err(status) = shared.client.read::<_, Nothing>(REVOKE, question).await {
            tracing::debug!(%status, "The lease could not be given back; it runs out by itself.");
        }
    }
}

async fn grant(shared: &EtcdShared) -> Result<i64, StoreError> {
    let ttl = i64::try_from(shared.lease.as_secs().max(1)).unwrap_or(i64::MAX);
    let answer: LeaseGrantResponse = shared
        .client
        .read(LEASE_GRANT, LeaseGrantRequest { ttl })
        .await
        .map_err(|status| shared.unavailable(&status))?;
    if answer.error.is_empty() {
        Ok(answer.id)
    } else {
        Err(StoreError::Unavailable { reason: format!("etcd gives no lease: {}", answer.error) })
    }
}

/// Renews the lease. Returns the seconds it has left; 0 when etcd does not know it.
///
/// A read must succeed first. On a network that loses only what comes back, a leader would otherwise renew its lease for
/// ever and never get an answer to a commit.
async fn renew(shared: &EtcdShared, id: i64) -> Result<i64, Status> {
    let renewal = async {
        let at = shared.find_live_endpoint().await?;
        shared.client.once_at(at, KEEP_ALIVE, LeaseKeepAliveRequest { id }).await
    };
    let answer: LeaseKeepAliveResponse = timeout(RENEWAL, renewal)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("the lease was not renewed in time")))?;
    Ok(answer.ttl)
}

impl EtcdShared {
    pub(super) fn leading(&self) -> Option<Leading> {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_leading(&self, leading: Option<Leading>) {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = leading;
    }

    /// Another process leads now. Commits begun while this one led are refused by its fence. From now on this store belongs
    /// to a follower, which may wait for the lead again.
    pub(super) fn deposed(&self) {
        tracing::debug!("Another process leads this etcd now.");
        self.set_leading(None);
    }
}
