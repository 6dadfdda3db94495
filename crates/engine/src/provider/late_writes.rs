//! Values that may come back by a write that arrives late.
//!
//! A server that cannot refuse a late write may still get one that was sent before what it holds now: by a leader before
//! us, or by us, when no answer came. What such a write brings back was ours when it was sent, and is not somebody
//! else's. The store remembers it, because whoever sent it may be gone when it arrives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Name, ParseError, RecordData, UnitOutcome};
use netstead_plan::{Origin, Owned, OwnedValue, Plan};
use netstead_store::Write;
use serde::{Deserialize, Serialize};

use super::{Worker, write::PATIENCE};
use crate::{
    EngineError,
    fenced_store::FencedStore,
    history::{EngineEvent, EngineEventKind},
    keys,
};

/// Values that were ours a moment ago.
#[derive(Debug, Default)]
pub(super) struct RecentlyRemoved {
    values: BTreeMap<Name, Vec<FormerValue>>,
    /// Names of which the store knows something else.
    dirty: BTreeSet<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FormerValue {
    data: RecordData,
    /// Engine time.
    at: u64,
    /// It was sent, and not known to have arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
}

impl RecentlyRemoved {
    /// What the store remembers, and what a leader before us may have sent: whatever stands at a name with a value that
    /// the server may not know yet, because sets are replaced as a whole.
    pub(super) async fn load(
        fenced_store: &FencedStore,
        provider: &Ident,
        owned: &Owned,
        now: u64,
    ) -> Result<Self, EngineError> {
        let prefix = format!("{}{provider}/", keys::LATELY);
        let mut lately = Self::default();
        for (name, values) in fenced_store.all::<Vec<FormerValue>>(&prefix).await? {
            let damaged = |error: ParseError| EngineError::Damaged {
                key: format!("{prefix}{name}"),
                reason: error.to_string(),
            };
            lately.values.insert(name.parse().map_err(damaged)?, values);
        }
        let unknown = owned.iter().filter(|(_, values)| values.iter().any(|value| value.pending));
        unknown.for_each(|(name, values)| lately.remember_sent(name, values, now));
        // Those are in the store as what is ours.
        lately.dirty.clear();
        Ok(lately)
    }

    fn remember_sent(&mut self, name: &Name, values: &[OwnedValue], at: u64) {
        for value in values {
            self.remember(name, &value.data, true, at);
        }
    }

    fn remember(&mut self, name: &Name, data: &RecordData, sent: bool, at: u64) {
        let values = self.values.entry(name.clone()).or_default();
        match values.iter_mut().find(|known| known.data == *data) {
            Some(known) => (known.at, known.sent) = (at, known.sent || sent),
            None => values.push(FormerValue { data: data.clone(), at, sent }),
        }
        self.dirty.insert(name.clone());
    }

    /// After a while nothing arrives any more.
    fn forget_old(&mut self, now: u64) {
        let patience = u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX);
        let dirty = &mut self.dirty;
        self.values.retain(|name, values| {
            let before = values.len();
            values.retain(|known| now.saturating_sub(known.at) < patience);
            if values.len() < before {
                dirty.insert(name.clone());
            }
            !values.is_empty()
        });
    }

    fn get(&self, name: &Name, data: &RecordData) -> Option<&FormerValue> {
        self.values.get(name)?.iter().find(|known| known.data == *data)
    }

    /// What the store does not know yet.
    pub(super) fn writes(&self, provider: &Ident) -> Vec<Write> {
        let write = |name: &Name| {
            let key = keys::lately(provider, name);
            match self.values.get(name) {
                Some(values) => Write::Put(key, keys::encode(values)),
                None => Write::Delete(key),
            }
        };
        self.dirty.iter().map(write).collect()
    }

    /// Now it does.
    pub(super) fn mark_persisted(&mut self) {
        self.dirty.clear();
    }
}

impl Worker {
    /// Before a plan is carried out: what it forgets without a word to the server.
    pub(super) fn remember_forgotten(&mut self, plan: &Plan) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.now().millis;
        self.recently_removed.forget_old(now);
        for (name, data) in &plan.forgotten {
            let sent = self.owned.get(name, data).is_some_and(|own| own.pending);
            self.recently_removed.remember(name, data, sent, now);
        }
    }

    /// After it was: what the server removed, and what it may still get.
    pub(super) fn remember_removed(&mut self, plan: &Plan, outcomes: &[Option<UnitOutcome>]) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.now().millis;
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            let name = &step.unit.name;
            match outcome {
                Some(UnitOutcome::Applied) => {
                    step.forgets
                        .iter()
                        .for_each(|data| self.recently_removed.remember(name, data, false, now));
                }
                Some(UnitOutcome::Changed | UnitOutcome::Rejected { .. }) => {}
                None => self.recently_removed.remember_sent(name, self.owned.of(name), now),
            }
        }
    }

    /// Takes back what a late write brought: values that were sent without an answer, and in zones where somebody is
    /// known to have written late, all that were ours a moment ago. They go with the next plan. Whether there are any.
    pub(super) async fn reclaim_late_values(&mut self, doubted: &BTreeSet<Name>) -> bool {
        if self.recently_removed.values.values().flatten().all(|known| !known.sent) && doubted.is_empty() {
            return false;
        }
        let actual = Arc::clone(&self.zone_cache.actual);
        let mut zones = BTreeSet::new();
        for zone in &actual.zones {
            for set in zone.sets.iter().flatten() {
                for data in &set.values {
                    let suspect = |known: &FormerValue| known.sent || doubted.contains(&zone.name);
                    if !self.recently_removed.get(&set.name, data).is_some_and(suspect)
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
            self.shared
                .record_event(EngineEvent::new(EngineEventKind::Late, text).on(self.name()).in_zone(zone))
                .await;
        }
        !zones.is_empty()
    }
}
