//! Promise 7: first come, first served; and what happens by itself as time goes by.

use netstead_ledger::{Caller, Refusal, Reply, book::Served};
use netstead_model::{Claim, ClaimRequest, Details, Ident, Key, Pool, PoolChoice, Waiting, Want};

use super::{
    Model, Queued,
    binding::{details, lifetime},
    may_touch,
    releasing::IsFor as _,
};

impl Model {
    pub fn queue_up(
        &mut self,
        caller: &Caller,
        pools: &[Ident],
        request: &ClaimRequest,
        has: Option<&Waiting>,
    ) -> Reply {
        let now = self.now;
        if let Some(queued) = has.and_then(|has| self.queue.iter_mut().find(|q| q.waiting.seq == has.seq)) {
            queued.heard = now;
            let before = queued.waiting.clone();
            let waiting = &mut queued.waiting;
            waiting.ttl = lifetime(before.ttl, request.ttl);
            waiting.details = details(&before.details, request).map_or_else(Details::default, |d| *d);
            waiting.keep = request.keep;
            let changed = *waiting != before;
            if changed {
                (waiting.by, waiting.request) = (Some(caller.subject.clone()), caller.request.clone());
            }
            let reply = Reply::Queued(waiting.clone().into());
            self.seq += u64::from(changed);
            return reply;
        }
        let waiting = Waiting {
            seq: self.seq + 1,
            key: request.key.clone(),
            owner: caller.owner().clone(),
            by: Some(caller.subject.clone()),
            request: caller.request.clone(),
            pools: pools.to_vec(),
            since: self.wall,
            length: request.length,
            ttl: lifetime(None, request.ttl),
            details: details(&Details::default(), request).map_or_else(Details::default, |d| *d),
            keep: request.keep,
            draw: None,
        };
        self.event();
        self.queue.push(Queued { waiting: waiting.clone(), heard: now });
        Reply::Queued(waiting.into())
    }

    pub fn abandon(&mut self, caller: &Caller, pool: &Ident, key: &Key) -> Result<Reply, Refusal> {
        self.pool(pool)?;
        let mut gone = false;
        while let Some(place) = self.queue.iter().position(|queued| queued.waiting.is_for(pool, key)) {
            let owner = self.queue[place].waiting.owner.clone();
            if !may_touch(caller, &owner) {
                return Err(Refusal::NotYours { pool: pool.clone(), key: key.clone(), owner });
            }
            self.queue.remove(place);
            self.event();
            gone = true;
        }
        Ok(Reply::Gone(gone))
    }

    /// The first who waits for this pool and could be served by it, had it room.
    pub fn first_in_line(&self, pool: &Pool) -> Option<&Waiting> {
        let waiting = self.queue.iter().map(|queued| &queued.waiting);
        waiting.filter(|waiting| waiting.pools.contains(pool.name())).find(|waiting| {
            self.length_in(pool, waiting.length).is_ok() && self.check_quota(pool, &waiting.owner).is_ok()
        })
    }

    /// Leases end, scans grow old, the silent leave, and the queue moves. `hints` is what the Book did.
    pub fn housekeep(&mut self, now: u64, hints: &[Served]) -> Vec<(u64, Claim)> {
        self.now = now;
        self.end_leases();
        self.sightings.retain(|seen| seen.until.is_none_or(|until| until > now));
        let before = self.queue.len();
        self.queue.retain(|queued| queued.waiting.keep || queued.heard + 30_000 > now);
        self.seq += (before - self.queue.len()) as u64;
        let mut served = Vec::new();
        while let Some((waiting, claim)) = self.serve_one(hints.get(served.len())) {
            served.push((waiting, claim));
        }
        served
    }

    fn end_leases(&mut self) {
        let over = self.held.iter().filter(|held| held.ends.is_some_and(|ends| ends <= self.now));
        let mut over: Vec<_> =
            over.map(|held| (held.claim.pool.clone(), held.ends, held.claim.clone())).collect();
        over.sort_by_key(|(pool, ends, claim)| (pool.clone(), *ends, claim.address));
        for (_, _, claim) in over {
            let place = self.held.iter().position(|held| held.claim.id == claim.id).unwrap();
            if self.free(place).is_err() {
                // A pool lies in it: it stays for another term.
                self.held[place] = self.leased(claim);
            }
        }
    }

    fn serve_one(&mut self, hint: Option<&Served>) -> Option<(u64, Claim)> {
        if self.paused {
            return None;
        }
        let hint = hint.map(|served| Reply::Claimed {
            claim: served.claim.clone(),
            outcome: netstead_ledger::Outcome::Created,
        });
        let pools = &self.pools;
        let mut choices = self.queue.iter().flat_map(|queued| {
            let waiting = &queued.waiting;
            waiting.pools.iter().map(move |name| (waiting, &pools[name]))
        });
        let (waiting, found) = choices.find_map(|(waiting, pool)| {
            let first = self.first_in_line(pool)?;
            let length = self.length_in(pool, waiting.length).ok()?;
            let room = || self.pick(pool, length, hint.as_ref()).or_else(|| self.pick_early(pool, length));
            let start = if first.seq == waiting.seq { room()? } else { return None };
            Some((waiting.clone(), (pool.name().clone(), start, length)))
        })?;
        self.queue.retain(|queued| queued.waiting.seq != waiting.seq);
        let request = ClaimRequest {
            key: waiting.key,
            from: PoolChoice::Pools(Vec::new()),
            want: Want::Any,
            length: waiting.length,
            ttl: waiting.ttl,
            labels: Some(waiting.details.labels),
            hostnames: Some(waiting.details.hostnames),
            description: waiting.details.description,
            adopt: false,
            force: false,
            wait: None,
            keep: false,
        };
        let claim = self.bind(&Caller::new(&waiting.owner), &found, &request);
        Some((waiting.seq, claim))
    }
}
