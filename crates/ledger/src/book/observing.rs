//! The command *observe*: addresses that sources have seen in use.
//!
//! A sighting begins when it is reported. It ends when complete reports of the same source lack it for longer than a grace
//! period, never by age alone. A sighting outside of all pools is kept too: a pool made there later must not hand the address
//! out before the next report.

use std::{collections::HashSet, sync::Arc};

use netstead_model::{Address, Ident, Observation};

use super::{Book, transaction::Transaction};
use crate::{
    command::{Reply, Report},
    record::Record,
};

/// Sightings that begin or end with one commit.
const CHANGES_AT_ONCE: usize = 64;

impl Transaction<'_> {
    pub fn observe(&mut self, report: &Report) -> Reply {
        let mut changes: Vec<Record> = Vec::new();
        let mut begun = 0;
        let until = report.ttl.map(|ttl| self.moment.now.saturating_add(ttl.as_millis()));
        let mut seen = HashSet::with_capacity(report.seen.len());
        for sighting in &report.seen {
            // Several machines may have it; the first gives the note.
            if !seen.insert(sighting.address) {
                continue;
            }
            self.book.missing.remove(&(report.source.clone(), report.vrf.clone(), sighting.address));
            let known = self.book.sighting(&report.vrf, sighting.address, &report.source);
            // A scan that comes again moves the end, but not for every second of it.
            let fresh_enough = |known: &Observation| match (known.until, until) {
                (Some(is), Some(will)) => {
                    is.saturating_add(report.ttl.unwrap_or_default().as_millis() / 2) >= will
                }
                (is, will) => is == will,
            };
            if known.is_some_and(|known| known.note == sighting.note && fresh_enough(known)) {
                continue;
            }
            begun += usize::from(known.is_none());
            let value = Observation {
                address: sighting.address,
                vrf: report.vrf.clone(),
                source: report.source.clone(),
                since: known.map_or(self.moment.wall, |known| known.since),
                note: sighting.note.clone(),
                until,
            };
            changes.push(record(report, sighting.address, Some(Arc::new(value))));
        }
        let mut ended = 0;
        if report.complete {
            for address in self.book.lacking(report, &seen, self.moment.now) {
                ended += 1;
                changes.push(record(report, address, None));
            }
        }
        let more = changes.len() > CHANGES_AT_ONCE;
        for change in changes.into_iter().take(CHANGES_AT_ONCE) {
            self.put(change);
        }
        Reply::Observed { begun, ended, more }
    }
}

fn record(report: &Report, address: Address, value: Option<Arc<Observation>>) -> Record {
    Record::Observation { vrf: report.vrf.clone(), address, source: report.source.clone(), value }
}

impl Book {
    fn sighting(&self, vrf: &Ident, address: Address, source: &Ident) -> Option<&Arc<Observation>> {
        self.observed.get(&(vrf.clone(), address.kind()))?.get(&address.number())?.get(source)
    }

    /// The sightings of the source that this Complete report lacks, and that earlier ones have lacked for `grace`.
    fn lacking(&mut self, report: &Report, seen: &HashSet<Address>, now: u64) -> Vec<Address> {
        let fields = self.observed.iter().filter(|((vrf, _), _)| *vrf == report.vrf);
        let of_source = fields.flat_map(|(_, field)| field.values()).filter_map(|s| s.get(&report.source));
        let lacking: Vec<Address> = of_source
            .filter(|s| s.until.is_none())
            .map(|s| s.address)
            .filter(|a| !seen.contains(a))
            .collect();
        let grace = report.grace.as_millis();
        lacking
            .into_iter()
            .filter(|address| {
                let key = (report.source.clone(), report.vrf.clone(), *address);
                let since = *self.missing.entry(key).or_insert(now);
                since.saturating_add(grace) <= now
            })
            .collect()
    }
}
