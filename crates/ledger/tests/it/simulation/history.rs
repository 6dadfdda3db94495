//! The history of the store, commit by commit: the truth of the simulation.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use netstead_ledger::record::{self, EventGroup, HEAD_KEY, Head, Record, Slot};
use netstead_model::{Address, Claim, ClaimId, Event, EventKind, Key, Subject};
use netstead_store::{Commit, EPOCH_KEY, Write};

pub(super) type Claims = BTreeMap<Address, Arc<Claim>>;

/// The ledger as one commit left it.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub at: Duration,
    pub claims: Arc<Claims>,
    pub resting: Arc<BTreeMap<Address, Key>>,
    pub waiting: Arc<BTreeMap<u64, Key>>,
    pub events: Vec<Arc<Event>>,
}

/// How long a claim was held.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub address: Address,
    pub until: Option<Duration>,
    pub expired: bool,
}

#[derive(Debug, Default)]
pub(super) struct History {
    pub head: Option<Head>,
    epoch: u64,
    /// By sequence number.
    pub states: BTreeMap<u64, State>,
    pub lives: BTreeMap<ClaimId, Life>,
    pub events: BTreeMap<u64, Arc<Event>>,
    slots: BTreeMap<Vec<u8>, Slot>,
    waiting: BTreeMap<u64, Key>,
}

