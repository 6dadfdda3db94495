//! Compares what is stored with `docs/reference/store.md`, key by key.
//!
//! Values of the ledger are decoded and compared with each other. Of the values of other crates only the form is known here:
//! which keys there are, and that a value is a version and JSON. Keys are read a page at a time; what is remembered is
//! the pools, and the key and id of each claim.

mod addresses;
mod documented_keys;
mod repair;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Pool, Range, Waiting, overlapping_pairs};
use netstead_store::{Condition, Damage, EPOCH_KEY, Entry, Snapshot, Store, StoreError, Version, Write};
use serde::de::IgnoredAny;

use self::addresses::AddressCheck;
pub use self::{
    documented_keys::KEYS,
    repair::{Repair, RepairError, repair},
};
use crate::{
    damage::each_part,
    load::{Filling, RESTORING_KEY, each_entry},
    migrate::SEALED_KEY,
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, Malformed, POOL, Record, Space, event_key, event_seq},
};

/// The format in which everything is written, as decimal text.
pub(crate) const FORMAT_KEY: &str = "meta/format";

/// A pool with the ranges that it covers.
type PoolExtent<'a> = (&'a Arc<Pool>, Vec<Range>);

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub problem: String,
    /// The repair that touches no address; none when a person must decide.
    pub repair: Option<Repair>,
    /// Whether the value stored there cannot be read, or cannot be understood.
    pub damage: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub keys: u64,
    pub claims: u64,
    pub events: u64,
    pub problems: Vec<Problem>,
    /// The head as it was read; repairs stand on it.
    head: Option<(Head, Version)>,
}

impl CheckReport {
    /// Problems that are damage.
    pub fn damage(&self) -> impl Iterator<Item = Damage> + '_ {
        let damaged = self.problems.iter().filter(|problem| problem.damage);
        damaged.map(|problem| Damage { key: problem.key.clone(), reason: problem.problem.clone() })
    }
}

/// Reads every key of the store at one moment. Problems are in the report, and what cannot be read is one; only a store
/// that fails, or whose pools cannot be read, is an error.
pub async fn check(store: &dyn Store) -> Result<CheckReport, StoreError> {
    check_snapshot(&*store.snapshot().await?).await
}

/// As [`check`], of one moment of a store.
pub async fn check_snapshot(snapshot: &dyn Snapshot) -> Result<CheckReport, StoreError> {
    let mut check = Check::of(snapshot).await?;
    let read = each_entry(snapshot, "", |entry| {
        check.entry(entry);
        Ok::<(), StoreError>(())
    });
    match read.await {
        Ok(()) => Ok(check.finish()),
        Err(StoreError::Damaged { .. }) => check_around_damage(snapshot).await,
        Err(error) => Err(error),
    }
}

/// As [`check`], one kind of key after the other, and around what cannot be read.
async fn check_around_damage(snapshot: &dyn Snapshot) -> Result<CheckReport, StoreError> {
    let mut check = Check::of(snapshot).await?;
    let gaps = each_part(snapshot, |entry| {
        check.entry(entry);
        Ok::<(), StoreError>(())
    });
    for gap in gaps.await? {
        let key = gap.damage().key;
        let end = match &gap.before {
            Some(before) => format!("up to `{}` ", String::from_utf8_lossy(before)),
            None => String::new(),
        };
        let (problem, repair) = (format!("what lies behind it {end}cannot be read: {}", gap.reason), None);
        check.report.problems.push(Problem { key, problem, repair, damage: true });
    }
    Ok(check.finish())
}

/// A pool, and what follows from it.
struct CheckedPool {
    pool: Arc<Pool>,
    space: Option<Space>,
    usable: Vec<Range>,
}

#[derive(Default)]
struct Check {
    report: CheckReport,
    pools: BTreeMap<Ident, CheckedPool>,
    /// Names of pools that exist and cannot be read: what they contain is unknown.
    unread: BTreeSet<String>,
    addresses: AddressCheck,
    last_event: u64,
    epoch: Option<(Version, Option<u64>)>,
    has_head: bool,
    has_ledger: bool,
    /// Half of it may be elsewhere: nothing here is to be mended.
    closed: bool,
}

