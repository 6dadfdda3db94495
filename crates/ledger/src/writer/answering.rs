//! Answers callers, readers and subscribers once a group is durable, or has failed.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::{Waiter, Writer, commit_group::Group};
use crate::{
    command::{Outcome, Reply},
    ledger::{Done, Role},
    record::Head,
    refusal::LedgerError,
    shared_state::State,
};

/// How long a caller that does not wait is kept for the answer of a backend.
const BACKEND_PATIENCE: Duration = Duration::from_secs(10);

impl Writer {
    /// A commit of ours is durable: notes its head.
    pub(super) fn advance_head(&mut self, head: Head) {
        self.last_commit = self.shared.clock.monotonic();
        self.shared.counters.commits.fetch_add(1, Relaxed);
        self.shared.set_durable_head(&head);
        self.head = head;
    }

    /// Rewinds the Book to what is known to be durable, so that no caller reads what may never have happened.
    pub(super) fn rewind_group(&self, group: &mut Group) {
        let mut book = self.shared.book_mut();
        book.rewind_all(&mut group.batch, group.before);
        self.shared.durable.send_modify(|durable| durable.rewinds += 1);
    }

    pub(super) fn answer(&mut self, group: Group) {
        let seq = self.head.seq;
        for served in group.served {
            for waiter in self.waiters.remove(&served.waiting).into_iter().flatten() {
                let reply = Reply::Claimed { claim: served.claim.clone(), outcome: Outcome::Created };
                let _ = waiter.request.answer.send(Ok(Done { reply, seq }));
            }
        }
        for (waiter, result) in group.timed_out {
            let result = result.map(|reply| Done { reply, seq }).map_err(LedgerError::from);
            let _ = waiter.request.answer.send(result);
        }
        let now = self.shared.clock.monotonic();
        for (request, result) in group.answers {
            match result {
                Ok(Reply::Queued(waiting))
                    if !request.wait.is_zero() || request.wants_backend_at_once(&waiting) =>
                {
                    let seq = waiting.seq;
                    // A backend is given a moment to answer, also where the caller did not ask to wait.
                    let patience = request.deadline.saturating_sub(now).min(BACKEND_PATIENCE);
                    let wait = if request.wait.is_zero() { patience } else { request.wait };
                    let until = now.saturating_add(wait);
                    let waiter = Waiter { until, queued: Reply::Queued(waiting), request };
                    self.waiters.entry(seq).or_default().push(waiter);
                }
                result => {
                    // A caller that is gone will ask again.
                    let _ = request
                        .answer
                        .send(result.map(|reply| Done { reply, seq }).map_err(LedgerError::from));
                }
            }
        }
        self.answer_removed_waiters(seq);
    }

    /// Answers callers whose place in the queue is gone: it was abandoned, its pool was deleted, or the key got its address in
    /// another way.
    fn answer_removed_waiters(&mut self, seq: u64) {
        if self.waiters.is_empty() {
            return;
        }
        let book = self.shared.book();
        let ended = |place: &u64, _: &mut Vec<Waiter>| {
            let waiting = book.waiting_at(*place);
            waiting.is_none_or(|waiting| waiting.draw.as_ref().is_some_and(|draw| !draw.is_live()))
        };
        let gone = self.waiters.extract_if(.., ended);
        for waiter in gone.flat_map(|(_, waiters)| waiters) {
            let Reply::Queued(waiting) = &waiter.queued else { continue };
            let claims = waiting.pools.iter().filter_map(|pool| book.claim(pool, &waiting.key));
            let claim = claims.map(|view| view.claim).find(|claim| claim.owner == waiting.owner);
            let result = match (claim, waiter.refusal(&book)) {
                (Some(claim), _) => {
                    let new = claim.drawn.is_some();
                    let outcome = if new { Outcome::Created } else { Outcome::Repeated };
                    Ok(Done { reply: Reply::Claimed { claim, outcome }, seq })
                }
                (None, Some(refusal)) => Err(refusal.into()),
                (None, None) => continue,
            };
            let _ = waiter.request.answer.send(result);
        }
    }

    pub(super) fn refuse_all(&mut self, error: &LedgerError) {
        while let Ok(request) = self.inbox.try_recv() {
            self.put_off.push_back(request);
        }
        for request in self.put_off.drain(..) {
            let _ = request.answer.send(Err(error.clone()));
        }
        // Their claims are stored and go on waiting, so it would be untrue that nothing was done.
        let waits = format!("its claim waits in the queue: {}", error.cause());
        for waiter in std::mem::take(&mut self.waiters).into_values().flatten() {
            let _ = waiter.request.answer.send(Err(unlearned(&waits)));
        }
    }

    /// Another process leads now.
    pub(super) fn lose_leadership(&mut self, group: Group) {
        self.deposed = true;
        // In this order: no caller may learn that this process no longer leads while it still takes requests.
        self.shared.role.send_replace(Role::Following);
        self.shared.state.send_replace(State::Following);
        // The new leader replaced the head, so it can no longer be learned here whether our last commit landed.
        let unsure = group.unsure.then(|| unlearned(&LedgerError::NotLeading.cause()));
        group.fail(&unsure.unwrap_or(LedgerError::NotLeading));
        self.refuse_all(&LedgerError::NotLeading);
    }
}

/// The answer to a caller whose request has an unknown outcome.
pub(super) fn unlearned(reason: &str) -> LedgerError {
    LedgerError::Unknown { reason: reason.to_owned() }
}
