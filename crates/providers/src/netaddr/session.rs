//! [`Session`]: requests to the etcd of a keyspace, repeated where that is safe.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_wire::etcd::{
    EtcdClient, EtcdConnection, KV_TXN,
    messages::{Compare, RequestOp, ResponseOp, TxnRequest, TxnResponse},
};
use rand::Rng as _;
use tokio::time::sleep;

use super::{claims::Queue, error::NetaddrError, leases::Lease, mirror::Mirror, raw::RawAddress};

/// The pause before a request is repeated, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause after another writer was faster.
const LONGEST_STEP_BACK: Duration = Duration::from_millis(60);
/// How long a fixed address is kept for the plan that is about to take it.
const PLANNED: Duration = Duration::from_mins(15);

/// How a keyspace is used.
#[derive(Debug, Clone)]
pub struct NetaddrOptions {
    pub connection: EtcdConnection,
    /// How often a request that did nothing is repeated.
    pub retries: u32,
    /// How long one change may be tried while others write too.
    pub patience: Duration,
    /// Where creations come from, in words. With it, a creation that was cut off can be taken up by the same origin.
    pub origin: Option<String>,
    /// How long the mark of a creation that was cut off stays.
    pub mark_time: Duration,
    /// Keep a copy of the ranges that are claimed from, by watching them.
    pub mirror: bool,
}

impl NetaddrOptions {
    pub fn new(connection: EtcdConnection) -> Self {
        let (retries, patience, mark_time) = (3, Duration::from_mins(1), Duration::from_hours(1));
        Self { connection, retries, patience, origin: None, mark_time, mirror: false }
    }
}

/// One etcd, and what is known of its ranges.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: EtcdClient,
    pub(super) options: NetaddrOptions,
    /// Claims that wait, by the ranges that they may be from.
    pub(super) queues: Mutex<HashMap<Vec<String>, Arc<Queue>>>,
    pub(super) mirrors: Mutex<HashMap<String, Arc<Mirror>>>,
    /// The pointer of each range, as it was seen last.
    pointers: Mutex<HashMap<String, RawAddress>>,
    /// The lease of marks that tell creations of this process that were cut off.
    pending: Lease,
    /// The lease of fixed addresses that plans of this process are about to take.
    planned: Lease,
}

/// The outcome of a transaction.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) succeeded: bool,
    pub(super) revision: i64,
    pub(super) responses: Vec<ResponseOp>,
}

impl Session {
    pub(super) fn new(options: NetaddrOptions) -> Result<Self, NetaddrError> {
        let client = EtcdClient::new(&options.connection)
            .map_err(|error| NetaddrError::Invalid { reason: error.to_string() })?;
        Ok(Self {
            client,
            pending: Lease::new(options.mark_time),
            planned: Lease::new(PLANNED),
            options,
            queues: Mutex::default(),
            mirrors: Mutex::default(),
            pointers: Mutex::default(),
        })
    }

    /// Reads everything in `reads` at one revision.
    pub(super) async fn read(&self, reads: Vec<RequestOp>) -> Result<Written, NetaddrError> {
        let question = TxnRequest { success: reads, ..TxnRequest::default() };
        let mut tries = 0;
        loop {
            match self.client.read::<_, TxnResponse>(KV_TXN, question.clone()).await {
                Ok(answer) => return Ok(written(answer)),
                Err(status) => {
                    let error = NetaddrError::of_reading(self.client.url(), &status);
                    self.pause_or(error, &mut tries).await?;
                }
            }
        }
    }

    /// Does `success` if all of `compare` holds, else `failure`. Sent again only if it cannot have arrived.
    pub(super) async fn write(
        &self,
        compare: Vec<Compare>,
        success: Vec<RequestOp>,
        failure: Vec<RequestOp>,
    ) -> Result<Written, NetaddrError> {
        let question = TxnRequest { compare, success, failure };
        let mut tries = 0;
        loop {
            let at = self.client.current_endpoint();
            let answer = self.client.once_at::<_, TxnResponse>(at, KV_TXN, question.clone()).await;
            self.client.note(at, &answer);
            match answer {
                Ok(answer) => return Ok(written(answer)),
                Err(status) => {
                    let error = NetaddrError::of_writing(self.client.url(), &status);
                    if matches!(error, NetaddrError::LeaseEnded { .. }) {
                        self.pending.forget().await;
                        self.planned.forget().await;
                    }
                    self.pause_or(error, &mut tries).await?;
                }
            }
        }
    }

    /// Pauses if the request did nothing and may be sent again.
    async fn pause_or(&self, error: NetaddrError, tries: &mut u32) -> Result<(), NetaddrError> {
        if !matches!(error, NetaddrError::Unavailable { .. }) || *tries >= self.options.retries {
            return Err(error);
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << (*tries).min(5)).min(LONGEST_PAUSE);
        *tries += 1;
        let pause = pause.mul_f64(random_between(0.7, 1.3));
        sleep(pause).await;
        Ok(())
    }

    /// Steps back after another writer was faster: longer each time, and never as long as the others.
    pub(super) async fn step_back(round: u32) {
        let most = Duration::from_millis(2).saturating_mul(1 << round.min(6)).min(LONGEST_STEP_BACK);
        let pause = most.mul_f64(random_between(0.05, 1.0));
        sleep(pause).await;
    }

    /// When a change that begins now is given up.
    pub(super) fn deadline(&self) -> Duration {
        SystemClock.monotonic().saturating_add(self.options.patience)
    }

    pub(super) fn is_over(deadline: Duration) -> bool {
        SystemClock.monotonic() >= deadline
    }

    /// The error when others wrote all the time.
    pub(super) fn too_busy(&self) -> NetaddrError {
        let reason = format!("others changed the same addresses for {} s", self.options.patience.as_secs());
        NetaddrError::Unavailable { url: self.client.url().to_owned(), reason }
    }

    pub(super) fn pointer(&self, range: &str) -> Option<RawAddress> {
        locked(&self.pointers).get(range).cloned()
    }

    pub(super) fn note_pointer(&self, range: &str, pointer: &RawAddress) {
        locked(&self.pointers).insert(range.to_owned(), pointer.clone());
    }

    pub(super) fn forget_pointer(&self, range: &str) {
        locked(&self.pointers).remove(range);
    }

    /// The lease of marks of creations; `None` without an origin.
    pub(super) async fn pending_lease(&self) -> Option<i64> {
        self.options.origin.as_ref()?;
        self.pending.id(self).await
    }

    /// Whether a mark of a creation is of this process.
    pub(super) async fn is_own_mark(&self, lease: i64) -> bool {
        self.pending.has(lease).await
    }

    /// The lease of fixed addresses that are about to be taken.
    pub(super) async fn planned_lease(&self) -> Option<i64> {
        self.planned.id(self).await
    }

    /// Removes the marks of all creations of this process: their callers know what became of them.
    pub(super) async fn close(&self) {
        self.pending.revoke(self).await;
    }
}

fn random_between(low: f64, high: f64) -> f64 {
    rand::rng().random_range(low..high)
}

fn written(answer: TxnResponse) -> Written {
    let revision = answer.header.map_or(0, |header| header.revision);
    Written { succeeded: answer.succeeded, revision, responses: answer.responses }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
