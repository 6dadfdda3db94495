//! Records events of a provider: passes that begin to fail or work again, and parked changes.

use netstead_plan::{Guard, Plan};

use super::Worker;
use crate::history::{EngineEvent, EngineEventKind};

impl Worker {
    /// What a guard began to hold back, or no longer does.
    pub(super) async fn record_parked_event(&self, plan: &Plan, before: &Guard) {
        let name = self.name();
        let event = match &plan.parked {
            Some(parked) if before.offers.iter().all(|offer| offer.hash != parked.hash) => {
                let mut guards: Vec<&str> = parked.changes.iter().map(|change| &*change.guard).collect();
                guards.sort_unstable();
                guards.dedup();
                let changes = parked.changes.len();
                let text = format!("{changes} parked under {}: {}", parked.hash, guards.join("; "));
                let event = EngineEvent::new(EngineEventKind::Parked, text).on(name);
                let mut zones = parked.changes.iter().map(|change| &change.zone);
                let first = zones.next();
                match first.filter(|first| zones.all(|zone| zone == *first)) {
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

    /// That passes begin to fail, or no longer do.
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
