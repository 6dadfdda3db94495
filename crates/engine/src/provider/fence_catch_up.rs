//! Rising above what a server has seen.
//!
//! A store that was restored, or that was lost and whose ownership was recovered, counts epochs and generations from
//! further back than the server's fence: everything it writes would be late for ever.

use netstead_model::Name;
use tokio::time::timeout;

use super::{Worker, zone_cache::PATIENCE};
use crate::history::{EngineEvent, EngineEventKind};

impl Worker {
    /// The epoch in fences: the store's, and what a server was ahead of it.
    pub(super) fn fence_epoch(&self) -> u64 {
        self.shared.lead.epoch.saturating_add(self.guard.lift)
    }

    /// A write came late although we lead: goes on above the fence that the server has. True if that was the cause.
    ///
    /// Only before the zone has taken anything of this leader: later, whoever is ahead of us is another process with
    /// our owner id, and newer wins.
    pub(super) async fn catch_up_with_fence(&mut self, zone: &Name, generation: u64) -> bool {
        if self.written.contains(zone) || self.check_leadership(zone).await.is_err() {
            return false;
        }
        let asked = self.setup.provider.fence(zone, self.settings.owner.as_str());
        let Ok(Ok(Some((epoch, newest)))) = timeout(PATIENCE, asked).await else { return false };
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
        tracing::warn!(%provider, %zone, epoch, generation = newest, "The server is ahead of the store; going on above it.");
        let text = format!(
            "{zone} on {provider} has seen epoch {epoch}, generation {newest}, and the store is behind that, \
             as after a restore: it goes on above"
        );
        self.shared
            .record_event(EngineEvent::new(EngineEventKind::Late, text).on(self.name()).in_zone(zone))
            .await;
        true
    }
}
