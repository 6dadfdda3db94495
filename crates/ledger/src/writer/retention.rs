//! Deletes old events.
//!
//! The newest event of each address stays, whatever its age, so that "who had this last" can always be answered. It is
//! deleted once something newer happened to the address.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use netstead_model::{Event, EventKind};
use netstead_store::{Commit, Condition, Entry, Snapshot};

use super::Writer;
use crate::{
    load::damaged,
    record::{self, Calendar, EVENT, EventGroup, HEAD_KEY, Head, event_key},
    refusal::LedgerError,
};

const EVERY: Duration = Duration::from_mins(10);
/// How soon it goes on when one run was not enough, so that requests come in between.
const AGAIN: Duration = Duration::from_millis(200);
/// How soon it is looked again whether the index of events is there.
const UNBUILT: Duration = Duration::from_mins(1);
/// Groups of events looked at for one commit.
const GROUPS: usize = 64;
/// Commits of one run.
const COMMITS: usize = 40;
/// Events removed after which that is told, even if there are more to go.
const TOLD_AFTER: u64 = 100_000;

/// When events are looked through next, and what the last runs removed.
#[derive(Debug, Default)]
pub(super) struct Retention {
    next: Duration,
    removed: u64,
}

impl Writer {
    pub(super) async fn trim_if_due(&mut self) {
        if !self.trim_is_due() {
            return;
        }
        let now = self.shared.clock.monotonic();
        // The next commit stores it.
        let (wall, time) = (self.shared.clock.wall(), self.ledger_time());
        let calendar = self.head.calendar.unwrap_or(Calendar { at: wall, time }).turned(wall, time);
        self.head.calendar = Some(calendar);
        let done = self.trim(calendar.at).await;
        let pause = if matches!(done, Ok(false)) { AGAIN } else { EVERY };
        self.retention.next = now.saturating_add(pause);
        if let Err(error) = done {
            tracing::warn!(%error, "Old events could not be trimmed; they stay for now.");
        }
    }

    pub(super) fn trim_is_due(&self) -> bool {
        // Without the whole index it is unknown which event is the newest of its address.
        self.shared.index.is_built() && self.shared.clock.monotonic() >= self.retention.next
    }

    /// How long nothing needs to be trimmed, whether or not anybody asks.
    pub(super) fn until_trim(&self) -> Duration {
        let next = self.retention.next.saturating_sub(self.shared.clock.monotonic());
        if self.shared.index.is_built() { next } else { next.max(UNBUILT) }
    }

    /// One run; whether it came to the end.
    async fn trim(&mut self, today: Timestamp) -> Result<bool, LedgerError> {
        let keep_for = i64::try_from(self.shared.options.retention.as_millis()).unwrap_or(i64::MAX);
        let horizon = today.checked_sub(SignedDuration::from_millis(keep_for)).unwrap_or(Timestamp::MIN);
        let mut done = false;
        for _ in 0..COMMITS {
            let over = self.shared.index.count().saturating_sub(self.shared.options.max_events);
            let snapshot = self.shared.store.snapshot().await?;
            let after = self.head.oldest.checked_sub(1).map(event_key);
            let page = snapshot.range(EVENT.as_bytes(), after.as_deref().map(str::as_bytes), GROUPS).await?;
            let mut step = self.plan_trim(&page, over, horizon)?;
            if step.groups == 0 {
                step = self.plan_sweep(&*snapshot).await?;
            }
            if step.groups == 0 {
                done = true;
                break;
            }
            if step.oldest != self.head.oldest || !step.removed.is_empty() {
                self.retention.removed += step.removed.len() as u64;
                self.commit_trim(step).await?;
            }
        }
        if self.retention.removed >= TOLD_AFTER || (done && self.retention.removed > 0) {
            let removed = std::mem::take(&mut self.retention.removed);
            self.note_trim(removed).await?;
        }
        Ok(done)
    }

    fn plan_trim(&self, page: &[Entry], over: u64, horizon: Timestamp) -> Result<TrimStep, LedgerError> {
        let mut step = TrimStep { oldest: self.head.oldest, ..TrimStep::default() };
        for entry in page {
            let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(damaged)?;
            let aged = group.events.iter().all(|event| event.at < horizon);
            if !aged && (step.removed.len() as u64) >= over {
                break;
            }
            let last = group.events.iter().map(|event| event.seq + 1).max();
            step.oldest = last.unwrap_or(step.oldest);
            self.thin_out(&mut step, entry.key.clone(), group);
        }
        Ok(step)
    }