impl History {
    pub fn seq(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.seq)
    }

    /// Takes one commit in, and says what is wrong with it or what happened in it.
    pub fn record_commit(&mut self, now: Duration, commit: &Commit) -> Result<Vec<Arc<Event>>, String> {
        self.count_epoch(commit)?;
        let ours = |write: &&Write| write.key().starts_with(record::PREFIX.as_bytes());
        if !commit.writes.iter().any(|write| ours(&write)) {
            return Ok(Vec::new());
        }
        let last = self.seq();
        let head = self.replace_head(commit)?;
        let events = events_of(commit, last)?;
        // Followers rely on it that numbers leave nothing out; a commit without events counts as one.
        let mut before = last;
        if events.is_empty() && head.seq != last + 1 {
            return Err(format!("the head went from {last} to {} without events", head.seq));
        }
        for event in &events {
            if event.seq != before + 1 || event.seq > head.seq {
                return Err(format!("event {} came after {before}, under head {}", event.seq, head.seq));
            }
            before = event.seq;
            self.events.insert(event.seq, event.clone());
        }
        for write in commit.writes.iter().filter(ours) {
            self.write(now, write, &events)?;
        }
        let mut state = State {
            at: now,
            claims: Arc::default(),
            resting: Arc::default(),
            waiting: Arc::new(self.waiting.clone()),
            events: events.clone(),
        };
        let mut keys = BTreeMap::new();
        for slot in self.slots.values() {
            match slot {
                Slot::Held(claim) => {
                    if let Some(other) = keys.insert(claim.key.clone(), claim.address) {
                        return Err(format!("`{}` holds {other} and {}", claim.key, claim.address));
                    }
                    Arc::make_mut(&mut state.claims).insert(claim.address, claim.clone());
                }
                Slot::Rested(rest) => {
                    Arc::make_mut(&mut state.resting).insert(rest.address, rest.key.clone());
                }
            }
        }
        self.states.insert(head.seq, state);
        Ok(events)
    }

    fn count_epoch(&mut self, commit: &Commit) -> Result<(), String> {
        for write in commit.writes.iter().filter(|write| write.key() == EPOCH_KEY) {
            let Write::Put(_, value) = write else { return Err("the epoch was removed".into()) };
            let epoch: u64 = String::from_utf8_lossy(value).parse().map_err(|_| "an epoch is no number")?;
            if epoch <= self.epoch {
                return Err(format!("epoch {epoch} came after {}", self.epoch));
            }
            self.epoch = epoch;
        }
        Ok(())
    }

    /// Every commit of the ledger replaces the head, and nothing in it ever goes back.
    fn replace_head(&mut self, commit: &Commit) -> Result<Head, String> {
        let head = commit.writes.iter().find_map(|write| match write {
            Write::Put(key, value) if key == HEAD_KEY.as_bytes() => Some(record::decode::<Head>(key, value)),
            _ => None,
        });
        let head = head.ok_or("a commit of the ledger left its head alone")?.map_err(|e| e.to_string())?;
        if let Some(last) = &self.head
            && (head.ledger != last.ledger
                || head.seq <= last.seq
                || head.epoch < last.epoch
                || head.time < last.time
                || head.oldest < last.oldest)
        {
            return Err(format!("the head went from {last:?} to {head:?}"));
        }
        self.head = Some(head.clone());
        Ok(head)
    }

    fn write(&mut self, now: Duration, write: &Write, events: &[Arc<Event>]) -> Result<(), String> {
        let key = write.key();
        let text = String::from_utf8_lossy(key);
        if let Some(seq) = text.strip_prefix("ledger/wait/") {
            let seq = u64::from_str_radix(seq, 16).map_err(|error| error.to_string())?;
            let record = match write {
                Write::Put(key, value) => Record::decode(key, value).map_err(|error| error.to_string())?,
                Write::Delete(_) => None,
            };
            match record {
                Some(Record::Waiting(_, Some(waiting))) => self.waiting.insert(seq, waiting.key.clone()),
                _ => self.waiting.remove(&seq),
            };
        }
        if !text.starts_with("ledger/addr/") {
            return Ok(());
        }
        let new = match write {
            Write::Put(key, value) => match Record::decode(key, value).map_err(|error| error.to_string())? {
                Some(Record::Slot(_, slot)) => slot,
                other => return Err(format!("{text} holds {other:?}")),
            },
            Write::Delete(_) => None,
        };
        let old = match &new {
            Some(slot) => self.slots.insert(key.clone(), slot.clone()),
            None => self.slots.remove(key),
        };
        self.hand_over(now, old.as_ref(), new.as_ref(), events)
    }

    /// An address passes from one to the other only by a release, or by the end of a lease, that is told of.
    fn hand_over(
        &mut self,
        now: Duration,
        old: Option<&Slot>,
        new: Option<&Slot>,
        events: &[Arc<Event>],
    ) -> Result<(), String> {
        let held = |slot: Option<&Slot>| match slot {
            Some(Slot::Held(claim)) => Some(claim.clone()),
            _ => None,
        };
        let (before, after) = (held(old), held(new));
        if before.as_ref().map(|claim| claim.id) == after.as_ref().map(|claim| claim.id) {
            return Ok(());
        }
        if let Some(gone) = before {
            let ends = |event: &&Arc<Event>| {
                matches!(event.what, EventKind::Released | EventKind::Expired)
                    && event.claim().is_some_and(|claim| claim.id == gone.id)
            };
            let Some(end) = events.iter().find(ends) else {
                return Err(format!("{} of {} ended without an event", gone.address, gone.key));
            };
            let life = self.lives.get_mut(&gone.id).ok_or("a claim ended that never was")?;
            (life.until, life.expired) = (Some(now), end.what == EventKind::Expired);
        }
        if let Some(begun) = after {
            let life = Life { address: begun.address, until: None, expired: false };
            if self.lives.insert(begun.id, life).is_some() {
                return Err(format!("the id {} was given twice", begun.id));
            }
        }
        Ok(())
    }

    /// The states that stood at some time from `since` on.
    pub fn states_since(&self, since: Duration) -> impl Iterator<Item = &State> {
        let first = self.states.iter().rev().find(|(_, state)| state.at <= since).map_or(0, |(seq, _)| *seq);
        self.states.range(first..).map(|(_, state)| state)
    }

    /// Whether a Book with this number may hold just these claims.
    pub fn compare(&self, seq: u64, seen: &Claims) -> Result<(), String> {
        if seq > self.seq() {
            return Err(format!("number {seq} was seen, and the store has {}", self.seq()));
        }
        if let Some(state) = self.states.get(&seq) {
            if *state.claims == *seen {
                return Ok(());
            }
            return Err(format!(
                "at {seq} the store has {}, and seen was {}",
                list(&state.claims),
                list(seen)
            ));
        }
        // Within a group that shares a commit: some of what it did is there already.
        let before = self.states.range(..seq).next_back().map(|(_, state)| state);
        let after = self.states.range(seq..).next().map(|(_, state)| state);
        let none = Claims::new();
        let (before, events) =
            (before.map_or(&none, |state| &state.claims), after.map_or(&[][..], |state| &state.events));
        let mut claims = before.clone();
        for event in events.iter().filter(|event| event.seq <= seq) {
            if let Some(Subject::Claim(claim)) = &event.before {
                claims.remove(&claim.address);
            }
            if let Some(Subject::Claim(claim)) = &event.after {
                claims.insert(claim.address, claim.clone());
            }
        }
        if claims == *seen {
            return Ok(());
        }
        Err(format!("within a group at {seq} there is {}, and seen was {}", list(&claims), list(seen)))
    }
}

/// The new events: trimming writes old ones anew.
fn events_of(commit: &Commit, last: u64) -> Result<Vec<Arc<Event>>, String> {
    for write in &commit.writes {
        if let Write::Put(key, value) = write
            && record::event_seq(key).is_some_and(|first| first > last)
        {
            let group: EventGroup = record::decode(key, value).map_err(|error| error.to_string())?;
            return Ok(group.events);
        }
    }
    Ok(Vec::new())
}

fn list(claims: &Claims) -> String {
    let shown = claims.values().map(|claim| format!("{} {} {}", claim.address, claim.key, claim.id));
    shown.collect::<Vec<_>>().join(", ")
}
