//! Records events of a provider: passes that begin to fail or work again, and parked changes.

use netstead_plan::Guard;

use super::{LoopPlan, Pass, Worker};
use crate::history::{EngineEvent, EngineEventKind};

impl<P: Pass> Worker<P> {
    /// Records that a guard began to hold changes back, or no longer does.
    pub(super) async fn record_parked_event(&self, plan: &P::Plan, before: &Guard) {
        let name = self.name();
        let event = match plan.parked() {
            Some(parked) if before.offers.iter().all(|offer| offer.hash != parked.hash) => {
                let mut guards = parked.guards;
                guards.sort_unstable();
                guards.dedup();
                let changes = parked.changes;
                let text = format!("{changes} parked under {}: {}", parked.hash, guards.join("; "));
                let event = EngineEvent::new(EngineEventKind::Parked, text).on(name);
                match parked.zone {
                    Some(zone) => event.in_zone(zone),
                    None => event,
                }
            }
            None if before.offers.iter().any(|offer| offer.current) => {
                EngineEvent::new(EngineEventKind::Unparked, format!("nothing is parked on {name} any more"))
                    .on(name)
            }
            _ => return,
        };
        self.shared.record_event(event).await;
    }

    /// Records that passes begin to fail, or no longer do.
    pub(super) async fn record_failing_event(&self, before: Option<&String>, error: Option<&String>) {
        let name = self.name();
        let event = match (before, error) {
            (None, Some(error)) => {
                EngineEvent::new(EngineEventKind::Failing, format!("{name} fails: {error}"))
            }
            (Some(_), None) => EngineEvent::new(EngineEventKind::Working, format!("{name} works again")),
            _ => return,
        };
        self.shared.record_event(event.on(name)).await;
    }
}
