//! Records events of a provider: passes that begin to fail or work again, and parked changes.

use std::collections::HashSet;

use netstead_plan::{Guard, Plan};

use super::Worker;
use crate::history::{Change, EngineEvent, EngineEventKind};

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

    /// Sends the drift that the plan before did not have.
    pub(super) fn send_new_drift(&self, plan: &Plan) {
        let before = self.snapshot.read().plan.clone();
        let known: HashSet<_> =
            before.iter().flat_map(|plan| &plan.drift).map(|one| (one.kind, &one.name, &one.value)).collect();
        let at = self.shared.clock.wall();
        let news = plan.drift.iter().filter(|one| !known.contains(&(one.kind, &one.name, &one.value)));
        self.shared.history.send(news.map(|one| Change::of_drift(self.name(), one, at)).collect());
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
