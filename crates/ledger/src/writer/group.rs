//! The requests that share one commit.

use std::collections::HashMap;

use netstead_store::{MAX_BYTES, Write};

use super::{Request, Waiter};
use crate::{
    book::{Batch, MOST_RECORDS, Served},
    command::Reply,
    record,
    refusal::{LedgerError, Refusal},
};

/// Bytes of a commit left for head and keys.
const SLACK: usize = 16 << 10;

/// What one group of requests came to, before it is durable.
#[derive(Default)]
pub(super) struct Group {
    pub batch: Batch,
    pub writes: Vec<Write>,
    /// The events as they will be stored, behind each other.
    pub events: Vec<u8>,
    pub write_bytes: usize,
    pub answers: Vec<(Request, Result<Reply, Refusal>)>,
    pub served: Vec<Served>,
    pub timed_out: Vec<(Waiter, Refusal)>,
    /// Nobody knows whether its commit landed.
    pub unsure: bool,
}

/// How far a group had come, to go back there.
pub(super) struct Size {
    pub records: usize,
    pub events: usize,
    pub writes: usize,
    pub write_bytes: usize,
    pub event_bytes: usize,
}

impl Group {
    pub fn size(&self) -> Size {
        Size {
            records: self.batch.journal.len(),
            events: self.batch.events.len(),
            writes: self.writes.len(),
            write_bytes: self.write_bytes,
            event_bytes: self.events.len(),
        }
    }

    /// Turns what came to the journal and to the events since `before` into bytes.
    pub fn encode_new(&mut self, before: &Size) {
        for write in self.batch.journal.iter().skip(before.records).filter_map(record::Record::write) {
            self.write_bytes += write.bytes();
            self.writes.push(write);
        }
        for event in self.batch.events.iter().skip(before.events) {
            record::append(&mut self.events, event);
        }
    }

    pub fn shrink(&mut self, to: &Size) {
        self.writes.truncate(to.writes);
        self.write_bytes = to.write_bytes;
        self.events.truncate(to.event_bytes);
    }

    pub fn fits(&self) -> bool {
        self.writes.len() <= MOST_RECORDS && self.write_bytes + self.events.len() + SLACK <= MAX_BYTES
    }

    /// Tells everybody in it.
    pub fn fail(self, error: &LedgerError) {
        for (request, _) in self.answers {
            let _ = request.answer.send(Err(error.clone()));
        }
        for (waiter, _) in self.timed_out {
            let _ = waiter.request.answer.send(Err(error.clone()));
        }
    }
}

/// A commit names each key once: of several writes to one, the last.
pub(super) fn last_of_each(writes: Vec<Write>) -> Vec<Write> {
    let mut places: HashMap<Vec<u8>, usize> = HashMap::with_capacity(writes.len());
    let mut kept: Vec<Option<Write>> = Vec::with_capacity(writes.len());
    for write in writes {
        let place = kept.len();
        if let Some(former) = places.insert(write.key().clone(), place)
            && let Some(slot) = kept.get_mut(former)
        {
            *slot = None;
        }
        kept.push(Some(write));
    }
    kept.into_iter().flatten().collect()
}
