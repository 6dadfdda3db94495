//! Compares what everybody was told with what the store has held.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use netstead_ledger::{Done, LedgerError, Outcome, Refusal, Reply};
use netstead_model::{Address, Claim, ClaimId, Event, EventKind, Key, Released, Want};
use netstead_store::Commit;

use super::history::{Claims, History};

/// Addresses of the one pool there is.
pub(super) const ADDRESSES: u64 = 12;

/// Clocks of machines are wrong by at most three of a hundred; a little more is allowed for steps of time.
pub(super) fn at_least(ttl: Duration) -> Duration {
    ttl.mul_f64(0.95)
}

/// One try to get something done.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub number: u64,
    pub request: Arc<str>,
    pub sent: Duration,
    /// Where the store stood when it was sent.
    pub head: u64,
}

/// A client uses an address because an answer said that it is its own.
#[derive(Debug, Clone)]
struct Reliance {
    id: ClaimId,
    key: Key,
    until: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    pub now: Duration,
    pub history: History,
    pub wrong: Option<String>,
    pub trace: Vec<String>,
    pub answers: u64,
    /// Trimming is no excuse for events that were never reported.
    strict: bool,
    attempts: u64,
    /// Those who asked were told that nothing was done.
    undone: BTreeSet<Arc<str>>,
    done: BTreeSet<Arc<str>>,
    relied: BTreeMap<Address, Reliance>,
    /// The newest state that each process has shown.
    shown: BTreeMap<u64, u64>,
    /// The last event each process was heard to tell of.
    heard: BTreeMap<u64, u64>,
    /// Until when a lease cannot have ended.
    leases: BTreeMap<ClaimId, Duration>,
}

