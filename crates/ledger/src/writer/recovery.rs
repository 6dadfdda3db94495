//! Brings the writer back in step with the store, after a commit that failed or got no answer.
//!
//! 1. The Book has been rewound to what is known to be durable. The state is `Recovering`, which `/readyz` shows.
//! 2. `fence_and_load` replaces the head and loads a new Book from the store. From then on the lost commit cannot land, and
//!    it is known whether it did (see `fencing`).
//! 3. If the store does not answer, step 2 is repeated with growing pauses. After `learn_timeout` the waiting callers are
//!    answered: `Unknown` if their commit may have landed, otherwise `Unavailable`. The work goes on without them.
//! 4. If another process leads, this one stops: callers get `Unknown` or `NotLeading`.
//! 5. With a loaded Book: if the commit landed, its events are published and its callers get the answers that were decided.
//!    If it did not land, its callers get `Unavailable`. Requests that write nothing are decided again from the new Book.
//!
//! Ledger time continues from the stored time, so that no lease expires because the store was away.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use tokio::time::sleep;

use super::{Writer, answering::unlearned, commit_group::Group};
use crate::{fencing::fence_and_load, refusal::LedgerError, sabotage::Sabotage, shared_state::State};

const FIRST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

impl Writer {
    /// Does the steps above for `group`, whose commit had the id `batch`; `None` if there was no commit. Returns whether the
    /// commit landed.
    pub(super) async fn recover(&mut self, batch: Option<u64>, group: Group, reason: &str) -> bool {
        tracing::warn!(reason, "The ledger lost touch with its store and catches up.");
        self.shared.state.send_replace(State::Recovering { reason: reason.to_owned() });
        let give_up = self.shared.clock.monotonic().saturating_add(self.shared.options.learn_timeout);
        let events = group.batch.events().to_vec();
        let mut group = Some(group);
        let mut backoff = FIRST_BACKOFF;
        let (shared, stop) = (self.shared.clone(), self.shared.stop.clone());
        let mut landed = false;
        let learned = loop {
            landed &= !shared.options.omits(Sabotage::Remembering);
            let attempt =
                fence_and_load(&*shared.store, &shared.options.randomness, self.epoch, batch, &mut landed);
            let taken = tokio::select! {
                biased;
                // A store may take long to fail, and the waiting callers could already ask the new leader.
                () = self.epoch_watch.until_superseded() => Err(LedgerError::NotLeading),
                taken = attempt => taken,
            };
            match taken {
                Ok(loaded) => break loaded,
                Err(LedgerError::NotLeading) => {
                    self.lose_leadership(group.unwrap_or_default());
                    return landed;
                }
                Err(error) => {
                    let reason = plain(error);
                    self.shared.state.send_replace(State::Recovering { reason: reason.clone() });
                    if self.shared.clock.monotonic() >= give_up {
                        if let Some(group) = group.take() {
                            let nothing = LedgerError::Unavailable { reason: reason.clone() };
                            let error = if group.unsure { unlearned(&reason) } else { nothing };
                            group.fail(&error);
                        }
                        self.refuse_all(&LedgerError::Unavailable { reason });
                    }
                }
            }
            tokio::select! {
                biased;
                () = self.epoch_watch.until_superseded() => {
                    self.lose_leadership(group.unwrap_or_default());
                    return landed;
                }
                () = stop.cancelled() => {
                    if let Some(group) = group.take() {
                        group.fail(&unlearned("it is shutting down"));
                    }
                    return landed;
                }
                () = sleep(backoff) => {}
            }
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        };
        self.shared.counters.rebuilds.fetch_add(1, Relaxed);
        // No lease could be renewed while the store was away: time continues from the stored one.
        self.shared.time.begin(learned.head.time, &*self.shared.clock);
        self.version = learned.version;
        self.shared.replace_book(learned.book);
        self.advance_head(learned.head);
        self.shared.state.send_replace(State::Ready);
        if landed {
            self.shared.publish(&events);
        }
        let Some(mut group) = group else { return landed };
        if landed {
            self.answer(group);
        } else if batch.is_none() {
            // There was no commit: decide again, from the new Book.
            let requests = Group { answers: std::mem::take(&mut group.answers), ..Group::default() };
            self.requeue(requests);
            // Callers whose time is up are answered now.
            self.answer(group);
        } else {
            group.fail(&LedgerError::Unavailable { reason: format!("the store did not take it ({reason})") });
        }
        landed
    }
}

/// The reason alone: the caller adds what it means.
fn plain(error: LedgerError) -> String {
    match error {
        LedgerError::Unavailable { reason } | LedgerError::Unknown { reason } => reason,
        other => other.to_string(),
    }
}