impl Check {
    /// Reads what everything else is compared with: the head and the pools.
    async fn of(snapshot: &dyn Snapshot) -> Result<Self, StoreError> {
        let mut check = Self::default();
        if let Some(Entry { key, value, version }) = snapshot.get(HEAD_KEY.as_bytes()).await? {
            check.has_head = true;
            check.report.head = record::decode(&key, &value).ok().map(|head| (head, version));
        }
        each_entry(snapshot, POOL, |entry| {
            if let Ok(Some(Record::Pool(name, Some(pool)))) = Record::decode(&entry.key, &entry.value) {
                let (space, usable) = (Space::of(&pool), pool.spec.usable());
                check.pools.insert(name, CheckedPool { pool, space, usable });
            } else if let Some(name) = String::from_utf8_lossy(&entry.key).strip_prefix(POOL) {
                check.unread.insert(name.to_owned());
            }
            Ok::<(), StoreError>(())
        })
        .await?;
        Ok(check)
    }

    fn entry(&mut self, entry: &Entry) {
        self.report.keys += 1;
        let Ok(key) = std::str::from_utf8(&entry.key) else {
            let key = String::from_utf8_lossy(&entry.key);
            return self.problem(&key, "its key is not text", None);
        };
        self.has_ledger |= key.starts_with(record::PREFIX);
        let understood = if entry.key == EPOCH_KEY {
            self.epoch = Some((entry.version, number(&entry.value)));
            Ok(())
        } else if key == FORMAT_KEY {
            self.format(key, &entry.value);
            Ok(())
        } else if entry.key == RESTORING_KEY {
            self.closed = true;
            self.problem(key, Filling::of(&entry.value).interrupted(), None);
            Ok(())
        } else if entry.key == SEALED_KEY {
            self.closed = true;
            self.problem(key, "everything was moved to another store, and this one is sealed", None);
            Ok(())
        } else if key == HEAD_KEY {
            record::decode(&entry.key, &entry.value).map(|_: Head| ())
        } else if key.starts_with(EVENT) {
            self.events(entry)
        } else if key.starts_with(record::PREFIX) {
            Record::decode(&entry.key, &entry.value).map(|record| self.record(key, entry.version, record))
        } else if documented_keys::is_of_another_room(key) {
            record::decode(&entry.key, &entry.value).map(|_: IgnoredAny| ())
        } else {
            self.unknown(key);
            Ok(())
        };
        if let Err(Malformed { reason, .. }) = understood {
            let problem = Problem { key: key.to_owned(), problem: reason, repair: None, damage: true };
            self.report.problems.push(problem);
        }
    }

    fn record(&mut self, key: &str, version: Version, record: Option<Record>) {
        match record {
            Some(Record::Pool(_, Some(pool))) => {
                if let Err(error) = pool.spec.check() {
                    self.problem(key, error.to_string(), None);
                }
            }
            Some(Record::Slot(place, Some(slot))) => {
                let head = self.report.head.as_ref().map(|(head, _)| head);
                let problems =
                    self.addresses.slot_problems(key, &place, &slot, &self.pools, &self.unread, head);
                for problem in problems {
                    self.problem(key, problem, None);
                }
            }
            Some(Record::Reservation { value: Some(value), .. }) => {
                if !self.is_there(&value.pool) {
                    let gone = Repair::key(Write::Delete(key.into()), version);
                    self.problem(key, "its pool does not exist", Some(gone));
                }
            }
            Some(Record::Waiting(_, Some(waiting))) => self.waiting(key, version, &waiting),
            // Where a sighting lies there need be no pool.
            Some(_) => {}
            None => self.unknown(key),
        }
    }

    fn waiting(&mut self, key: &str, version: Version, waiting: &Waiting) {
        let (there, lost): (Vec<Ident>, Vec<Ident>) =
            waiting.pools.iter().cloned().partition(|pool| self.is_there(pool));
        if let Some(pool) = lost.first() {
            let text = format!("it waits for pool `{pool}`, which does not exist");
            let write = if there.is_empty() {
                Write::Delete(key.into())
            } else {
                Write::Put(key.into(), record::encode(&Waiting { pools: there, ..waiting.clone() }))
            };
            self.problem(key, text, Some(Repair::key(write, version)));
        }
    }

    fn is_there(&self, pool: &Ident) -> bool {
        self.pools.contains_key(pool) || self.unread.contains(pool.as_str())
    }

