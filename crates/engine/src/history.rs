//! What happened: the last plans of each provider that were carried out, and a list of events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use netstead_model::{Ident, Name, UnitOutcome};
use netstead_plan::{Digest, Plan, Step};
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{EngineError, keys, shelf::Shelf};

/// So many plans of a provider are kept.
pub(crate) const MOST_PLANS: usize = 10;
/// So many events are kept.
const MOST_EVENTS: u64 = 1000;
/// Bytes of steps in one stored part of a plan.
const PART: usize = 256 << 10;

/// A plan that was carried out. A large one is stored in several parts, each with some of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub provider: Ident,
    pub generation: u64,
    pub hash: Digest,
    pub at: Timestamp,
    pub steps: Vec<AppliedStep>,
}

/// One name's changes and what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedStep {
    #[serde(flatten)]
    pub step: Step,
    /// `applied`, `changed`, `unknown`, or the server's reason to reject it.
    pub outcome: String,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    pub at: Timestamp,
    pub what: Occasion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Ident>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A sentence.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    Applied,
    Approved,
    Paused,
    Resumed,
    /// The server refused a write because a newer one was there before.
    Late,
    Set,
    Deleted,
    Adopted,
    Recovered,
    Cleaned,
    #[serde(rename = "rolled-back")]
    RolledBack,
}

/// The list of events, as the store has it.
#[derive(Debug)]
pub(crate) struct History {
    shelf: Shelf,
    events: Mutex<Events>,
}

#[derive(Debug)]
struct Events {
    next: u64,
    oldest: u64,
    newest: VecDeque<Happened>,
}

impl History {
    pub(crate) async fn load(shelf: Shelf) -> Result<Self, EngineError> {
        let stored = shelf.all::<Happened>(keys::HISTORY).await?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let oldest = stored.first().and_then(|(key, _)| number(key)).unwrap_or_default();
        let next = stored.last().and_then(|(key, _)| number(key)).map_or(0, |last| last + 1);
        let newest = stored.into_iter().map(|(_, event)| event).collect();
        Ok(Self { shelf, events: Mutex::new(Events { next, oldest, newest }) })
    }

    /// Adds an event. It is for people, so a store that does not take it stops nothing.
    pub(crate) async fn add(&self, event: Happened) {
        let mut events = self.events.lock().await;
        let key = |number: u64| format!("{}{number:016x}", keys::HISTORY).into_bytes();
        let mut writes = vec![Write::Put(key(events.next), keys::encode(&event))];
        let oldest = events.oldest.max((events.next + 1).saturating_sub(MOST_EVENTS));
        writes.extend((events.oldest..oldest).take(50).map(|number| Write::Delete(key(number))));
        if let Err(error) = self.shelf.put(writes).await {
            tracing::warn!(%error, text = event.text, "An event could not be stored.");
            return;
        }
        events.next += 1;
        events.oldest = oldest.min(events.oldest + 50);
        events.newest.push_back(event);
        while events.newest.len() as u64 > MOST_EVENTS {
            events.newest.pop_front();
        }
    }

    /// The newest first.
    pub(crate) async fn newest(&self, most: usize) -> Vec<Happened> {
        self.events.lock().await.newest.iter().rev().take(most).cloned().collect()
    }
}

/// A plan that was carried out, as the store keeps it.
pub(crate) fn plan_writes(plan: &Plan, outcomes: &[Option<UnitOutcome>], at: Timestamp) -> Vec<Write> {
    let mut parts: Vec<Vec<AppliedStep>> = vec![Vec::new()];
    let mut bytes = 0;
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        let outcome = match outcome {
            Some(UnitOutcome::Applied) => "applied".into(),
            Some(UnitOutcome::Changed) => "changed".into(),
            Some(UnitOutcome::Rejected { reason }) => format!("rejected: {reason}"),
            None => "unknown".into(),
        };
        let step = AppliedStep { step: step.clone(), outcome };
        bytes += serde_json::to_vec(&step).map_or(0, |json| json.len());
        if bytes > PART {
            bytes = 0;
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(step);
        }
    }
    let Plan { provider, generation, hash, .. } = plan;
    let part = |(number, steps)| {
        let key = keys::plan(provider, *generation, number);
        let (provider, generation, hash) = (provider.clone(), *generation, *hash);
        Write::Put(key, keys::encode(&Applied { provider, generation, hash, at, steps }))
    };
    parts.into_iter().enumerate().map(part).collect()
}

/// The plans of a provider in the store, with the number of their parts.
pub(crate) async fn plans(shelf: &Shelf, provider: &Ident) -> Result<BTreeMap<u64, Applied>, EngineError> {
    let mut found: BTreeMap<u64, Applied> = BTreeMap::new();
    for (_, part) in shelf.all::<Applied>(&format!("{}{provider}/", keys::PLAN)).await? {
        match found.get_mut(&part.generation) {
            Some(plan) => plan.steps.extend(part.steps),
            None => {
                found.insert(part.generation, part);
            }
        }
    }
    Ok(found)
}

/// The generations that are one too many.
pub(crate) fn surplus(generations: &BTreeSet<u64>) -> Vec<u64> {
    generations.iter().rev().skip(MOST_PLANS).copied().collect()
}