    /// Events that were spared as the newest of their address, and are not any more.
    async fn plan_sweep(&self, snapshot: &dyn Snapshot) -> Result<TrimStep, LedgerError> {
        let mut groups = BTreeMap::new();
        for seq in self.shared.index.take_outlived(GROUPS) {
            let before = event_key(seq.saturating_add(1));
            let found = snapshot.range_back(EVENT.as_bytes(), Some(before.as_bytes()), 1).await?;
            groups.extend(found.into_iter().map(|entry| (entry.key, entry.value)));
        }
        let mut step = TrimStep { oldest: self.head.oldest, ..TrimStep::default() };
        for (key, value) in groups {
            let group: EventGroup = record::decode(&key, &value).map_err(damaged)?;
            self.thin_out(&mut step, key, group);
        }
        Ok(step)
    }

    /// Leaves of a group what must stay.
    fn thin_out(&self, step: &mut TrimStep, key: Vec<u8>, group: EventGroup) {
        let book = self.shared.book();
        let stays = |event: &Arc<Event>| {
            let lives = event.pool().is_some_and(|pool| book.vrf_of(pool).is_some());
            event.seq >= step.oldest || self.shared.index.is_newest_of_address(event, lives)
        };
        let (kept, gone): (Vec<_>, Vec<_>) = group.events.into_iter().partition(stays);
        step.groups += 1;
        if !gone.is_empty() {
            let commit = std::mem::take(&mut step.commit);
            step.commit = if kept.is_empty() {
                commit.delete(key)
            } else {
                commit.put(key, record::encode(&EventGroup { events: kept }))
            };
        }
        step.removed.extend(gone);
    }

    async fn commit_trim(&mut self, step: TrimStep) -> Result<(), LedgerError> {
        self.shared.book_mut().count_silent_commit();
        let head = Head {
            seq: self.shared.book().seq(),
            batch: self.shared.options.randomness.number(),
            oldest: step.oldest,
            ..self.head.clone()
        };
        self.commit_plain(step.commit, head, None).await?;
        self.shared.index.remove(&step.removed, step.oldest);
        Ok(())
    }

    /// Trimming itself leaves an event.
    async fn note_trim(&mut self, removed: u64) -> Result<(), LedgerError> {
        self.shared.book_mut().count_silent_commit();
        let seq = self.shared.book().seq();
        let event = Arc::new(Event {
            seq,
            at: self.shared.clock.wall(),
            by: "netstead".into(),
            request: None,
            what: EventKind::Trimmed,
            reason: Some(format!("{removed} events before number {} were removed", self.head.oldest).into()),
            before: None,
            after: None,
        });
        let head = Head { seq, batch: self.shared.options.randomness.number(), ..self.head.clone() };
        let group = EventGroup { events: vec![event.clone()] };
        self.commit_plain(Commit::new().put(event_key(seq), record::encode(&group)), head, Some(event)).await
    }

    async fn commit_plain(
        &mut self,
        commit: Commit,
        head: Head,
        event: Option<Arc<Event>>,
    ) -> Result<(), LedgerError> {
        let commit = commit
            .when(Condition::Version(HEAD_KEY.into(), self.version))
            .put(HEAD_KEY, record::encode(&head));
        match self.shared.store.commit(commit).await {
            Ok(committed) => {
                self.version = committed.version;
                self.advance_head(head);
                self.shared.publish(event.as_slice());
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                let mut group = super::commit_group::Group { before: head.seq - 1, ..Default::default() };
                group.batch.events.extend(event);
                // The number was counted already, and what it stands for may never come to be.
                self.rewind_group(&mut group);
                let landed = self.recover(Some(head.batch), group, &reason).await;
                if landed { Ok(()) } else { Err(LedgerError::Unavailable { reason }) }
            }
        }
    }
}

#[derive(Default)]
struct TrimStep {
    commit: Commit,
    removed: Vec<Arc<Event>>,
    groups: usize,
    oldest: u64,
}