    fn events(&mut self, entry: &Entry) -> Result<(), Malformed> {
        let group: EventGroup = record::decode(&entry.key, &entry.value)?;
        self.report.events += group.events.len() as u64;
        let first = event_seq(&entry.key).filter(|first| event_key(*first).as_bytes() == entry.key);
        let mut last = first
            .and_then(|first| first.checked_sub(1))
            .ok_or_else(|| Malformed::new(&entry.key, "its key is not the number of an event"))?;
        for event in &group.events {
            if event.seq <= last || event.seq <= self.last_event {
                return Err(Malformed::new(&entry.key, format!("event {} is out of order", event.seq)));
            }
            last = event.seq;
            self.last_event = event.seq;
        }
        Ok(())
    }

    fn format(&mut self, key: &str, value: &[u8]) {
        if number(value).is_none_or(|format| u32::try_from(format).is_err()) {
            self.problem(key, "it is no number: restore from a backup", None);
        }
    }

    fn finish(mut self) -> CheckReport {
        self.report.claims = self.addresses.claims();
        if !self.has_head && self.has_ledger {
            self.problem(HEAD_KEY, "the head is missing: restore from a backup", None);
        }
        let head = self.report.head.as_ref().map(|(head, _)| head.clone());
        self.check_epoch(head.as_ref());
        if let Some(head) = head.filter(|head| self.last_event > head.seq) {
            let text = format!("it is at {}, and there is an event {}", head.seq, self.last_event);
            self.problem(HEAD_KEY, text, Some(Repair::Head { seq: self.last_event }));
        }
        self.check_pools();
        if self.closed {
            self.report.problems.iter_mut().for_each(|problem| problem.repair = None);
        }
        self.report
    }

    /// The leader raises the epoch before it touches the head, so the head is never ahead of the epoch.
    fn check_epoch(&mut self, head: Option<&Head>) {
        let key = String::from_utf8_lossy(EPOCH_KEY);
        let Some(head) = head else {
            if let Some((_, None)) = self.epoch {
                self.problem(&key, "it is no number", None);
            }
            return;
        };
        let (problem, found) = match self.epoch {
            None => ("it is missing".to_owned(), Condition::Absent(EPOCH_KEY.to_vec())),
            Some((version, None)) => {
                ("it is no number".to_owned(), Condition::Version(EPOCH_KEY.to_vec(), version))
            }
            Some((version, Some(epoch))) if epoch < head.epoch => {
                (format!("it is at {epoch}"), Condition::Version(EPOCH_KEY.to_vec(), version))
            }
            Some(_) => return,
        };
        let write = Write::Put(EPOCH_KEY.to_vec(), head.epoch.to_string().into_bytes());
        let text = format!("{problem}, and the head is of epoch {}", head.epoch);
        self.problem(&key, text, Some(Repair::Key { write, found }));
    }

    fn check_pools(&mut self) {
        let mut spaces: BTreeMap<&Option<Space>, Vec<PoolExtent<'_>>> = BTreeMap::new();
        // One that lies in a prefix may lie over others.
        for ground in self.pools.values().filter(|ground| ground.pool.within.is_none()) {
            let pools = spaces.entry(&ground.space).or_default();
            pools.push((&ground.pool, ground.pool.spec.extent()));
        }
        let mut overlaps = Vec::new();
        for pools in spaces.values() {
            let extents = pools.iter().map(|(_, extent)| extent.as_slice());
            for (one, other) in overlapping_pairs(extents, usize::MAX) {
                if let (Some((one, _)), Some((other, _))) = (pools.get(one), pools.get(other)) {
                    overlaps.push((one.name().clone(), other.name().clone()));
                }
            }
        }
        overlaps.sort_unstable();
        for (one, other) in overlaps {
            self.problem(&format!("{POOL}{one}"), format!("it overlaps pool `{other}`"), None);
        }
    }

    fn unknown(&mut self, key: &str) {
        self.problem(key, "no page of the manual knows this key", None);
    }

    fn problem(&mut self, key: &str, problem: impl Into<String>, repair: Option<Repair>) {
        let (key, problem) = (key.to_owned(), problem.into());
        self.report.problems.push(Problem { key, problem, repair, damage: false });
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
