//! Remembers values that a delayed write may bring back, on servers that cannot refuse a late write.
//!
//! 1. Leader A stores `www A 10.0.3.10` as its own, marked `pending`, and sends it. The request is delayed on its way.
//!    A dies, or loses the lead.
//! 2. B takes the lead. It finds the pending value in the store and remembers it as sent and not confirmed.
//! 3. The record is changed. B writes `www A 10.0.3.11` and no longer owns `10.0.3.10`.
//! 4. A's request arrives. The server cannot know that it is late and replaces the whole set: `www` is `10.0.3.10` again.
//!    B does not own this value. Without this module it would count as foreign and stay for ever.
//! 5. B reads the zone, finds a value that it remembers, and owns it again with `Origin::Late`. The next plan replaces it.
//!
//! B reads the zone in step 5 because the serial moved, because A reported the zone in the store (see `write`), or at the
//! latest when B has led for longer than a write may take (see `zone_cache`). The same steps happen with one node if its
//! request got no answer: then A and B are the same process.
//!
//! Two kinds of values are remembered:
//!
//! - *sent*: the request got no answer. Such a value is taken back wherever it is found.
//! - *removed*: the server confirmed the removal, or the plan disowned the value. It is taken back only in a zone that a
//!   former leader reported, because there an old request may have replaced a whole set.
//!
//! The values are in the store (`engine/lately/...`), because the sender may be gone when its write arrives. They are
//! forgotten after `PATIENCE`: no write takes longer, so an equal value that appears later is foreign.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Name, ParseError, RecordData, UnitOutcome};
use netstead_plan::{Origin, Owned, OwnedValue, Plan};
use netstead_store::Write;
use serde::{Deserialize, Serialize};

use super::DnsPass;
use crate::{
    EngineError,
    fenced_store::FencedStore,
    history::{EngineEvent, EngineEventKind},
    keys,
    provider_loop::{PATIENCE, Worker},
};

/// Values that were ours within the last `PATIENCE`, by name.
#[derive(Debug, Default)]
pub(super) struct RecentlyRemoved {
    values: BTreeMap<Name, Vec<FormerValue>>,
    /// Names whose stored values differ from `values`.
    dirty: BTreeSet<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FormerValue {
    data: RecordData,
    /// Engine time.
    at: u64,
    /// A request with this value got no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
}

impl RecentlyRemoved {
    /// Loads the stored values, and adds what an earlier leader may have sent: all values of each name that has a pending
    /// one, because a set is replaced as a whole.
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
        // These are stored already, as owned values.
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

    /// Forgets values older than `PATIENCE`: no write with them can arrive any more.
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

    /// The writes that bring the store up to date with `values`.
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

    /// Call once those writes are durable.
    pub(super) fn mark_persisted(&mut self) {
        self.dirty.clear();
    }
}

impl Worker<DnsPass> {
    /// Call before applying: remembers values the plan disowns without deleting them on the server.
    pub(super) fn remember_forgotten(&mut self, plan: &Plan) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.now().millis;
        self.state.recently_removed.forget_old(now);
        for (name, data) in &plan.forgotten {
            let sent = self.state.owned.get(name, data).is_some_and(|own| own.pending);
            self.state.recently_removed.remember(name, data, sent, now);
        }
    }

    /// Call after applying: remembers values the server removed, and values of requests without an answer.
    pub(super) fn remember_removed(&mut self, plan: &Plan, outcomes: &[UnitOutcome]) {
        if self.setup.provider.capabilities().fenced {
            return;
        }
        let now = self.shared.now().millis;
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            let name = &step.unit.name;
            match outcome {
                UnitOutcome::Applied => {
                    step.forgets
                        .iter()
                        .for_each(|data| self.state.recently_removed.remember(name, data, false, now));
                }
                UnitOutcome::Changed | UnitOutcome::Rejected { .. } | UnitOutcome::NotTried => {}
                UnitOutcome::Unknown => {
                    self.state.recently_removed.remember_sent(name, self.state.owned.of(name), now);
                }
            }
        }
    }

    /// Owns values again that a late write brought back, so that the next plan removes them. In the zones of `doubted`,
    /// which a former leader wrote to late, that is every remembered value; elsewhere only those that were sent without an
    /// answer. Returns whether there are any.
    pub(super) async fn reclaim_late_values(&mut self, doubted: &BTreeSet<Name>) -> bool {
        if self.state.recently_removed.values.values().flatten().all(|known| !known.sent)
            && doubted.is_empty()
        {
            return false;
        }
        let actual = Arc::clone(&self.state.zone_cache.actual);
        let mut zones = BTreeSet::new();
        for zone in &actual.zones {
            for set in zone.sets.iter().flatten() {
                for data in &set.values {
                    let suspect = |known: &FormerValue| known.sent || doubted.contains(&zone.name);
                    if !self.state.recently_removed.get(&set.name, data).is_some_and(suspect)
                        || self.state.owned.get(&set.name, data).is_some()
                    {
                        continue;
                    }
                    let value = OwnedValue {
                        data: data.clone(),
                        reasons: Vec::new(),
                        origin: Origin::Late,
                        pending: false,
                    };
                    Arc::make_mut(&mut self.state.owned).put(&set.name, value);
                    self.state.dirty.insert(set.name.clone());
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
