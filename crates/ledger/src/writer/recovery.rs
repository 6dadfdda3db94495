//! After a commit whose fate is not known, or that was refused: learn, catch up, and only then answer.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use tokio::time::sleep;

use super::{Writer, answering::unlearned, commit_group::Group};
use crate::{fencing::fence_and_load, refusal::LedgerError, sabotage::Sabotage, shared_state::State};

const FIRST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

impl Writer {
    /// Rebuilds the Book from the store and replaces the head, so that the lost commit can no longer land, which tells
    /// whether it has. What cannot be learned in time is answered as unknown; the work here goes on until the store is
    /// back or somebody else leads. Says whether `batch` landed.
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
                // A store that does not answer may take long to say so, and whoever waits here could ask the one who leads.
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
        // Time went on while the store was away, and nobody could renew: it goes on from the last stored moment.
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
            // Nothing was to be written: decide again, from what is known now.
            let requests = Group { answers: std::mem::take(&mut group.answers), ..Group::default() };
            self.requeue(requests);
            // Whose time is up has nothing to wait for.
            self.answer(group);
        } else {
            group.fail(&LedgerError::Unavailable { reason: format!("the store did not take it ({reason})") });
        }
        landed
    }
}

/// Only the reason: what it means for the caller is said around it.
fn plain(error: LedgerError) -> String {
    match error {
        LedgerError::Unavailable { reason } | LedgerError::Unknown { reason } => reason,
        other => other.to_string(),
    }
}
