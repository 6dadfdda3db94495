//! Follows etcd from a revision on, over lost connections and changed endpoints.
//!
//! It continues after the revision of the last event, never after a progress notice: some versions of etcd send a notice
//! before the events it speaks of.

use std::{sync::Arc, time::Duration};

use netstead_wire::etcd::{
    Questions, WATCH,
    messages::{Event, KeyValue, WatchCreateRequest, WatchRequest, WatchResponse},
};
use tokio::time::{sleep, timeout};
use tonic::{Status, Streaming};

use super::{EtcdShared, bare};
use crate::{Key, Version, WatchItem, Write, watch::Watcher};

/// Pauses between attempts to connect again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a watch looks whether its endpoint is still the one that answers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a watch that ends with its store waits for what was committed before.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The end of a watch.
enum WatchEnd {
    /// Commits between were compacted away, or the watch was dropped.
    Over,
    /// The store was closed.
    Closed,
}

pub(super) struct EtcdWatch {
    pub(super) shared: Arc<EtcdShared>,
    pub(super) watcher: Watcher,
    pub(super) first: Key,
    pub(super) end: Key,
    /// The revision to go on from.
    pub(super) next: i64,
}

impl EtcdWatch {
    /// Runs until the watch is dropped, is lost, or the store is closed.
    pub(super) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = self.next;
            match self.connected().await {
                Err(WatchEnd::Over | WatchEnd::Closed) => return,
                Ok(status) => tracing::debug!(%status, "A watch of etcd broke off; it is begun again."),
            }
            if self.next > began {
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                () = self.shared.closed.cancelled() => return,
                () = self.watcher.gone() => return,
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    /// One connection's worth; returns why it broke off.
    async fn connected(&mut self) -> Result<Status, WatchEnd> {
        let create = WatchCreateRequest {
            key: self.first.clone(),
            range_end: self.end.clone(),
            start_revision: self.next,
        };
        let questions = Questions::one(WatchRequest { create: Some(create) });
        let client = &self.shared.client;
        let at = client.current_endpoint();
        let mut answers: Streaming<WatchResponse> = match client.stream(at, WATCH, questions).await {
            Ok(answers) => answers,
            Err(status) => return Ok(status),
        };
        loop {
            let answer = tokio::select! {
                biased;
                answer = answers.message() => answer,
                () = self.watcher.gone() => return Err(WatchEnd::Over),
                // A connection to nowhere is silent, and so is one on which nothing happens.
                () = sleep(POLL_INTERVAL) => {
                    if self.shared.client.current_endpoint() == at {
                        continue;
                    }
                    return Ok(Status::unavailable("another endpoint answers"));
                }
                () = self.shared.closed.cancelled() => return self.last_words(answers).await,
            };
            match answer {
                Ok(Some(answer)) => {
                    if let Some(status) = self.forward_response(answer)? {
                        return Ok(status);
                    }
                }
                Ok(None) => return Ok(Status::unavailable("etcd ended the watch")),
                Err(status) => {
                    self.shared.client.leave(at);
                    return Ok(status);
                }
            }
        }
    }

    /// Commits from before the store was closed still arrive.
    async fn last_words(&mut self, mut answers: Streaming<WatchResponse>) -> Result<Status, WatchEnd> {
        let last = self.shared.last_commit();
        while self.next <= last {
            match timeout(LAST_WORDS, answers.message()).await {
                Ok(Ok(Some(answer))) => {
                    self.forward_response(answer)?;
                }
                _ => break,
            }
        }
        Err(WatchEnd::Closed)
    }

    fn forward_response(&mut self, answer: WatchResponse) -> Result<Option<Status>, WatchEnd> {
        if answer.compact_revision > 0 {
            self.watcher.lose();
            return Err(WatchEnd::Over);
        }
        if answer.canceled {
            return Ok(Some(Status::unavailable(answer.cancel_reason)));
        }
        let mut events = answer.events.into_iter().filter_map(change).peekable();
        while let Some((revision, write)) = events.next() {
            let mut writes = vec![write];
            while let Some((_, write)) = events.next_if(|(next, _)| *next == revision) {
                writes.push(write);
            }
            // A new connection may repeat what the last one brought.
            if revision < self.next {
                continue;
            }
            self.next = revision + 1;
            for write in &mut writes {
                bare(&self.shared.prefix, write);
            }
            let version = Version(revision.unsigned_abs());
            if !self.watcher.forward(WatchItem::Changed { version, writes: Arc::new(writes) }) {
                return Err(WatchEnd::Over);
            }
        }
        Ok(None)
    }
}

fn change(event: Event) -> Option<(i64, Write)> {
    let KeyValue { key, mod_revision, value, .. } = event.kv?;
    let write = if event.kind == 0 { Write::Put(key, value) } else { Write::Delete(key) };
    Some((mod_revision, write))
}
