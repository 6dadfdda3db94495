//! Commits on their way to the store, and what is decided meanwhile.
//!
//! One commit is under way at a time: the next one stands on the head this one writes. But its group is decided while
//! this one waits for the disk, from a Book that already knows what is under way. Nothing of it leaves before both are
//! durable. If the commit fails, the group ahead is taken back first, and its requests are decided anew from what the
//! store turns out to hold: none of it was ever sent.

use std::{future::Future, pin::Pin, sync::atomic::Ordering::Relaxed};

use futures::{
    future::{MaybeDone, maybe_done},
    poll,
};
use netstead_store::{Commit, Committed, Condition, StoreError};
use tokio::task::yield_now;

use super::{
    Writer,
    commit_group::{Group, last_of_each},
};
use crate::{
    command::Reply,
    record::{self, HEAD_KEY, Head, event_key},
    refusal::LedgerError,
    sabotage::Sabotage,
};

/// Requests decided before it is looked again whether the commit under way has landed.
const AT_ONCE: usize = 8;
/// Up to so many requests go into one group. Of more than twice as many, half are decided while the other half is on
/// its way, so that the disk and the deciding never wait for each other.
const SMALL: usize = 16;

/// How often it is looked whether the store has answered, when many ask, before this task goes to sleep: on a local disk
/// the answer comes within a moment, and waking up would take a good part of that moment.
const GLANCES: usize = 100;

/// What the store says in the end.
type Outcome = Result<Committed, StoreError>;

/// A group whose commit is under way.
pub(super) struct InFlightCommit {
    group: Group,
    head: Head,
    commit: MaybeDone<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
}

impl Writer {
    /// Closes the group and sends it to the store.
    pub(super) async fn start_commit(&mut self, mut group: Group) -> InFlightCommit {
        let (seq, paused) = {
            let mut book = self.shared.book_mut();
            if group.batch.events().is_empty() {
                book.count_silent_commit();
            }
            (book.seq(), book.paused())
        };
        let head = Head {
            seq,
            epoch: self.epoch,
            batch: self.shared.options.randomness.number(),
            time: self.ledger_time(),
            paused,
            ..self.head.clone()
        };
        let mut commit = Commit::new().put(HEAD_KEY, record::encode(&head));
        if !self.shared.options.omits(Sabotage::HeadCondition) {
            commit = commit.when(Condition::Version(HEAD_KEY.into(), self.version));
        }
        commit.writes.append(&mut last_of_each(std::mem::take(&mut group.writes)));
        if let Some(first) = group.batch.events().first() {
            commit = commit.put(event_key(first.seq), record::event_group(&group.events));
        }
        let store = self.shared.store.clone();
        let work: Pin<Box<dyn Future<Output = Outcome> + Send>> =
            Box::pin(async move { store.commit(commit).await });
        let mut commit = maybe_done(work);
        // The store begins now, not when somebody waits for it.
        let _ = poll!(&mut commit);
        if self.shared.options.omits(Sabotage::DurableAnswers) {
            self.answer(Group { answers: std::mem::take(&mut group.answers), ..Group::default() });
        }
        InFlightCommit { group, head, commit }
    }

    /// Waits until the store has answered, and decides meanwhile what comes next.
    pub(super) async fn decide_ahead(&mut self, flight: &mut InFlightCommit) -> Option<Group> {
        let mut ahead: Option<Group> = None;
        let mut open = self.may_decide_ahead(&flight.group);
        while open && poll!(&mut flight.commit).is_pending() {
            if self.put_off.is_empty() {
                tokio::select! {
                    biased;
                    () = &mut flight.commit => break,
                    request = self.inbox.recv() => match request {
                        Some(request) => self.put_off.push_back(request),
                        None => break,
                    },
                }
                // Who was answered together asks again together: let them all come.
                yield_now().await;
                self.collect_requests();
                continue;
            }
            let mut group = ahead.take().unwrap_or_else(|| self.begin_group());
            let taken = group.answers.len();
            let most = ((flight.group.answers.len() + taken + self.put_off.len()) / 2).max(SMALL);
            self.decide_requests(&mut group, most.min(taken + AT_ONCE));
            open = taken < group.answers.len() || self.put_off.is_empty();
            ahead = Some(group);
        }
        if ahead.as_ref().is_some_and(|group| group.answers.len() >= SMALL) {
            for _ in 0..GLANCES {
                if poll!(&mut flight.commit).is_ready() {
                    break;
                }
                yield_now().await;
            }
        }
        (&mut flight.commit).await;
        ahead
    }

