//! Values that may come back by a write that arrives late.
//!
//! A server that cannot refuse a late write may still get one that was sent before what it holds now: by a leader before
//! us, or by us, when no answer came. What such a write brings back was ours when it was sent, and is not somebody
//! else's.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use netstead_model::{Name, RecordData, UnitOutcome};
use netstead_plan::{Origin, Owned, OwnedValue, Plan};

use super::{Worker, write::PATIENCE};
use crate::history::Occasion;

/// Values that were ours a moment ago.
#[derive(Debug, Default)]
pub(super) struct Lately(BTreeMap<(Name, RecordData), Forgotten>);

#[derive(Debug, Clone, Copy)]
struct Forgotten {
    /// Monotonic time.
    at: Duration,
    /// It was sent, and not known to have arrived.
    sent: bool,
}

impl Lately {
    /// What a leader before us may have sent: whatever stands at a name with a value that the server may not know yet,
    /// because sets are replaced as a whole.
    pub(super) fn of(owned: &Owned, at: Duration) -> Self {
        let mut lately = Self::default();
        let unknown = owned.iter().filter(|(_, values)| values.iter().any(|value| value.pending));
        unknown.for_each(|(name, values)| lately.sent(name, values, at));
        lately
    }

    fn sent(&mut self, name: &Name, values: &[OwnedValue], at: Duration) {
        for value in values {
            self.remember(name, &value.data, true, at);
        }
    }

    fn remember(&mut self, name: &Name, data: &RecordData, sent: bool, at: Duration) {
        let slot = self.0.entry((name.clone(), data.clone())).or_insert(Forgotten { at, sent });
        (slot.at, slot.sent) = (at, slot.sent || sent);
    }
}

impl Worker {
    /// Before a plan is carried out: what it forgets without a word to the server.
    pub(super) fn remember_forgotten(&mut self, plan: &Plan) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.clock.monotonic();
        self.lately.0.retain(|_, forgotten| now.saturating_sub(forgotten.at) < PATIENCE);
        for (name, data) in &plan.forgotten {
            let sent = self.owned.get(name, data).is_some_and(|own| own.pending);
            self.lately.remember(name, data, sent, now);
        }
    }

    /// After it was: what the server removed, and what it may still get.
    pub(super) fn remember_removed(&mut self, plan: &Plan, outcomes: &[Option<UnitOutcome>]) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.clock.monotonic();
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            let name = &step.unit.name;
            match outcome {
                Some(UnitOutcome::Applied) => {
                    step.forgets.iter().for_each(|data| self.lately.remember(name, data, false, now));
                }
                Some(UnitOutcome::Changed | UnitOutcome::Rejected { .. }) => {}
                None => self.lately.sent(name, self.owned.of(name), now),
            }
        }
    }

    /// Takes back what a late write brought: values that were sent without an answer, and in zones where somebody is
    /// known to have written late, all that were ours a moment ago. They go with the next plan. Whether there are any.
    pub(super) async fn take_back(&mut self, doubted: &BTreeSet<Name>) -> bool {
        if self.lately.0.values().all(|forgotten| !forgotten.sent) && doubted.is_empty() {
            return false;
        }
        let actual = Arc::clone(&self.seen.actual);
        let mut zones = BTreeSet::new();
        for zone in &actual.zones {
            for set in zone.sets.iter().flatten() {
                for data in &set.values {
                    let place = (set.name.clone(), data.clone());
                    let suspect = |forgotten: &Forgotten| forgotten.sent || doubted.contains(&zone.name);
                    if !self.lately.0.get(&place).is_some_and(suspect)
                        || self.owned.get(&set.name, data).is_some()
                    {
                        continue;
                    }
                    let value = OwnedValue {
                        data: data.clone(),
                        reasons: Vec::new(),
                        origin: Origin::Late,
                        pending: false,
                    };
                    Arc::make_mut(&mut self.owned).put(&set.name, value);
                    self.dirty.insert(set.name.clone());
                    zones.insert(zone.name.clone());
                }
            }
        }
        for zone in zones.difference(doubted) {
            tracing::warn!(provider = %self.name(), %zone, "A write arrived late; it is taken back.");
            let text = format!("{zone} got a write that arrived late; it is taken back");
            self.shared.tell(Occasion::Late, Some(self.name()), None, text).await;
        }
        !zones.is_empty()
    }
}
