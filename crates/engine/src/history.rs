//! Events, and applied plans with the outcome of each change, as they are kept in the store.

mod changes;
mod plans;

use std::{collections::VecDeque, fmt};

use jiff::Timestamp;
use netstead_model::{Ident, Name};
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, broadcast};

pub(crate) use self::{
    changes::list,
    plans::{Stored, applied_plan, plan_writes, plans, readable_plans, steps_since, surplus},
};
pub use self::{
    changes::{Change, ChangePage, ChangePosition, ChangeQuery, LiveChanges},
    plans::{Applied, AppliedStep},
};
use crate::{EngineError, fenced_store::FencedStore, keys, provider_loop::LoopStep};

/// So many events are kept.
const MOST_EVENTS: u64 = 10_000;
/// So many surplus ones go with each new one.
const TRIM: u64 = 50;

/// So many moments a reader of live changes may be behind.
const LIVE: usize = 1024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineEvent {
    pub at: Timestamp,
    pub what: EngineEventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Ident>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Ident>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The plan that was carried out, and in how many parts it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<StoredPlanRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A sentence.
    pub text: String,
}

/// Where the changes of a plan are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPlanRef {
    pub generation: u64,
    pub parts: u32,
    /// It is the plan of an IPAM provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipam: bool,
}

impl EngineEvent {
    /// The time is filled in when it is told.
    pub(crate) fn new(what: EngineEventKind, text: impl Into<String>) -> Self {
        let (at, text) = (Timestamp::UNIX_EPOCH, text.into());
        let (provider, source, zone, name) = (None, None, None, None);
        Self { at, what, provider, source, zone, name, plan: None, by: None, text }
    }

    pub(crate) fn on(mut self, provider: &Ident) -> Self {
        self.provider = Some(provider.clone());
        self
    }

    pub(crate) fn of_source(mut self, source: &Ident) -> Self {
        self.source = Some(source.clone());
        self
    }

    pub(crate) fn in_zone(mut self, zone: &Name) -> Self {
        self.zone = Some(zone.clone());
        self
    }

    pub(crate) fn at_name(mut self, name: &Name) -> Self {
        self.name = Some(name.clone());
        self
    }

    pub(crate) fn by(mut self, by: &str) -> Self {
        self.by = Some(by.to_owned());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineEventKind {
    Applied,
    Approved,
    Paused,
    Resumed,
    /// A write came after a newer one: the server refused it, or it is taken back.
    Late,
    /// It is not known whether a zone took a write; it is read before anything else is planned there.
    Doubtful,
    /// A guard holds changes back.
    Parked,
    /// Nothing is held back any more, without anybody having agreed to it.
    Unparked,
    /// A source lost so much at once that it must say so again, and is believed again.
    Suspect,
    Believed,
    /// A provider or a source does not do what it should, and does again.
    Failing,
    Working,
    Set,
    Deleted,
    Adopted,
    Recovered,
    Cleaned,
    #[serde(rename = "rolled-back")]
    RolledBack,
}

impl EngineEventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Approved => "approved",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Late => "late",
            Self::Doubtful => "doubtful",
            Self::Parked => "parked",
            Self::Unparked => "unparked",
            Self::Suspect => "suspect",
            Self::Believed => "believed",
            Self::Failing => "failing",
            Self::Working => "working",
            Self::Set => "set",
            Self::Deleted => "deleted",
            Self::Adopted => "adopted",
            Self::Recovered => "recovered",
            Self::Cleaned => "cleaned",
            Self::RolledBack => "rolled-back",
        }
    }
}

impl fmt::Display for EngineEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The list of events, as the store has it.
#[derive(Debug)]
pub(crate) struct History {
    fenced_store: FencedStore,
    events: Mutex<Events>,
    /// Everything as it happens. It is sent once, to those who listen then.
    live: broadcast::Sender<LiveChanges>,
}

#[derive(Debug)]
struct Events {
    next: u64,
    oldest: u64,
    /// With their numbers, which only grow.
    kept: VecDeque<(u64, EngineEvent)>,
}

