//! Writes into objects what became of their names: the status of DNSEndpoints and DNSRecords, and Events.
//!
//! ```text
//!  engine, on the leader ── hear_names ──► Reporting: the newest news of each object
//!                                              │ verdict.rs: published, pending, refused, invalid, no provider
//!                                 ┌────────────┴────────────┐
//!                                 ▼                         ▼
//!                    status.rs: condition `Ready`      event.rs: when the verdict changed
//! ```
//!
//! Writes are few. A status that the object has already is not written. An Event says that names were published only if they were
//! not before, and nothing is said of objects that were there before Netstead was.

mod event;
mod status;
mod verdict;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use netstead_model::{Key, WorkloadNames};
use netstead_wire::kubernetes::{KubernetesError, Resource};
use tokio::time::timeout;
use tracing::{debug, warn};

use self::verdict::Outcome;
pub(super) use self::{
    event::Event,
    status::{Condition, ObjectStatus},
};
use super::{
    object::{ObjectName, Stored},
    reflector::Shared,
};

/// How long a status waits after its object changed, so that the news are about the change.
const AFTER_CHANGE: Duration = Duration::from_secs(3);
/// When news about a change must have come, because the engine says nothing where nothing became of it.
const SILENCE: Duration = Duration::from_secs(65);
/// The pause after a failed write; a role that may not write is tried again after the longer one.
const AGAIN: Duration = Duration::from_secs(10);
const MUCH_LATER: Duration = Duration::from_mins(10);
/// The pause after another writer was first. By then the watch has brought what it wrote. It doubles a few times.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 6;
/// Statuses written in one go; the rest waits for the next.
const AT_ONCE: usize = 100;
/// Events in a minute, and those that wait; more are dropped.
const EVENTS_A_MINUTE: usize = 60;
const EVENTS_WAITING: usize = 200;
/// One go ends after this, and so does one write, so that the engine need not wait: it cuts off what takes 30 s.
const LONGEST: Duration = Duration::from_secs(8);
const LONGEST_WRITE: Duration = Duration::from_secs(5);

/// An object as far as writing to it needs it.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) resource: Resource,
    pub(super) object: Arc<Stored>,
    /// None for kinds without a status of ours.
    pub(super) status: Option<ObjectStatus>,
    /// Its owner wants nothing of it published here.
    pub(super) silenced: bool,
}

/// Finds the object of a workload.
pub(super) trait Subjects: Sync {
    fn subject(&self, id: &Key) -> Option<Subject>;
}

#[derive(Debug)]
pub(super) struct Reporting {
    statuses: bool,
    events: bool,
    /// Objects that were made before this may have been published before a restart.
    began: Timestamp,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: BTreeMap<Key, Heard>,
    /// Statuses to write, and since when each is due, by the monotonic clock.
    due: BTreeMap<Key, Duration>,
    events: VecDeque<Event>,
    /// When the Events of the last minute were written.
    told: VecDeque<Duration>,
    events_rest_until: Duration,
    statuses_rest_until: Duration,
    /// A person was told that a role lacks a right.
    complained: bool,
}

#[derive(Debug)]
struct Heard {
    outcome: Outcome,
    /// The status that was written last, for servers that keep only a part of it.
    written: Option<(i64, Outcome)>,
    changed_at: Duration,
    /// Writes in a row that came after those of another writer.
    conflicts: u32,
}

