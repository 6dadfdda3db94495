//! Promise 9: what was seen in use.

use netstead_ledger::{Reply, Report};
use netstead_model::Observation;

use super::Model;

impl Model {
    pub fn observe(&mut self, report: &Report) -> Reply {
        let (mut begun, mut ended) = (0, 0);
        let until = report.ttl.map(|ttl| self.now + ttl.as_millis());
        let mut named = Vec::new();
        for sighting in &report.seen {
            let address = sighting.address;
            if named.contains(&address) {
                continue;
            }
            named.push(address);
            self.missing.remove(&(report.source.clone(), report.vrf.clone(), address));
            let place = self.sightings.iter().position(|seen| {
                seen.address == address && seen.source == report.source && seen.vrf == report.vrf
            });
            let known = place.map(|place| self.sightings[place].clone());
            let fresh = known.as_ref().is_some_and(|known| match (known.until, until) {
                // The end of a scan's sighting moves only when half of its time is over.
                (Some(is), Some(will)) => is + report.ttl.unwrap().as_millis() / 2 >= will,
                (is, will) => is == will,
            });
            if fresh && known.as_ref().is_some_and(|known| known.note == sighting.note) {
                continue;
            }
            begun += usize::from(known.is_none());
            let seen = Observation {
                address,
                vrf: report.vrf.clone(),
                source: report.source.clone(),
                since: known.map_or(self.wall, |known| known.since),
                note: sighting.note.clone(),
                until,
            };
            match place {
                Some(place) => self.sightings[place] = seen,
                None => self.sightings.push(seen),
            }
        }
        if report.complete {
            let lacking = self.sightings.iter().filter(|seen| {
                let theirs = seen.source == report.source && seen.vrf == report.vrf;
                theirs && seen.until.is_none() && !named.contains(&seen.address)
            });
            for address in lacking.map(|seen| seen.address).collect::<Vec<_>>() {
                let key = (report.source.clone(), report.vrf.clone(), address);
                let since = *self.missing.entry(key.clone()).or_insert(self.now);
                if since + report.grace.as_millis() <= self.now {
                    self.missing.remove(&key);
                    self.sightings.retain(|seen| {
                        !(seen.address == address && seen.source == report.source && seen.vrf == report.vrf)
                    });
                    ended += 1;
                }
            }
        }
        Reply::Observed { begun, ended, more: false }
    }
}