impl Judge {
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        self.trace.push(format!("{:>8} {}", self.now.as_millis(), what()));
    }

    pub fn wrong(&mut self, what: String) {
        self.note(|| format!("WRONG: {what}"));
        self.wrong.get_or_insert(what);
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what());
        }
    }

    pub fn committed(&mut self, at: Duration, machine: usize, commit: &Commit) {
        match self.history.record_commit(at, commit) {
            Ok(events) => {
                let seq = self.history.seq();
                let kinds: Vec<_> = events
                    .iter()
                    .map(|event| {
                        let claim = event.claim().map(|claim| format!(" {} {}", claim.address, claim.key));
                        format!("{}{}", event.what.as_str(), claim.unwrap_or_default())
                    })
                    .collect();
                let writes = commit.writes.len();
                self.note(|| format!("commit from {machine}: {writes} writes, {seq}, {}", kinds.join(", ")));
                for event in events {
                    self.happened(at, &event);
                }
            }
            Err(problem) => self.wrong(problem),
        }
    }

    fn happened(&mut self, at: Duration, event: &Event) {
        if let Some(request) = &event.request {
            self.done.insert(request.clone());
            let undone = self.undone.contains(request);
            self.expect(!undone, || format!("{request} was told that nothing was done, and then it was"));
        }
        if event.what == EventKind::Expired
            && let Some(claim) = event.claim()
            && let Some(end) = self.leases.get(&claim.id).copied()
        {
            self.expect(at >= end, || format!("the lease of {} ended at {at:?}, before {end:?}", claim.key));
        }
    }

    pub fn attempt(&mut self, who: &str) -> Attempt {
        self.attempts += 1;
        let request = format!("{who}-{}", self.attempts).into();
        Attempt { number: self.attempts, request, sent: self.now, head: self.history.seq() }
    }

    /// A claim was answered.
    pub fn claimed(&mut self, attempt: &Attempt, claim: &Claim, outcome: Outcome, waited: bool) {
        self.held(attempt, claim);
        if outcome == Outcome::Created && !waited {
            let done = self.done.contains(&attempt.request);
            self.expect(done, || format!("{} was told of a new claim that is not stored", attempt.request));
        }
        let other = self.relied.iter().find(|(_, r)| r.key == claim.key && r.id != claim.id && self.lasts(r));
        if let Some((address, _)) = other {
            let text = format!("`{}` has {address}, asked again and got {}", claim.key, claim.address);
            self.wrong(text);
        }
        self.rely(attempt, claim);
    }

    /// The claim was held at some time between question and answer, just so.
    pub fn held(&mut self, attempt: &Attempt, claim: &Claim) {
        let Some(life) = self.history.lives.get(&claim.id).cloned() else {
            return self.wrong(format!("{} was told of {}, which is not stored", attempt.request, claim.id));
        };
        self.expect(life.address == claim.address, || format!("{} is not at {}", claim.id, claim.address));
        self.expect(life.until.is_none_or(|until| until >= attempt.sent), || {
            format!("{} was told of {}, which had ended", attempt.request, claim.address)
        });
        if let Some(ttl) = claim.ttl {
            let end = attempt.sent + at_least(ttl.into());
            let early = life.expired && life.until.is_some_and(|until| until < end);
            self.expect(!early, || format!("the lease of {} ended early", claim.key));
        }
    }

    /// From here on until it lets go, the client uses the address.
    pub fn rely(&mut self, attempt: &Attempt, claim: &Claim) {
        let until = claim.ttl.map(|ttl| attempt.sent + at_least(ttl.into()));
        if let Some(end) = until {
            let lease = self.leases.entry(claim.id).or_default();
            *lease = end.max(*lease);
        }
        if let Some(before) = self.relied.get(&claim.address)
            && before.id != claim.id
            && self.lasts(before)
        {
            let text =
                format!("{} is held by `{}` and by `{}` at once", claim.address, before.key, claim.key);
            self.wrong(text);
        }
        let until = until.max(self.leases.get(&claim.id).copied().filter(|_| claim.ttl.is_some()));
        self.relied.insert(claim.address, Reliance { id: claim.id, key: claim.key.clone(), until });
    }

    fn lasts(&self, reliance: &Reliance) -> bool {
        reliance.until.is_none_or(|until| until > self.now)
    }

    /// Whether the client may still count on it.
    pub fn relies(&self, claim: &Claim) -> bool {
        self.relied.get(&claim.address).is_some_and(|held| held.id == claim.id && self.lasts(held))
    }

    /// It has another key now; the rest stays.
    pub fn moved(&mut self, from: &Claim, to: &Claim) {
        let right = (from.id, from.address) == (to.id, to.address);
        self.expect(right, || format!("{} moved to {}", from.held(), to.held()));
        if let Some(held) = self.relied.get_mut(&to.address).filter(|held| held.id == to.id) {
            held.key = to.key.clone();
        }
    }

    pub fn let_go(&mut self, claim: &Claim) {
        if self.relied.get(&claim.address).is_some_and(|held| held.id == claim.id) {
            self.relied.remove(&claim.address);
        }
        self.leases.remove(&claim.id);
    }

    pub fn released(&mut self, attempt: &Attempt, claim: &Claim, how: &Released) {
        let end = self.history.lives.get(&claim.id).and_then(|life| life.until);
        let said = match how {
            Released::Done(_) => end.is_some_and(|end| end >= attempt.sent),
            Released::AlreadyGone => end.is_some(),
        };
        self.expect(said, || format!("{} was told {how:?}, and it ended at {end:?}", attempt.request));
    }

    /// An answer of whatever kind.
    pub fn answered(&mut self, attempt: &Attempt, waits: bool, answer: &Result<Done, LedgerError>) {
        self.answers += 1;
        let shown = match answer {
            Ok(done) => format!("{:?} at {}", crate::support::said(&Ok(done.reply.clone())), done.seq),
            Err(error) => error.to_string(),
        };
        self.note(|| format!("{} of {}: {shown}", attempt.request, attempt.sent.as_millis()));
        match answer {
            Ok(done) => {
                let seq = self.history.seq();
                self.expect(done.seq <= seq, || format!("{} was answered too early", attempt.request));
                self.expect(done.seq >= attempt.head || waits, || {
                    format!("{} was answered from the past", attempt.request)
                });
            }
            Err(LedgerError::Unknown { .. }) => {}
            // A place in the queue may be taken before the ledger is heard of no more.
            Err(_) if waits => {}
            Err(error) => {
                let done = self.done.contains(&attempt.request);
                self.expect(!done, || format!("{} was told `{error}`, and it was done", attempt.request));
                self.undone.insert(attempt.request.clone());
            }
        }
    }

    /// The reason of a refusal was true at some time between question and answer.
    pub fn refused(&mut self, attempt: &Attempt, key: &Key, want: Want, refusal: &Refusal) {
        let exact = if let Want::Exact(address) = want { Some(address) } else { None };
        let mut states = self.history.states_since(attempt.sent);
        let holds =
            |address: Option<Address>, claims: &Claims| address.is_some_and(|a| claims.contains_key(&a));
        let was = match refusal {
            Refusal::Exhausted { .. } => states.any(|state| {
                !state.waiting.is_empty() || (state.claims.len() + state.resting.len()) as u64 >= ADDRESSES
            }),
            Refusal::AddressHeld { .. } => states.any(|state| holds(exact, &state.claims)),
            Refusal::Resting { .. } => {
                states.any(|state| exact.is_some_and(|address| state.resting.contains_key(&address)))
            }
            Refusal::HoldsAnother { .. } => {
                states.any(|state| state.claims.values().any(|claim| claim.key == *key))
            }
            _ => false,
        };
        drop(states);
        self.expect(was, || format!("{} was refused ({refusal}), and it was not so", attempt.request));
    }

    /// A client saw claims in a Book of this process.
    pub fn saw(&mut self, attempt: &Attempt, process: u64, fresh: bool, seq: u64, claims: &Claims) {
        self.answers += 1;
        self.note(|| format!("{} saw {} claims at {seq} in {process}", attempt.request, claims.len()));
        self.expect(!fresh || seq >= attempt.head, || {
            format!("{} saw {seq} as fresh, and {} stood before it asked", attempt.request, attempt.head)
        });
        if let Err(problem) = self.history.compare(seq, claims) {
            self.wrong(format!("{}: {problem}", attempt.request));
        }
        let shown = self.shown.entry(process).or_default();
        *shown = seq.max(*shown);
    }

    /// The newest state that a process has shown; a later read sees no less.
    pub fn shown(&self, process: u64) -> u64 {
        self.shown.get(&process).copied().unwrap_or_default()
    }

    /// A process told those who listen of an event: a durable one, and none is left out.
    pub fn heard(&mut self, process: u64, event: &Arc<Event>) {
        let stored = self.history.events.get(&event.seq);
        let same = stored.is_some_and(|stored| stored == event);
        self.expect(same, || format!("{process} told of event {}, which is not stored", event.seq));
        if let Some(last) = self.heard.insert(process, event.seq) {
            // Events that were trimmed meanwhile can no longer be shown.
            let oldest = self.history.head.as_ref().filter(|_| !self.strict).map_or(0, |head| head.oldest);
            let kept = oldest.max(last + 1);
            let next = self.history.events.range(kept..).next().map_or(u64::MAX, |(seq, _)| *seq);
            self.expect(event.seq > last && event.seq <= next, || {
                format!("{process} told of event {} after {last}, and not of {next}", event.seq)
            });
        }
    }

    /// It told that there is more than it can tell of.
    pub fn overheard(&mut self, process: u64) {
        self.heard.remove(&process);
    }

    /// In the end everything that was acknowledged is there.
    pub fn settle(&mut self, seq: u64, claims: &Claims) {
        if let Err(problem) = self.history.compare(seq, claims) {
            self.wrong(format!("in the end: {problem}"));
        }
        let missing: Vec<String> = self
            .relied
            .iter()
            .filter(|(address, held)| {
                self.lasts(held) && claims.get(address).is_none_or(|claim| claim.id != held.id)
            })
            .map(|(address, held)| format!("{address} of `{}`", held.key))
            .collect();
        self.expect(missing.is_empty(), || format!("acknowledged and lost: {}", missing.join(", ")));
    }
}

/// The claims in an answer.
pub(super) fn claims_in(reply: &Reply) -> Vec<(Arc<Claim>, Outcome)> {
    match reply {
        Reply::Claimed { claim, outcome } => vec![(claim.clone(), *outcome)],
        Reply::Bulk(replies) => replies.iter().flat_map(claims_in).collect(),
        _ => Vec::new(),
    }
}