    /// Where callers wait in the queue, what they hear depends on the Book as it is when a group is durable, and no
    /// further. And trimming has commits of its own.
    fn may_decide_ahead(&self, group: &Group) -> bool {
        let queue = !self.waiters.is_empty()
            || group.answers.iter().any(|(_, result)| matches!(result, Ok(Reply::Queued(_))));
        !queue && !self.trim_is_due() && !self.shared.stop.is_cancelled()
    }

    /// The store has answered. Sends the group ahead on its way, if this one landed, and only then takes the time to
    /// answer this one's callers.
    pub(super) async fn finish_commit(
        &mut self,
        mut flight: InFlightCommit,
        ahead: Option<Group>,
    ) -> Option<InFlightCommit> {
        match Pin::new(&mut flight.commit).take_output() {
            Some(Ok(committed)) => {
                self.version = committed.version;
                self.advance_head(flight.head);
                let (next, unwritten) = match ahead {
                    Some(group) if !group.is_silent() => (Some(self.start_commit(group).await), None),
                    silent => (None, silent),
                };
                self.shared.counters.requests.fetch_add(flight.group.answers.len() as u64, Relaxed);
                self.shared.publish(flight.group.batch.events());
                self.answer(flight.group);
                if let Some(group) = unwritten {
                    self.confirm(group).await;
                }
                next
            }
            Some(Err(error)) => {
                self.handle_failed_commit(flight, ahead, &error).await;
                None
            }
            // Whoever is here has waited for it.
            None => None,
        }
    }

    /// The commit was refused, or nobody knows what became of it.
    async fn handle_failed_commit(
        &mut self,
        flight: InFlightCommit,
        ahead: Option<Group>,
        error: &StoreError,
    ) {
        use StoreError::{Refused, Unknown};
        let InFlightCommit { mut group, head, .. } = flight;
        group.unsure = matches!(error, Unknown { .. });
        match error {
            Refused { .. } => self.shared.counters.refused_commits.fetch_add(1, Relaxed),
            Unknown { .. } => self.shared.counters.unknown_commits.fetch_add(1, Relaxed),
            _ => 0,
        };
        if let Some(mut ahead) = ahead {
            self.rewind_group(&mut ahead);
            self.requeue(ahead);
        }
        self.rewind_group(&mut group);
        if group.unsure && self.shared.options.omits(Sabotage::Learning) {
            return group.fail(&LedgerError::Unavailable { reason: plain(error) });
        }
        self.recover(Some(head.batch), group, &plain(error)).await;
    }

    /// These are to be decided anew, before any others.
    pub(super) fn requeue(&mut self, group: Group) {
        for (request, _) in group.answers.into_iter().rev() {
            self.put_off.push_front(request);
        }
    }

    /// Nothing was written, but the answers are still only true if this process leads: ask the store.
    pub(super) async fn confirm(&mut self, group: Group) {
        if group.answers.is_empty() && group.timed_out.is_empty() {
            return;
        }
        let options = &self.shared.options;
        if options.omits(Sabotage::Confirming)
            || (options.omits(Sabotage::ConfirmingRefusals)
                && group.answers.iter().all(|(_, result)| result.is_err()))
        {
            return self.answer(group);
        }
        match self.shared.store.get(HEAD_KEY.as_bytes()).await {
            Ok(Some(entry)) if entry.version == self.version => {
                self.shared.confirmed.send_replace(self.shared.clock.monotonic());
                self.answer(group);
            }
            Ok(_) => drop(self.recover(None, group, "the head changed under us").await),
            Err(error) => drop(self.recover(None, group, &plain(&error)).await),
        }
    }
}

/// Only the reason: what became of the commit is learned first.
fn plain(error: &StoreError) -> String {
    match error {
        StoreError::Unknown { reason } | StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}
