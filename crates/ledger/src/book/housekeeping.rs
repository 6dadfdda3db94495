//! Housekeeping, which needs no request: leases end, waiting claims get addresses, sightings end.

use std::sync::Arc;

use netstead_model::{Claim, EventKind};

use super::{
    Batch, Book, Moment,
    pool_state::PoolState,
    transaction::{MOST_RECORDS, Transaction},
    wait_queue::{SILENCE_MS, may_lapse, request_of},
};
use crate::{
    command::Caller,
    record::{Record, Slot},
};

/// A waiting claim that got its address.
#[derive(Debug, Clone)]
pub struct Served {
    /// Its place in the queue.
    pub waiting: u64,
    pub claim: Arc<Claim>,
}

impl Book {
    /// When housekeeping next has something to do, in ledger time.
    pub fn next_due(&self) -> Option<u64> {
        if self.next_served().is_some() {
            return Some(self.now);
        }
        let leases = self.pools.values().filter_map(PoolState::first_lease).map(|(end, _)| end);
        let rests =
            self.pools.values().filter(|s| !s.waiting.is_empty()).filter_map(|s| s.next_rest_end(self.now));
        let sightings = self.sighting_ends.first().map(|(end, ..)| *end);
        if self.next_emptied_pool().is_some() {
            return Some(self.now);
        }
        let silence =
            self.heard.iter().filter(|(seq, _)| self.waiting.get(seq).is_some_and(|w| may_lapse(w)));
        let silence = silence.map(|(_, heard)| heard.saturating_add(SILENCE_MS)).min();
        leases.chain(rests).chain(sightings).chain(silence).min()
    }

    /// Whether something waits for ledger time to pass, so that it must be kept in the store.
    pub fn depends_on_time(&self) -> bool {
        let resting = || self.pools.values().any(|state| state.next_rest_end(self.now).is_some());
        self.next_due().is_some() || resting()
    }

    /// Does what is due, as far as the batch has room.
    pub fn housekeep(&mut self, batch: &mut Batch, moment: Moment) -> Vec<Served> {
        self.housekeep_up_to(MOST_RECORDS, batch, moment)
    }

    /// Does what is due, until the batch has `most` records.
    pub fn housekeep_up_to(&mut self, most: usize, batch: &mut Batch, moment: Moment) -> Vec<Served> {
        self.advance(moment.now);
        let system = Caller::new("netstead").manager();
        self.end_leases(most, batch, moment, &system);
        self.end_sightings(most, batch, moment, &system);
        for waiting in self.silent(most.saturating_sub(batch.len())) {
            let mut turn = Transaction { book: self, batch, moment, caller: &system };
            turn.leave_queue(&waiting, "its caller went away");
        }
        self.remove_emptied_pools(most, batch, moment, &system);
        self.serve_queue(most, batch, moment)
    }

    fn end_leases(&mut self, most: usize, batch: &mut Batch, moment: Moment, system: &Caller) {
        let due: Vec<Arc<Claim>> = self
            .pools
            .values()
            .flat_map(|state| state.ended_leases(moment.now))
            .take(most.saturating_sub(batch.len()))
            .collect();
        for claim in due {
            let mark = self.savepoint(batch);
            let mut turn = Transaction { book: self, batch, moment, caller: system };
            if turn.free(&claim, EventKind::Expired, Some("it was not renewed")).is_err() {
                // A prefix that carries a pool cannot go: it gets its time again, and the pool's owner sees why.
                self.rewind(batch, mark);
                self.renew_lease(&claim);
            }
        }
    }

    fn end_sightings(&mut self, most: usize, batch: &mut Batch, moment: Moment, system: &Caller) {
        while let Some((end, vrf, address, source)) = self.sighting_ends.first().cloned() {
            if end > moment.now || batch.len() >= most {
                break;
            }
            let mut turn = Transaction { book: self, batch, moment, caller: system };
            turn.put(Record::Observation { vrf, address, source, value: None });
        }
    }

    /// First come, first served.
    fn serve_queue(&mut self, most: usize, batch: &mut Batch, moment: Moment) -> Vec<Served> {
        let mut served = Vec::new();
        while batch.len() + 3 <= most {
            let Some((waiting, pool)) = self.next_served() else { break };
            let (caller, request) = request_of(&waiting, &pool);
            let mark = self.savepoint(batch);
            let mut turn = Transaction { book: self, batch, moment, caller: &caller };
            let Some(claim) = turn.serve(&waiting, &pool, &request) else {
                self.rewind(batch, mark);
                break;
            };
            served.push(Served { waiting: waiting.seq, claim });
        }
        served
    }
}

impl PoolState {
    fn ended_leases(&self, now: u64) -> impl Iterator<Item = Arc<Claim>> {
        self.leases_until(now).filter_map(|number| match self.slots.get(&number) {
            Some(Slot::Held(claim)) => Some(claim.clone()),
            _ => None,
        })
    }
}
