//! Zone transfers for secondaries: AXFR, and IXFR from the last changes.

use std::sync::Arc;

use crate::{
    wire::{HEADER, Query, Reply, Section, kind, parent},
    zone::{Set, Zone},
};

/// A message is closed once it is this long: room for many records, and small enough to travel well.
const FULL: usize = 16 << 10;

/// The messages of one transfer, made a few at a time.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    zone: &'a Zone,
    query: &'a Query<'a>,
    reply: Reply,
    ready: Vec<Vec<u8>>,
    next_part: usize,
    begun: bool,
    whole: bool,
    done: bool,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(zone: &'a Zone, query: &'a Query<'a>) -> Self {
        let reply = Reply::default();
        Self { zone, query, reply, ready: Vec::new(), next_part: 0, begun: false, whole: true, done: false }
    }

    /// Only the SOA: what is true for a client that is up to date, and all that an IXFR gets over UDP.
    pub(crate) fn only_soa(zone: &Zone, reply: &mut Reply) {
        reply.authoritative();
        reply.record_at(Section::Answer, HEADER, zone.soa());
    }

    /// The next few messages; none when all were given.
    pub(crate) fn next_messages(&mut self) -> Option<Vec<Vec<u8>>> {
        while self.ready.is_empty() && !self.done {
            self.step();
        }
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }

    fn step(&mut self) {
        if !self.begun {
            self.begun = true;
            self.begin();
            self.soa(self.zone.soa());
            if self.query.kind == kind::IXFR {
                self.whole = !self.changes();
            }
            if self.whole
                && self.zone.nodes().get(&self.zone.apex).is_none_or(|apex| apex.set(kind::NS).is_none())
            {
                self.set(&self.zone.apex, self.zone.ns());
            }
            return;
        }
        let part = self.zone.nodes().parts().get(self.next_part).filter(|_| self.whole);
        self.next_part += 1;
        if let Some(part) = part {
            for (owner, node) in part.iter() {
                node.sets().iter().for_each(|set| self.set(owner, set));
            }
        } else {
            if self.whole {
                self.soa(self.zone.soa());
            }
            self.close();
            self.done = true;
        }
    }

    /// Writes the steps from the client's serial to ours; false if they are not known.
    fn changes(&mut self) -> bool {
        let Some(serial) = self.query.serial else { return false };
        // RFC 1982: the client's is not behind ours.
        if self.zone.serial.wrapping_sub(serial).cast_signed() <= 0 {
            return true;
        }
        let Some(steps) = self.zone.history.since(serial) else { return false };
        for step in steps {
            self.soa(&self.zone.soa_of(step.from));
            step.removed.iter().for_each(|(owner, set)| self.set(owner, set));
            self.soa(&self.zone.soa_of(step.to));
            step.added.iter().for_each(|(owner, set)| self.set(owner, set));
        }
        self.soa(self.zone.soa());
        true
    }

    fn begin(&mut self) {
        self.reply.begin(self.query.id, self.query.flags, self.query.question, None);
        self.reply.authoritative();
    }

    fn soa(&mut self, body: &[u8]) {
        self.reply.record_at(Section::Answer, HEADER, body);
        self.close_if_full();
    }

    fn set(&mut self, owner: &[u8], set: &Arc<Set>) {
        let labels = owner.len().saturating_sub(self.zone.apex.len());
        let front = owner.get(..labels).unwrap_or_default();
        for record in &set.records {
            if self.reply.len() + record.len() + owner.len() > usize::from(u16::MAX) - 64 {
                self.close();
                self.begin();
            }
            self.reply.record_below(Section::Answer, front, HEADER, record);
            self.close_if_full();
        }
    }

    fn close_if_full(&mut self) {
        if self.reply.len() > FULL {
            self.close();
            self.begin();
        }
    }

    fn close(&mut self) {
        if self.reply.has_answers() {
            self.ready.push(self.reply.end_message().to_vec());
        }
    }
}

/// The zone whose apex is exactly the name asked for.
pub(crate) fn is_apex(zone: &Zone, name: &[u8]) -> bool {
    *name == *zone.apex && parent(name).is_some()
}
