//! The background task of a ledger: follows the store, leads when it is granted the lead, then follows again.
//!
//! ```text
//!              grant with an epoch, take_over succeeds
//!   Follower ──────────────────────────────────────────► Writer
//!   (Book fed by watch) ◄──────────────────────────────── (Book decides)
//!              a later epoch, seen by EpochWatch or at the head
//! ```
//!
//! A grant is only a permission. What makes it safe is the head of the ledger: the new leader replaces it before it serves,
//! so commits of the old leader are refused (see `writer`).

use std::{sync::Arc, time::Duration};

use netstead_store::{EPOCH_KEY, Store, Watch, WatchItem, pause_for};
use tokio::sync::{mpsc, oneshot};

use crate::{
    follower::Follower,
    ledger::Role,
    refusal::LedgerError,
    shared_state::{LedgerShared, State},
    writer::{Request, Writer},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The permission to lead, with the epoch that was just raised for this process.
pub(crate) struct LeadershipGrant {
    pub epoch: u64,
    pub answer: oneshot::Sender<Result<(), LedgerError>>,
}

pub(crate) struct LeadershipLoop {
    shared: Arc<LedgerShared>,
    inbox: mpsc::Receiver<Request>,
    grants: mpsc::Receiver<LeadershipGrant>,
    follower: Follower,
}

impl LeadershipLoop {
    /// `follower` must be connected.
    pub fn new(
        shared: Arc<LedgerShared>,
        inbox: mpsc::Receiver<Request>,
        turns: mpsc::Receiver<LeadershipGrant>,
        follower: Follower,
    ) -> Self {
        Self { shared, inbox, grants: turns, follower }
    }

    pub async fn run(mut self) {
        let stop = self.shared.stop.clone();
        while let Some(LeadershipGrant { epoch, answer }) = self.follow_until_granted().await {
            let taken = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                taken = self.follower.take_over(epoch) => taken,
            };
            let (head, version) = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    let _ = answer.send(Err(error));
                    continue;
                }
            };
            let writer = Writer::new(self.shared.clone(), self.inbox, head, version);
            self.shared.state.send_replace(State::Ready);
            self.shared.role.send_replace(Role::Leading { epoch });
            // The caller may have gone: this process leads all the same.
            let _ = answer.send(Ok(()));
            let (inbox, head, version) = writer.run().await;
            self.inbox = inbox;
            self.follower.go_on_from(head, version);
        }
        self.shared.state.send_replace(State::Closed);
        self.shared.role.send_replace(Role::Following);
    }

    /// Follows until this process is granted the lead; `None` when it is to end.
    async fn follow_until_granted(&mut self) -> Option<LeadershipGrant> {
        let stop = self.shared.stop.clone();
        let mut pause = FIRST_PAUSE;
        loop {
            if !self.follower.is_connected() {
                let connected = tokio::select! {
                    biased;
                    () = stop.cancelled() => return None,
                    connected = self.follower.connect() => connected,
                };
                if let Err(error) = &connected {
                    tracing::debug!(%error, "The store cannot be followed now.");
                }
                if !self.follower.is_connected() {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return None,
                        () = pause_for(&*self.shared.store, pause) => {
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                    }
                    continue;
                }
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                turn = self.grants.recv() => return turn,
                // A request that arrived just as the lead was lost.
                request = self.inbox.recv() => drop(request?.answer.send(Err(LedgerError::NotLeading))),
                () = self.follower.apply_next_commit() => {}
            }
        }
    }
}

/// Watches the epoch, so that an idle leader also learns that another process leads.
pub(crate) struct EpochWatch {
    store: Arc<dyn Store>,
    epoch: u64,
    watch: Option<Watch>,
}

impl EpochWatch {
    pub fn new(store: Arc<dyn Store>, epoch: u64) -> Self {
        Self { store, epoch, watch: None }
    }

    /// Returns once the store has a later epoch. Dropping the future loses nothing.
    pub async fn until_superseded(&mut self) {
        let (store, epoch) = (Arc::clone(&self.store), self.epoch);
        let elsewhere = async {
            match store.membership() {
                // Its own data says nothing new while its disk is full.
                Some(members) => members.until_led_elsewhere(epoch).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.until_raised() => {}
            () = elsewhere => {}
        }
    }

    /// Returns once the store has a later epoch.
    async fn until_raised(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(watch) = &mut self.watch {
                match watch.next().await {
                    Some(WatchItem::Changed { writes, .. }) => {
                        let later = writes.iter().any(|write| is_later(write, self.epoch));
                        if later {
                            return;
                        }
                    }
                    Some(WatchItem::Lost) | None => self.watch = None,
                }
                continue;
            }
            if let Ok(watch) = self.store.watch(EPOCH_KEY).await
                && let Ok(entry) = self.store.get(EPOCH_KEY).await
            {
                if entry.is_some_and(|entry| number(&entry.value) > self.epoch) {
                    return;
                }
                self.watch = Some(watch);
            } else {
                pause_for(&*self.store, pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_later(write: &netstead_store::Write, epoch: u64) -> bool {
    matches!(write, netstead_store::Write::Put(key, value) if key == EPOCH_KEY && number(value) > epoch)
}

/// 0 for a value that is no number: the store reports that when it is asked to lead.
fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}