impl Reporting {
    pub(super) fn new(statuses: bool, events: bool, began: Timestamp) -> Self {
        Self { statuses, events, began, state: Mutex::default() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.statuses || self.events
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the generation of an object with a status became another.
    pub(super) fn changed(&self, id: Key, now: Duration) {
        let mut state = self.state();
        let Some(heard) = state.heard.get_mut(&id) else { return };
        heard.changed_at = now;
        state.due.insert(id, now + SILENCE);
    }

    /// Adds an Event to those that wait.
    pub(super) fn add(&self, event: Event) {
        let mut state = self.state();
        if self.events && state.events.len() < EVENTS_WAITING {
            state.events.push_back(event);
        }
    }

    /// Whether something waits whose time has come.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let state = self.state();
        (now >= state.statuses_rest_until && state.due.values().any(|due| *due <= now))
            || (now >= state.events_rest_until && !state.events.is_empty())
    }

    /// Takes the news, and writes nothing yet. The engine tells them once, so this comes before everything that may be cut off.
    pub(super) fn hear(&self, news: Vec<WorkloadNames>, subjects: &impl Subjects, now: Duration) {
        for one in news {
            self.take_in(one, subjects, now);
        }
    }

    /// Writes what is due.
    pub(super) async fn write_due(&self, subjects: &impl Subjects, shared: &Shared) {
        let until = shared.clock.monotonic() + LONGEST;
        self.write_statuses(subjects, shared, until).await;
        self.write_events(shared, until).await;
    }

    fn take_in(&self, news: WorkloadNames, subjects: &impl Subjects, now: Duration) {
        let Some(subject) = subjects.subject(&news.id) else {
            let mut state = self.state();
            state.heard.remove(&news.id);
            state.due.remove(&news.id);
            return;
        };
        let outcome = Outcome::of(&news);
        let mut state = self.state();
        let before = state.heard.get(&news.id).map(|heard| heard.outcome.clone());
        if self.events
            && !subject.silenced
            && outcome.is_worth_an_event(before.as_ref(), subject.object.created, self.began)
            && state.events.len() < EVENTS_WAITING
        {
            let (reason, good) = (outcome.verdict.word(), outcome.verdict.is_good());
            state.events.push_back(Event::new(&subject, reason, good, outcome.message.clone()));
        }
        let changed_at = state.heard.get(&news.id).map_or(Duration::ZERO, |heard| heard.changed_at);
        if self.statuses && subject.status.is_some() {
            state.due.insert(news.id.clone(), now.max(changed_at + AFTER_CHANGE));
        }
        let heard = state.heard.entry(news.id).or_insert_with(|| Heard {
            outcome: outcome.clone(),
            written: None,
            changed_at,
            conflicts: 0,
        });
        heard.outcome = outcome;
    }

    async fn write_statuses(&self, subjects: &impl Subjects, shared: &Shared, until: Duration) {
        let now = shared.clock.monotonic();
        let due: Vec<Key> = {
            let state = self.state();
            if now < state.statuses_rest_until {
                return;
            }
            let due = state.due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| id.clone());
            due.take(AT_ONCE).collect()
        };
        for id in due {
            if shared.clock.monotonic() >= until {
                return;
            }
            let found = subjects.subject(&id);
            let (outcome, written) = {
                let mut state = self.state();
                let heard = state.heard.get(&id).map(|heard| (heard.outcome.clone(), heard.written.clone()));
                match heard {
                    Some(heard) if found.is_some() => heard,
                    _ => {
                        state.due.remove(&id);
                        continue;
                    }
                }
            };
            let Some(Subject { resource, object, status: Some(status), .. }) = found else { continue };
            let now_written = (object.generation.unwrap_or_default(), outcome);
            let is_so = status.shows(now_written.0, &now_written.1) || written.as_ref() == Some(&now_written);
            let result = if is_so {
                Ok(())
            } else {
                let body = status.with(now_written.0, &now_written.1, shared.clock.wall());
                let (namespace, name) = (&object.name.namespace, &object.name.name);
                in_time(shared.cluster.patch_status(&resource, namespace, name, &body)).await
            };
            if self.settled(&id, &object.name, result, shared.clock.monotonic()) {
                if let Some(heard) = self.state().heard.get_mut(&id) {
                    heard.written = Some(now_written);
                    heard.conflicts = 0;
                }
            } else if shared.clock.monotonic() < self.state().statuses_rest_until {
                return;
            }
        }
    }

    /// Notes how a write of a status ended. Returns whether the status is as it should be.
    fn settled(
        &self,
        id: &Key,
        name: &ObjectName,
        result: Result<(), KubernetesError>,
        now: Duration,
    ) -> bool {
        let mut state = self.state();
        match result {
            Ok(()) | Err(KubernetesError::NotFound(_)) => {
                state.due.remove(id);
                return result.is_ok();
            }
            Err(KubernetesError::Forbidden(said)) => {
                state.statuses_rest_until = now + MUCH_LATER;
                complain(&mut state, &said);
            }
            Err(KubernetesError::Conflict(said)) => {
                let conflicts = state.heard.get_mut(id).map_or(0, |heard| {
                    heard.conflicts = heard.conflicts.saturating_add(1);
                    heard.conflicts
                });
                let pause = AFTER_CONFLICT * 2_u32.pow(conflicts.saturating_sub(1).min(DOUBLINGS));
                state.due.insert(id.clone(), now + pause);
                debug!(%name, said, "Another writer changed an object: its status is written anew.");
            }
            // The server dislikes the object itself: trying again soon does not help.
            Err(KubernetesError::Rejected { .. }) => {
                state.due.insert(id.clone(), now + MUCH_LATER);
                warn!(%name, "The status of an object cannot be written.");
            }
            Err(error) => {
                state.statuses_rest_until = now + AGAIN;
                debug!(%name, %error, "The status of an object is written later.");
            }
        }
        false
    }

    async fn write_events(&self, shared: &Shared, until: Duration) {
        loop {
            let now = shared.clock.monotonic();
            let event = {
                let mut state = self.state();
                while state.told.front().is_some_and(|at| now.saturating_sub(*at) >= Duration::from_mins(1)) {
                    state.told.pop_front();
                }
                if now < state.events_rest_until || now >= until {
                    return;
                }
                let Some(event) = state.events.pop_front() else { return };
                if state.told.len() >= EVENTS_A_MINUTE {
                    debug!(dropped = state.events.len() + 1, "There are too many Events: some are left out.");
                    state.events.clear();
                    return;
                }
                state.told.push_back(now);
                event
            };
            match in_time(event.write(&shared.cluster, shared.clock.wall())).await {
                // It was said within the last hour.
                Ok(()) | Err(KubernetesError::Conflict(_)) => {}
                Err(KubernetesError::Forbidden(said)) => {
                    let mut state = self.state();
                    state.events_rest_until = now + MUCH_LATER;
                    state.events.clear();
                    complain(&mut state, &said);
                }
                Err(error) => {
                    debug!(%error, "An Event cannot be written.");
                    self.state().events_rest_until = now + AGAIN;
                }
            }
        }
    }
}

/// The result of a write, or that it takes too long.
async fn in_time(write: impl Future<Output = Result<(), KubernetesError>>) -> Result<(), KubernetesError> {
    timeout(LONGEST_WRITE, write).await.unwrap_or(Err(KubernetesError::Slow(LONGEST_WRITE)))
}

/// Says once that a right is missing.
fn complain(state: &mut State, said: &str) {
    if !std::mem::replace(&mut state.complained, true) {
        warn!(
            reason = said,
            "Netstead may not write into this cluster: give it the right, or set `status = false` and `events = false`."
        );
    }
}
