//! Who leads: a key that lives as long as its holder's lease, and the epoch that is raised together with it.
//!
//! The lease is only how a successor learns that its turn has come. What keeps a late leader from doing harm is the
//! epoch: every commit of a leader is conditional on it still being the one it raised.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tonic::{Status, Streaming};

use super::{
    KV_TXN, Shared, is_at,
    messages::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
        LeaseRevokeRequest, Nothing, Operation, PutRequest, RangeRequest, TxnRequest, TxnResponse,
    },
    watch::Questions,
};
use crate::{EPOCH_KEY, Epoch, StoreError, epoch};

const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";

/// How often one who waits looks whether the lead is free.
const LOOK: Duration = Duration::from_millis(250);

/// What one who leads holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leading {
    lease: i64,
    /// The revision at which the epoch was raised: commits are conditional on it.
    pub(super) fence: i64,
}

/// The two keys of leadership as they stand.
struct Standing {
    leader: i64,
    epoch: i64,
    number: u64,
}

/// Waits until nobody else leads, then leads with a new epoch. One who leads already only raises the epoch; one who was
/// deposed waits like everybody else.
pub(super) async fn lead(shared: &Arc<Shared>) -> Result<Epoch, StoreError> {
    if let Some(leading) = shared.leading() {
        return raise(shared, leading).await;
    }
    let lease = grant(shared).await?;
    loop {
        let standing = look(shared).await?;
        if standing.leader == 0 {
            let number = standing.number + 1;
            if let Some(fence) = take(shared, &standing, lease, Some(number)).await? {
                let leading = Leading { lease, fence };
                shared.set_leading(Some(leading));
                tokio::spawn(keep(Arc::clone(shared), lease));
                return Ok(Epoch(number));
            }
            continue;
        }
        tokio::select! {
            () = shared.closed.cancelled() => return Err(Shared::closed_error()),
            () = sleep(LOOK) => {}
        }
        // A candidate's lease must live too, or it would lead with a key that is about to vanish.
        if renew(shared, lease).await.is_ok_and(|ttl| ttl == 0) {
            return Err(StoreError::Unavailable { reason: "etcd forgot the lease while waiting".into() });
        }
    }
}

async fn raise(shared: &Arc<Shared>, leading: Leading) -> Result<Epoch, StoreError> {
    let standing = look(shared).await?;
    if standing.epoch != leading.fence {
        shared.deposed();
        return Err(StoreError::Refused { key: EPOCH_KEY.to_vec() });
    }
    let number = standing.number + 1;
    match take(shared, &standing, leading.lease, Some(number)).await? {
        Some(fence) => {
            shared.set_leading(Some(Leading { fence, ..leading }));
            Ok(Epoch(number))
        }
        None => Err(StoreError::Refused { key: EPOCH_KEY.to_vec() }),
    }
}

async fn look(shared: &Shared) -> Result<Standing, StoreError> {
    let read = |key: Vec<u8>| Operation::Range(RangeRequest { key, ..RangeRequest::default() }).into();
    let question = TxnRequest {
        success: vec![read(shared.leader.clone()), read(shared.full(EPOCH_KEY))],
        ..TxnRequest::default()
    };
    let answer: TxnResponse =
        shared.client.read(KV_TXN, question).await.map_err(|status| shared.unavailable(&status))?;
    let mut found =
        answer.responses.into_iter().map(|op| op.range.unwrap_or_default().kvs.into_iter().next());
    let leader = found.next().flatten().map_or(0, |kv| kv.mod_revision);
    let (epoch, number) = match found.next().flatten() {
        None => (0, 0),
        Some(kv) => (kv.mod_revision, epoch::read(&kv.value)?),
    };
    Ok(Standing { leader, epoch, number })
}

/// Takes the lead if the keys are as they were seen, and returns the revision of that; with a number, raises the epoch.
async fn take(
    shared: &Shared,
    standing: &Standing,
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
    let answer: TxnResponse =
        shared.client.once(KV_TXN, question).await.map_err(|status| shared.unavailable(&status))?;
    let revision = answer.header.map_or(0, |header| header.revision);
    Ok(answer.succeeded.then_some(revision))
}

