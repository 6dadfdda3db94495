//! Judges by its lease whether the leader is alive, before the lease runs out.
//!
//! etcd ends leases late: it looks twice a second, and after each election among its members it gives every lease its full
//! time again and more. But a live leader renews four times in the lifetime of its lease. So less than half of the time left,
//! or a full lease that only an election can have given, means that no renewal came. If that is seen four times in a row, the
//! leader counts as dead. Being wrong costs a change of leader and no data, because of the epoch.

use std::time::Duration;

use netstead_wire::etcd::messages::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use tokio::time::timeout;

use super::EtcdShared;

const TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";

/// How often in a row a lease must be found not renewed. With the pauses between looks that takes more than half a second,
/// in which a live leader tries to renew at least once.
const ENOUGH: u32 = 4;
/// A look that takes longer does not count.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often in a row the leader's lease was found not renewed.
#[derive(Debug, Default)]
pub(super) struct FailureDetector {
    holder: Option<i64>,
    times: u32,
}

impl FailureDetector {
    /// Looks at the leader's lease once more. Returns whether the leader counts as dead.
    pub(super) async fn suspects(&mut self, shared: &EtcdShared, holder: Option<i64>) -> bool {
        let Some(id) = holder else {
            *self = Self::default();
            return false;
        };
        let look = shared.client.read_urgently(TIME_TO_LIVE, LeaseTimeToLiveRequest { id });
        // Without an answer nothing is known: a live leader could not have renewed either.
        let answer: Option<LeaseTimeToLiveResponse> = timeout(PATIENCE, look).await.ok().and_then(Result::ok);
        let silent = answer.is_some_and(is_silent);
        self.times = if silent && self.holder == holder { self.times + 1 } else { u32::from(silent) };
        self.holder = holder;
        self.times >= ENOUGH
    }
}

/// Whether the last renewal was long ago: less than half is left, or as much as only an election in etcd gives.
fn is_silent(lease: LeaseTimeToLiveResponse) -> bool {
    let LeaseTimeToLiveResponse { ttl, granted } = lease;
    ttl < 0 || (granted > 0 && (ttl >= granted || ttl.saturating_mul(2) < granted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_renews_in_time_is_never_doubted() {
        let silent = |ttl, granted| is_silent(LeaseTimeToLiveResponse { ttl, granted });
        for granted in [2_i64, 3, 5, 8, 60] {
            // In milliseconds, rounded down to seconds as etcd does: just renewed, and about to be.
            let (just, due) = ((granted * 1000 - 1) / 1000, granted * 750 / 1000);
            assert!((due..=just).all(|ttl| !silent(ttl, granted)), "{granted}");
            assert!(silent(granted, granted) && silent(0, granted) && silent(-1, granted));
        }
        assert!(silent(-1, 0), "it is gone");
        assert!(!silent(0, 0), "a server that says nothing");
    }
}