impl History {
    pub(crate) async fn load(fenced_store: FencedStore) -> Result<Self, EngineError> {
        let stored = fenced_store.all_readable::<EngineEvent>(keys::HISTORY).await?;
        let numbered =
            |(key, event): (String, EngineEvent)| Some((u64::from_str_radix(&key, 16).ok()?, event));
        let kept: VecDeque<(u64, EngineEvent)> = stored.into_iter().filter_map(numbered).collect();
        let oldest = kept.front().map(|(number, _)| *number).unwrap_or_default();
        let next = kept.back().map_or(0, |(number, _)| number + 1);
        let (live, _) = broadcast::channel(LIVE);
        Ok(Self { fenced_store, events: Mutex::new(Events { next, oldest, kept }), live })
    }

    /// Receives everything that happens from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<LiveChanges> {
        self.live.subscribe()
    }

    /// Sends changes to those who listen now.
    pub(crate) fn send(&self, changes: Vec<Change>) {
        if !changes.is_empty() {
            // An error only says that no stream is open.
            let _ = self.live.send(changes.into());
        }
    }

    /// Stores an event and sends it. It is for people, so a store that does not take it stops nothing.
    pub(crate) async fn add(&self, event: EngineEvent) {
        let number = self.store(event.clone()).await;
        self.send(vec![Change::of_event(number, &event)]);
    }

    /// Stores the event of a plan that was carried out, and sends its changes name by name to those who listen now.
    pub(crate) async fn add_applied<S: LoopStep>(
        &self,
        event: EngineEvent,
        plan: impl FnOnce() -> Applied<S>,
    ) {
        let event = self.store(event).await;
        if self.live.receiver_count() == 0 {
            return;
        }
        let plan = plan();
        let place = |step| ChangePosition { event, part: 0, step: u32::try_from(step).unwrap_or(u32::MAX) };
        let steps = plan.steps.iter().enumerate();
        self.send(steps.map(|(number, step)| Change::of_step(place(number), &plan, step)).collect());
    }

    /// Stores an event; returns its number.
    async fn store(&self, event: EngineEvent) -> u64 {
        let mut events = self.events.lock().await;
        let key = |number: u64| format!("{}{number:016x}", keys::HISTORY).into_bytes();
        let mut writes = vec![Write::Put(key(events.next), keys::encode(&event))];
        let surplus = (events.next + 1).saturating_sub(MOST_EVENTS);
        let oldest = events.oldest.max(surplus).min(events.oldest + TRIM);
        writes.extend((events.oldest..oldest).map(|number| Write::Delete(key(number))));
        if let Err(error) = self.fenced_store.put(writes).await {
            tracing::warn!(%error, text = event.text, "An event could not be stored.");
            return events.next;
        }
        let number = events.next;
        (events.next, events.oldest) = (number + 1, oldest);
        events.kept.push_back((number, event));
        while events.kept.front().is_some_and(|(number, _)| *number < oldest) {
            events.kept.pop_front();
        }
        number
    }

    /// The newest first.
    pub(crate) async fn newest(&self, most: usize) -> Vec<EngineEvent> {
        let events = self.events.lock().await;
        events.kept.iter().rev().take(most).map(|(_, event)| event.clone()).collect()
    }

    /// Some events with their numbers, from number `from` on, towards the older ones or the newer ones.
    async fn events_from(
        &self,
        from: Option<u64>,
        newest_first: bool,
        most: usize,
    ) -> Vec<(u64, EngineEvent)> {
        let events = self.events.lock().await;
        let kept = &events.kept;
        if newest_first {
            let end = from.map_or(kept.len(), |from| kept.partition_point(|(number, _)| *number <= from));
            return kept.range(..end).rev().take(most).cloned().collect();
        }
        let begin = from.map_or(0, |from| kept.partition_point(|(number, _)| *number < from));
        kept.range(begin..).take(most).cloned().collect()
    }

    /// The number of the oldest event that is kept.
    pub(crate) async fn oldest(&self) -> u64 {
        self.events.lock().await.oldest
    }
}
