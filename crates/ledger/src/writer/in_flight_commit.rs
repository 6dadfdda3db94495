//! The commit that is on its way to the store, and the group that is decided meanwhile.
//!
//! 1. Group 1 is decided. The Book goes from number 10 to 12. Its commit is sent, conditional on the head at 10.
//! 2. While the disk works, group 2 is decided from the Book at 12, which includes group 1. Nothing of group 2 is sent:
//!    no commit, no answer.
//! 3. The commit of group 1 lands. The commit of group 2 is sent, conditional on the head at 12. Then the callers of group 1
//!    are answered.
//!
//! If the commit of group 1 fails, or its outcome is unknown:
//!
//! 4. Group 2 is rewound: the Book is back at 12. Its requests return to the front of the queue.
//! 5. Group 1 is rewound: the Book is back at 10.
//! 6. `recovery` learns whether group 1 landed and answers its callers.
//! 7. The requests of group 2 are decided again, from the Book that recovery loaded.
//!
//! For example, group 1 claims the last free address and group 2 is refused as exhausted. The commit of group 1 is lost.
//! The caller of group 2 never hears of the refusal: its request is decided again and gets the address.
//!
//! Only one commit is under way at a time, because each needs the version of the head that the one before it writes.

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
    shared_state::Confirmation,
};

/// Requests that are decided between two looks at the commit under way.
const AT_ONCE: usize = 8;
/// Up to this many requests go into one group. Of more than twice as many, half are decided while the other half is
/// being committed, so that disk and CPU both stay busy.
const SMALL: usize = 16;

/// How often the commit is polled before this task goes to sleep, when many requests wait. On a local disk the answer comes
/// so soon that waking up would take a good part of the time.
const GLANCES: usize = 100;

/// The store's answer to a commit.
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
        // The store begins now, not at the first `await`.
        let _ = poll!(&mut commit);
        if self.shared.options.omits(Sabotage::DurableAnswers) {
            self.answer(Group { answers: std::mem::take(&mut group.answers), ..Group::default() });
        }
        InFlightCommit { group, head, commit }
    }

    /// Waits until the store has answered. Meanwhile decides the next group, and returns it.
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
                // Callers that were answered together ask again together: let all of them arrive.
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

    /// False while callers wait in the queue of a full pool: their answers must come from the Book as of the durable group,
    /// not from one that is ahead. Also false when events are due to be trimmed, which has commits of its own.
    fn may_decide_ahead(&self, group: &Group) -> bool {
        let queue = !self.waiters.is_empty()
            || group.answers.iter().any(|(_, result)| matches!(result, Ok(Reply::Queued(_))));
        !queue && !self.trim_is_due() && !self.shared.stop.is_cancelled()
    }

    /// Call when the store has answered. If the commit landed, first sends the commit of the group ahead, then answers the
    /// callers of this one. Returns the commit that is under way now.
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
            // Cannot happen: the caller has awaited the commit.
            None => None,
        }
    }

    /// Handles a commit that was refused, failed or has an unknown outcome.
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

    /// Puts requests back at the front of the queue, to be decided again.
    pub(super) fn requeue(&mut self, group: Group) {
        for (request, _) in group.answers.into_iter().rev() {
            self.put_off.push_front(request);
        }
    }

    /// Answers a group that writes nothing, once the store says that the head is still ours. Otherwise another process may
    /// have written something that makes the answers wrong.
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
                self.shared.confirmed.send_replace(Confirmation::at(self.shared.clock.monotonic()));
                self.answer(group);
            }
            Ok(_) => drop(self.recover(None, group, "the head changed under us").await),
            Err(error) => drop(self.recover(None, group, &plain(&error)).await),
        }
    }
}

/// The reason alone, without a statement about the commit: recovery has yet to learn whether it landed.
fn plain(error: &StoreError) -> String {
    match error {
        StoreError::Unknown { reason } | StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}
