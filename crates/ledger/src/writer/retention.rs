//! Old events go. The newest of each address stays, whatever its age, so that "who had this last" is always answered.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use netstead_model::{Event, EventKind};
use netstead_store::{Commit, Condition, Entry};

use super::Writer;
use crate::{
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, event_key},
    refusal::LedgerError,
};

const EVERY: Duration = Duration::from_mins(10);
/// Groups of events looked at for one commit.
const GROUPS: usize = 64;
/// Commits of one run; the rest goes with the next.
const COMMITS: usize = 200;

impl Writer {
    pub(super) async fn trim_if_due(&mut self) {
        let now = self.shared.clock.monotonic();
        // Without the whole index nobody knows which event is the newest of its address.
        if !self.shared.index.is_built() {
            return;
        }
        if self.last_trim.is_some_and(|last| now.saturating_sub(last) < EVERY) {
            return;
        }
        self.last_trim = Some(now);
        if let Err(error) = self.trim().await {
            tracing::warn!(%error, "Old events could not be trimmed; they stay for now.");
        }
    }

    async fn trim(&mut self) -> Result<(), LedgerError> {
        let max = self.shared.options.max_events;
        let keep_for = SignedDuration::from_millis(
            i64::try_from(self.shared.options.retention.as_millis()).unwrap_or(i64::MAX),
        );
        let horizon = self.shared.clock.wall().checked_sub(keep_for).unwrap_or(jiff::Timestamp::MIN);
        let mut removed = 0u64;
        for _ in 0..COMMITS {
            let over = self.shared.index.count().saturating_sub(max);
            let snapshot = self.shared.store.snapshot().await?;
            let after = self.head.oldest.checked_sub(1).map(event_key);
            let page = snapshot.range(EVENT.as_bytes(), after.as_deref().map(str::as_bytes), GROUPS).await?;
            let step = self.plan_trim(&page, over, horizon)?;
            if step.groups == 0 {
                break;
            }
            removed += step.removed.len() as u64;
            self.commit_trim(step).await?;
        }
        if removed > 0 {
            self.note_trim(removed).await?;
        }
        Ok(())
    }

    fn plan_trim(&self, page: &[Entry], over: u64, horizon: jiff::Timestamp) -> Result<Step, LedgerError> {
        let mut step = Step { oldest: self.head.oldest, ..Step::default() };
        for entry in page {
            let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(crate::load::damaged)?;
            let aged = group.events.iter().all(|event| event.at < horizon);
            if !aged && (step.removed.len() as u64) >= over {
                break;
            }
            let (kept, gone): (Vec<_>, Vec<_>) =
                group.events.into_iter().partition(|event| self.shared.index.is_newest_of_address(event));
            step.oldest = kept.iter().chain(&gone).map(|event| event.seq + 1).max().unwrap_or(step.oldest);
            step.groups += 1;
            if !gone.is_empty() {
                step.commit = if kept.is_empty() {
                    step.commit.delete(entry.key.clone())
                } else {
                    step.commit.put(entry.key.clone(), record::encode(&EventGroup { events: kept }))
                };
            }
            step.removed.extend(gone);
        }
        Ok(step)
    }

    async fn commit_trim(&mut self, step: Step) -> Result<(), LedgerError> {
        self.shared.book_mut().count_silent_commit();
        let head = Head {
            seq: self.shared.book().seq(),
            batch: rand::random(),
            oldest: step.oldest,
            ..self.head.clone()
        };
        self.commit_plain(step.commit, head, None).await?;
        self.shared.index.remove(&step.removed);
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
        let head = Head { seq, batch: rand::random(), ..self.head.clone() };
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
                self.landed(head);
                self.publish(event.as_slice());
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                let mut group = super::Group::default();
                group.batch.events.extend(event);
                let landed = self.recover(Some(head.batch), group, &reason).await;
                if landed { Ok(()) } else { Err(LedgerError::Unavailable { reason }) }
            }
        }
    }
}

#[derive(Default)]
struct Step {
    commit: Commit,
    removed: Vec<Arc<Event>>,
    groups: usize,
    oldest: u64,
}
