//! A second ledger, as naive as can be: lists that are searched from end to end, and nothing derived.
//!
//! It is written from the ledger's promises, not from the Book, so that a mistake must be made twice to go unseen.
//! Where the promises leave the choice open (an address of a `random` pool), it looks at the Book's answer and accepts
//! any that is allowed.

mod binding;
mod claiming;
mod free_blocks;
mod observing;
mod pooling;
mod queue;
mod releasing;

use std::collections::BTreeMap;

use jiff::Timestamp;
use netstead_ledger::{Caller, Command, Refusal, Reply};
use netstead_model::{Address, Claim, ClaimId, Ident, Observation, Pool, Reservation, Waiting};

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub now: u64,
    pub wall: Timestamp,
    pub ledger: u32,
    /// The number of the last event.
    pub seq: u64,
    pub paused: bool,
    pub pools: BTreeMap<Ident, Pool>,
    pub held: Vec<Held>,
    pub rests: Vec<Rested>,
    pub reservations: Vec<Reservation>,
    pub sightings: Vec<Observation>,
    /// Since when Complete reports of a source lack an address.
    pub missing: BTreeMap<(Ident, Ident, Address), u64>,
    pub queue: Vec<Queued>,
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub claim: Claim,
    pub ends: Option<u64>,
}

/// The last holder of an address, and when it was given back.
#[derive(Debug, Clone)]
pub(crate) struct Rested {
    pub claim: Claim,
    pub vrf: Ident,
    pub freed: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub waiting: Waiting,
    pub heard: u64,
}

/// First and last number, both included.
pub(crate) type Block = (u128, u128);

impl Model {
    pub fn new(ledger: u32, wall: Timestamp, paused: bool) -> Self {
        Self {
            now: 0,
            wall,
            ledger,
            seq: 0,
            paused,
            pools: BTreeMap::new(),
            held: Vec::new(),
            rests: Vec::new(),
            reservations: Vec::new(),
            sightings: Vec::new(),
            missing: BTreeMap::new(),
            queue: Vec::new(),
        }
    }

    /// Answers as the ledger should. What is refused leaves no trace. `hint` is the answer of the Book.
    pub fn run(
        &mut self,
        caller: &Caller,
        command: &Command,
        hint: Option<&Reply>,
    ) -> Result<Reply, Refusal> {
        let mut tried = self.clone();
        let reply = tried.decide(caller, command, hint)?;
        *self = tried;
        Ok(reply)
    }

    fn decide(&mut self, caller: &Caller, command: &Command, hint: Option<&Reply>) -> Result<Reply, Refusal> {
        match command {
            Command::CreatePool(spec) => self.create_pool(spec),
            Command::UpdatePool { spec, if_version } => self.update_pool(spec, *if_version),
            Command::DeletePool { name, force, if_version } => {
                self.delete_pool(name, force.is_some(), *if_version)
            }
            Command::Claim(request) => self.claim(caller, request, hint),
            Command::Release(target) => self.release(caller, target),
            Command::Renew { target, ttl } => self.renew(caller, target, *ttl),
            Command::Move { target, key, owner } => self.move_claim(caller, target, key, owner.as_ref()),
            Command::Reserve { pool, key, range, description } => {
                self.reserve(caller, pool, key, *range, description.clone())
            }
            Command::Unreserve { pool, key } => self.unreserve(caller, pool, key),
            Command::Bulk(entries) => self.bulk(caller, entries, hint),
            Command::Observe(report) => Ok(self.observe(report)),
            Command::Abandon { pool, key } => self.abandon(caller, pool, key),
            Command::SyncFilePools(_) => panic!("the tests of pools have it"),
            Command::AbandonPool { .. } | Command::Draw(_) => panic!("the tests of backends have it"),
            Command::Resume => {
                self.seq += u64::from(self.paused);
                self.paused = false;
                Ok(Reply::Resumed)
            }
        }
    }

    fn bulk(&mut self, caller: &Caller, entries: &[Command], hint: Option<&Reply>) -> Result<Reply, Refusal> {
        let mut replies = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            let (key, alone) = match entry {
                Command::Claim(request) => (&request.key, request.wait.is_some()),
                Command::Release(target) | Command::Renew { target, .. } | Command::Move { target, .. } => {
                    (&target.key, false)
                }
                _ => return Err(invalid("entries")),
            };
            let hint = match hint {
                Some(Reply::Bulk(hints)) => hints.get(place),
                _ => None,
            };
            let decided = if alone { Err(invalid("wait")) } else { self.decide(caller, entry, hint) };
            let refused = |refusal| Refusal::Entry { place, key: key.clone(), refusal: Box::new(refusal) };
            replies.push(decided.map_err(refused)?);
        }
        Ok(Reply::Bulk(replies))
    }

    pub fn pool(&self, name: &Ident) -> Result<&Pool, Refusal> {
        self.pools.get(name).ok_or_else(|| Refusal::NoSuchPool { pool: name.clone() })
    }

    fn next_id(&self) -> ClaimId {
        ClaimId { ledger: self.ledger, seq: self.seq + 1 }
    }

    fn event(&mut self) {
        self.seq += 1;
    }
}

/// The wording of what is invalid is not compared, only the field.
fn invalid(field: &'static str) -> Refusal {
    Refusal::Invalid { field, reason: String::new() }
}

fn may_touch(caller: &Caller, owner: &str) -> bool {
    caller.manager || **caller.owner() == *owner
}