/// Keeps the lease alive. One that ran out while nobody else led is replaced; otherwise this store has been deposed.
async fn keep(shared: Arc<Shared>, mut lease: i64) {
    let pause = shared.lease / 3;
    loop {
        tokio::select! {
            () = shared.closed.cancelled() => return,
            () = sleep(pause) => {}
        }
        // One who was deposed and leads again has another lease, and somebody else who keeps it.
        let Some(leading) = shared.leading().filter(|leading| leading.lease == lease) else { return };
        match renew(&shared, leading.lease).await {
            Ok(0) => match take_again(&shared, leading).await {
                Ok(Some(new)) => {
                    lease = new;
                    tracing::warn!("The lease of the lead had run out; nobody else took it.");
                }
                Ok(None) => return shared.deposed(),
                Err(error) => tracing::debug!(%error, "The lead could not be taken again yet."),
            },
            Ok(_) => shared.well(),
            Err(status) => {
                let _ = shared.unavailable(&status); // Said by `health`; the next round asks another endpoint.
            }
        }
    }
}

async fn take_again(shared: &Shared, leading: Leading) -> Result<Option<i64>, StoreError> {
    let standing = look(shared).await?;
    if standing.epoch != leading.fence {
        return Ok(None);
    }
    if standing.leader != 0 {
        return Err(StoreError::Unavailable { reason: "the old lease still stands".into() });
    }
    let lease = grant(shared).await?;
    if take(shared, &standing, lease, None).await?.is_none() {
        return Err(StoreError::Unavailable { reason: "somebody else was faster".into() });
    }
    shared.set_leading(Some(Leading { lease, ..leading }));
    Ok(Some(lease))
}

/// Gives the lead to whoever waits for it.
pub(super) async fn resign(shared: &Shared) {
    let leading = shared.leading.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(leading) = leading {
        let question = LeaseRevokeRequest { id: leading.lease };
        if let Err(status) = shared.client.read::<_, Nothing>(REVOKE, question).await {
            tracing::debug!(%status, "The lease could not be given back; it runs out by itself.");
        }
    }
}

async fn grant(shared: &Shared) -> Result<i64, StoreError> {
    let ttl = i64::try_from(shared.lease.as_secs().max(1)).unwrap_or(i64::MAX);
    let answer: LeaseGrantResponse = shared
        .client
        .read(GRANT, LeaseGrantRequest { ttl })
        .await
        .map_err(|status| shared.unavailable(&status))?;
    if answer.error.is_empty() {
        Ok(answer.id)
    } else {
        Err(StoreError::Unavailable { reason: format!("etcd gives no lease: {}", answer.error) })
    }
}

/// The seconds the lease has left after being renewed; 0 when etcd does not know it.
async fn renew(shared: &Shared, id: i64) -> Result<i64, Status> {
    let work = async {
        let question = Questions::one(LeaseKeepAliveRequest { id });
        let mut answers: Streaming<LeaseKeepAliveResponse> =
            shared.client.stream(KEEP_ALIVE, question).await?;
        answers.message().await
    };
    // A longer wait than the lease would be of no use, however patient requests are.
    let Ok(answer) = timeout(shared.lease, work).await else {
        shared.client.leave();
        return Err(Status::deadline_exceeded("the lease was not renewed in time"));
    };
    Ok(answer?.map_or(0, |answer| answer.ttl))
}

impl Shared {
    pub(super) fn leading(&self) -> Option<Leading> {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_leading(&self, leading: Option<Leading>) {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = leading;
    }

    /// Another process leads now. What was begun while this one led is refused by its fence; from now on this store is
    /// that of one who follows, and may wait for its turn again.
    pub(super) fn deposed(&self) {
        tracing::debug!("Another process leads this etcd now.");
        self.set_leading(None);
    }
}
