//! Compares what is stored with what `docs/reference/store.md` promises, key by key.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use netstead_model::{Claim, ClaimId, Ident, Key, Pool, Range};
use netstead_store::{Commit, EPOCH_KEY, Entry, MAX_WRITES, Store, StoreError, Write};

use crate::{
    load::{RESTORING_KEY, each_entry},
    migrate::SEALED_KEY,
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, Malformed, Record, Slot, Space, event_seq},
};

/// Where access tokens, the engine, the builtin zones and the nodes keep theirs; other rooms write them.
const OTHER_ROOMS: [&str; 4] = ["access/token/", "engine/", "dns/", "cluster/"];

/// The format in which everything is written, as decimal text.
const FORMAT_KEY: &str = "meta/format";

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub problem: String,
    /// What would mend it without touching anybody's address; empty when a person must decide.
    pub repair: Vec<Write>,
}

/// What a check saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub keys: u64,
    pub claims: u64,
    pub events: u64,
    pub problems: Vec<Problem>,
}

/// Reads every key of the store at one moment. Problems are in the report; only a store that fails is an error.
pub async fn check(store: &dyn Store) -> Result<CheckReport, StoreError> {
    let snapshot = store.snapshot().await?;
    let mut check = Check::default();
    each_entry(&*snapshot, "", |entry| {
        check.entry(entry);
        Ok::<(), StoreError>(())
    })
    .await?;
    Ok(check.finish())
}

/// Mends what can be mended, and says how many problems that were.
pub async fn repair(store: &dyn Store, report: &CheckReport) -> Result<usize, StoreError> {
    let mending: Vec<&Problem> =
        report.problems.iter().filter(|problem| !problem.repair.is_empty()).collect();
    let mut writes: BTreeMap<Vec<u8>, Write> = BTreeMap::new();
    for write in mending.iter().flat_map(|problem| &problem.repair) {
        writes.insert(write.key().clone(), write.clone());
    }
    let writes: Vec<Write> = writes.into_values().collect();
    for group in writes.chunks(MAX_WRITES) {
        store.commit(Commit { conditions: Vec::new(), writes: group.to_vec() }).await?;
    }
    Ok(mending.len())
}

#[derive(Default)]
struct Check {
    report: CheckReport,
    head: Option<Head>,
    pools: BTreeMap<Ident, Arc<Pool>>,
    slots: Vec<(String, Space, Slot)>,
    others: Vec<(String, Record)>,
    last_event: u64,
}

impl Check {
    fn entry(&mut self, entry: &Entry) {
        self.report.keys += 1;
        let key = String::from_utf8_lossy(&entry.key).into_owned();
        if key.as_bytes() == EPOCH_KEY || OTHER_ROOMS.iter().any(|prefix| key.starts_with(prefix)) {
            return;
        }
        if key == FORMAT_KEY {
            let number = std::str::from_utf8(&entry.value).ok().and_then(|text| text.parse::<u32>().ok());
            if number.is_none() {
                self.problem(key, "it is no number: restore from a backup", Vec::new());
            }
            return;
        }
        if key.as_bytes() == RESTORING_KEY {
            return self.problem(
                key,
                "a restore was interrupted: empty the store and restore again",
                Vec::new(),
            );
        }
        if key.as_bytes() == SEALED_KEY {
            return self.problem(
                key,
                "everything was moved to another store, and this one is sealed",
                Vec::new(),
            );
        }
        let understood = if key == HEAD_KEY {
            record::decode(&entry.key, &entry.value).map(|head| self.head = Some(head))
        } else if key.starts_with(EVENT) {
            self.events(entry)
        } else {
            Record::decode(&entry.key, &entry.value).map(|record| self.record(&key, record))
        };
        if let Err(Malformed { reason, .. }) = understood {
            self.problem(key, reason, Vec::new());
        }
    }

    fn record(&mut self, key: &str, record: Option<Record>) {
        match record {
            Some(Record::Pool(name, Some(pool))) => {
                if let Err(error) = pool.spec.check() {
                    self.problem(key.to_owned(), error.to_string(), Vec::new());
                }
                self.pools.insert(name, pool);
            }
            Some(Record::Slot(place, Some(slot))) => self.slots.push((key.to_owned(), place.space, slot)),
            Some(other) => self.others.push((key.to_owned(), other)),
            None => self.problem(key.to_owned(), "no page of the manual knows this key", Vec::new()),
        }
    }

