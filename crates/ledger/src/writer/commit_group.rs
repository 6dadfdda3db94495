//! A group: the requests that share one commit, with their writes, events and answers.

use std::{collections::HashMap, sync::Arc};

use netstead_model::{Claim, Subject};
use netstead_store::{MAX_BYTES, Write};

use super::{Request, Waiter};
use crate::{
    book::{Batch, MOST_RECORDS, Served},
    command::Reply,
    record::{self, Record, Slot},
    refusal::{LedgerError, Refusal},
};

/// Bytes of a commit left for head and keys.
const SLACK: usize = 16 << 10;

/// The result of one group of requests, before it is durable.
#[derive(Default)]
pub(super) struct Group {
    /// The Book's number before the group.
    pub before: u64,
    pub batch: Batch,
    pub writes: Vec<Write>,
    /// The events as they will be stored, behind each other.
    pub events: Vec<u8>,
    pub write_bytes: usize,
    pub answers: Vec<(Request, Result<Reply, Refusal>)>,
    pub served: Vec<Served>,
    pub timed_out: Vec<(Waiter, Result<Reply, Refusal>)>,
    /// It is unknown whether its commit landed.
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

    /// Whether it changes nothing.
    pub fn is_silent(&self) -> bool {
        self.writes.is_empty() && self.batch.is_empty()
    }

    /// Turns what came to the journal and to the events since `before` into bytes.
    pub fn encode_new(&mut self, before: &Size) {
        let records = self.batch.journal.get(before.records..).unwrap_or_default();
        let mut written: Vec<(&Arc<Claim>, usize)> = Vec::new();
        for record in records {
            let Some(write) = record.write() else { continue };
            if let Record::Slot(_, Some(Slot::Held(claim))) = record {
                written.push((claim, self.writes.len()));
            }
            self.write_bytes += write.bytes();
            self.writes.push(write);
        }
        for event in self.batch.events.get(before.events..).unwrap_or_default() {
            // Most events tell of a claim that was just turned into JSON.
            let claim = event.after.as_ref().and_then(|subject| match subject {
                Subject::Claim(claim) => written.iter().find(|(other, _)| Arc::ptr_eq(other, claim)),
                _ => None,
            });
            let claim = claim.and_then(|(_, place)| match self.writes.get(*place) {
                Some(Write::Put(_, value)) => record::claim_in_slot(value),
                _ => None,
            });
            record::append_event(&mut self.events, event, claim);
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

    /// Answers all callers of the group with an error.
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
    let mut latest: HashMap<&[u8], usize> = HashMap::with_capacity(writes.len());
    latest.extend(writes.iter().enumerate().map(|(place, write)| (write.key().as_slice(), place)));
    if latest.len() == writes.len() {
        return writes;
    }
    let mut kept: Vec<usize> = latest.into_values().collect();
    kept.sort_unstable();
    let mut kept = kept.into_iter().peekable();
    let is_kept = |(place, _): &(usize, Write)| kept.next_if_eq(place).is_some();
    writes.into_iter().enumerate().filter(is_kept).map(|(_, write)| write).collect()
}
