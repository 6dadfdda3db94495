//! [`Lease`]: a lease of keys that a process leaves behind for some time, granted anew before it ends.
//!
//! A key stays as long as the lease that it was written with, so earlier leases are not revoked before the process ends.

use std::time::Duration;

use netstead_model::{Clock as _, SystemClock};
use netstead_wire::etcd::{
    LEASE_GRANT,
    messages::{LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, Nothing},
};
use tokio::sync::Mutex;
use tonic::{Code, Status};

use super::session::Session;

const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";

/// A lease that is granted when it is needed first, and anew after half of its time.
#[derive(Debug)]
pub(super) struct Lease {
    time: Duration,
    granted: Mutex<Vec<Granted>>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    id: i64,
    at: Duration,
    /// etcd does not know it any more.
    ended: bool,
}

impl Lease {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, granted: Mutex::default() }
    }

    /// A lease with at least half of its time left. A user without the right to leases works without them.
    pub(super) async fn id(&self, session: &Session) -> Option<i64> {
        let mut granted = self.granted.lock().await;
        let now = SystemClock.monotonic();
        let newest = granted.last().filter(|last| !last.ended && now < last.at.saturating_add(self.time / 2));
        if let Some(newest) = newest {
            return Some(newest.id);
        }
        let id = self.grant(session).await.ok()?;
        granted.push(Granted { id, at: now, ended: false });
        Some(id)
    }

    async fn grant(&self, session: &Session) -> Result<i64, Status> {
        let ttl = i64::try_from(self.time.as_secs()).unwrap_or(i64::MAX);
        let answer: LeaseGrantResponse = session.client.read(LEASE_GRANT, LeaseGrantRequest { ttl }).await?;
        if answer.error.is_empty() {
            Ok(answer.id)
        } else {
            Err(Status::new(Code::Unavailable, answer.error))
        }
    }

    /// Whether this process was granted it.
    pub(super) async fn has(&self, id: i64) -> bool {
        self.granted.lock().await.iter().any(|granted| granted.id == id)
    }

    /// etcd has forgotten the newest one: the next key needs another.
    pub(super) async fn forget(&self) {
        if let Some(newest) = self.granted.lock().await.last_mut() {
            newest.ended = true;
        }
    }

    /// Ends all of them, with the keys that they have.
    pub(super) async fn revoke(&self, session: &Session) {
        for Granted { id, .. } in std::mem::take(&mut *self.granted.lock().await) {
            let _revoked: Result<Nothing, _> =
                session.client.read(LEASE_REVOKE, LeaseRevokeRequest { id }).await;
        }
    }
}