    fn events(&mut self, entry: &Entry) -> Result<(), Malformed> {
        let group: EventGroup = record::decode(&entry.key, &entry.value)?;
        self.report.events += group.events.len() as u64;
        let mut last = event_seq(&entry.key).and_then(|first| first.checked_sub(1)).unwrap_or(u64::MAX);
        for event in &group.events {
            if event.seq <= last || event.seq <= self.last_event {
                return Err(Malformed::new(&entry.key, format!("event {} is out of order", event.seq)));
            }
            last = event.seq;
        }
        self.last_event = last;
        Ok(())
    }

    fn finish(mut self) -> CheckReport {
        let Some(head) = self.head.clone() else {
            if self.report.keys > 0 && !(self.slots.is_empty() && self.pools.is_empty()) {
                self.problem(HEAD_KEY.into(), "the head is missing: restore from a backup", Vec::new());
            }
            return self.report;
        };
        if self.last_event > head.seq {
            let mended = record::encode(&Head { seq: self.last_event, ..head.clone() });
            let text = format!("it stands at {}, and there is an event {}", head.seq, self.last_event);
            self.problem(HEAD_KEY.into(), text, vec![Write::Put(HEAD_KEY.into(), mended)]);
        }
        self.check_pools();
        self.check_slots(&head);
        self.check_others();
        self.report
    }

    fn check_pools(&mut self) {
        let pools: Vec<Arc<Pool>> = self.pools.values().cloned().collect();
        for (place, one) in pools.iter().enumerate() {
            for other in pools.iter().skip(place + 1) {
                let same_space = Space::of(one) == Space::of(other);
                let nested = one.within.is_some() || other.within.is_some();
                let overlap =
                    one.spec.extent().iter().any(|a| other.spec.extent().iter().any(|b| a.overlaps(*b)));
                if same_space && overlap && !nested {
                    let text = format!("it overlaps pool `{}`", other.name());
                    self.problem(format!("{}{}", record::POOL, one.name()), text, Vec::new());
                }
            }
        }
    }

    fn check_slots(&mut self, head: &Head) {
        let slots = std::mem::take(&mut self.slots);
        let mut keys: HashMap<(Ident, Key), String> = HashMap::new();
        let mut ids: HashMap<ClaimId, String> = HashMap::new();
        let mut last_prefix: HashMap<Ident, (Range, String)> = HashMap::new();
        for (key, space, slot) in slots {
            let Slot::Held(claim) = slot else { continue };
            self.report.claims += 1;
            if let Some(problem) = self.claim_problem(&space, &claim, head) {
                self.problem(key.clone(), problem, Vec::new());
            }
            if let Some(other) = keys.insert((claim.pool.clone(), claim.key.clone()), key.clone()) {
                self.problem(key.clone(), format!("`{}` holds `{other}` too", claim.key), Vec::new());
            }
            if let Some(other) = ids.insert(claim.id, key.clone()) {
                self.problem(
                    key.clone(),
                    format!("its id {} is that of `{other}` too", claim.id),
                    Vec::new(),
                );
            }
            if let Some(prefix) = claim.prefix().map(Range::from) {
                let before = last_prefix.insert(claim.pool.clone(), (prefix, key.clone()));
                if let Some((_, other)) = before.filter(|(range, _)| range.overlaps(prefix)) {
                    self.problem(key, format!("it overlaps `{other}`"), Vec::new());
                }
            }
        }
    }

    fn claim_problem(&self, space: &Space, claim: &Claim, head: &Head) -> Option<String> {
        let Some(pool) = self.pools.get(&claim.pool) else {
            return Some(format!("pool `{}` does not exist", claim.pool));
        };
        if Space::of(pool).as_ref() != Some(space) {
            return Some(format!("it does not lie in the VRF and family of pool `{}`", claim.pool));
        }
        let range = claim.prefix().map_or_else(|| Range::single(claim.address), Range::from);
        if !pool.spec.usable().iter().any(|part| part.contains_range(range)) {
            return Some(format!("{} is not in pool `{}`", claim.held(), claim.pool));
        }
        if claim.id.ledger == head.ledger && claim.id.seq > head.seq {
            return Some(format!("its id {} is newer than the head, {}", claim.id, head.seq));
        }
        None
    }

    fn check_others(&mut self) {
        for (key, record) in std::mem::take(&mut self.others) {
            let known = |name: &Ident| self.pools.contains_key(name);
            let lost = match &record {
                Record::Reservation { value: Some(value), .. } => !known(&value.pool),
                Record::Waiting(_, Some(value)) => !value.pools.iter().all(known),
                _ => false,
            };
            if lost {
                let repair = vec![Write::Delete(key.clone().into_bytes())];
                self.problem(key, "its pool does not exist", repair);
            }
        }
    }

    fn problem(&mut self, key: String, problem: impl Into<String>, repair: Vec<Write>) {
        self.report.problems.push(Problem { key, problem: problem.into(), repair });
    }
}
