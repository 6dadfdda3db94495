//! Moves this leader's fence above the fence that a server has seen.
//!
//! A server that can refuse late writes keeps a fence: the epoch and generation of the newest write it took. After a
//! restored backup, or a lost store whose ownership was recovered, the store counts from further back:
//!
//! 1. The server took a write with epoch 41, generation 700.
//! 2. The store is restored from an older backup. It is now at epoch 3, generation 20.
//! 3. The leader writes with (3, 21). The server refuses the write as late, and would refuse every later one too.
//! 4. The leader asks the store whether it still leads, then asks the server for its fence: (41, 700).
//! 5. It stores a `lift` of 39, so that its fences use epoch 3 + 39 = 42, and continues the generations from 700.
//! 6. The next pass follows at once and writes with (42, 701). The lift is stored: the next leader uses 4 + 39 = 43.
//!
//! Step 4 is skipped once the zone has taken a write of this leader. Then the process that is ahead is another one with the
//! same owner id, and the newer one wins: two processes that lift themselves above each other would never stop.

use netstead_model::Name;
use tokio::time::timeout;

use super::{DnsPass, zone_cache::READ_PATIENCE};
use crate::{
    history::{EngineEvent, EngineEventKind},
    provider_loop::Worker,
};

impl Worker<DnsPass> {
    /// The epoch used in fences: that of the store plus the stored lift.
    pub(super) fn fence_epoch(&self) -> u64 {
        self.shared.lead.epoch.saturating_add(self.guard.lift)
    }

    /// Call after a write was refused as late. Returns true if the store was behind the server's fence and was lifted above
    /// it; false if this node no longer leads, or another process with the same owner id is ahead.
    pub(super) async fn catch_up_with_fence(&mut self, zone: &Name, generation: u64) -> bool {
        if self.state.written.contains(zone) || self.check_leadership(zone).await.is_err() {
            return false;
        }
        let asked = self.setup.provider.fence(zone, self.state.settings.owner.as_str());
        let Ok(Ok(Some((epoch, newest)))) = timeout(READ_PATIENCE, asked).await else { return false };
        if (epoch, newest) <= (self.fence_epoch(), generation) {
            return false;
        }
        if epoch > self.fence_epoch() {
            self.guard.lift += epoch + 1 - self.fence_epoch();
        }
        // A number people know a plan by is not used twice.
        self.guard.generation = self.guard.generation.max(newest);
        self.guard_dirty = true;
        let provider = self.name();
        // Expected after a restore or `recover`, and mended by the next pass: no alarm.
        tracing::info!(%provider, %zone, epoch, generation = newest, "The store was behind the server's fence; the next write continues above it.");
        let text = format!(
            "the store was behind {zone} on {provider} (epoch {epoch}, generation {newest}), \
             as after a restore: the numbers continue above that"
        );
        self.shared
            .record_event(EngineEvent::new(EngineEventKind::Recovered, text).on(self.name()).in_zone(zone))
            .await;
        true
    }
}
