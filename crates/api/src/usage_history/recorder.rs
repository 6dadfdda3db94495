//! [`UsageRecorder`]: writes the samples, on the leader.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use netstead_engine::{ChangePosition, ChangeQuery, Engine, EngineError};
use netstead_ledger::{Backends, EventQuery, Freshness, Ledger, LedgerError};
use netstead_model::{Event, EventKind, Ident, PoolStatus};
use netstead_store::{Commit, Condition, EPOCH_KEY, MAX_BYTES, MAX_WRITES, StoreError, Write};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    reader::{AllUsage, read_all},
    samples::{
        CHANGES, ChangeDays, DAYS, HourSample, RECENT, RecentUsage, UsageDays, day_of, decode, encode,
        hour_of,
    },
};
use crate::convert;

/// How often the recorder looks at the clock.
const TICK: Duration = Duration::from_mins(1);
/// Days before the first count that are counted too, where the events are still there.
const LOOK_BACK: i64 = 30;
/// Events of one page.
const EVENTS: usize = 10_000;
/// Changes of one page.
const STEPS: usize = 1000;
/// Bytes of a commit that are left for keys and the condition.
const SLACK: usize = 64 << 10;

/// Why no samples were written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error("another node leads")]
    NotLeading,
    #[error("the store does not take the samples")]
    Store(#[from] StoreError),
    #[error("the ledger cannot be read")]
    Ledger(#[from] LedgerError),
    #[error("the changes of names cannot be read")]
    Engine(#[from] EngineError),
}

/// Writes the history of pools while this node leads.
#[derive(Debug)]
pub struct UsageRecorder<'a> {
    ledger: &'a Ledger,
    /// None where no names are kept.
    engine: Option<&'a Engine>,
    backends: &'a Backends,
    epoch: u64,
}

/// Claims that were made and that ended, by day since 1970.
type Counts = BTreeMap<i64, (u64, u64)>;

impl<'a> UsageRecorder<'a> {
    pub fn new(ledger: &'a Ledger, engine: Option<&'a Engine>, backends: &'a Backends, epoch: u64) -> Self {
        Self { ledger, engine, backends, epoch }
    }

    /// Records each hour until `stop`. A batch that fails is tried again a minute later.
    pub async fn run(&self, stop: &CancellationToken) {
        let (mut done, mut failing) = (None, false);
        loop {
            let hour = hour_of(self.ledger.clock().wall());
            if done != Some(hour) {
                match self.record().await {
                    Ok(pools) => {
                        debug!(pools, "The usage of pools is recorded.");
                        (done, failing) = (Some(hour), false);
                    }
                    // The new leader records.
                    Err(RecordError::NotLeading) => return,
                    Err(error) if failing => debug!(%error, "The usage of pools is not recorded yet."),
                    Err(error) => {
                        let error = format!("{:#}", full(&error));
                        warn!(error, retry_in = ?TICK, "The usage of pools could not be recorded.");
                        failing = true;
                    }
                }
            }
            if stop.run_until_cancelled(sleep(TICK)).await.is_none() {
                return;
            }
        }
    }

    /// Writes the samples of this hour, where they are missing. Returns of how many pools.
    pub async fn record(&self) -> Result<usize, RecordError> {
        let store = self.ledger.store();
        let fence = self.fence().await?;
        let now = self.ledger.clock().wall();
        let hour = hour_of(now);
        let look = |book: &netstead_ledger::Book| (book.pools().collect::<Vec<PoolStatus>>(), book.seq());
        let (pools, seq) = self.ledger.read(Freshness::Stale, look).await?.value;
        let described = self.backends.status().described;
        let completed = |status: PoolStatus| {
            let name = status.pool.name().clone();
            let usage = convert::pool::described_usage(&status, described.get(&name));
            (name, PoolStatus { usage, ..status })
        };
        let pools: BTreeMap<Ident, PoolStatus> = pools.into_iter().map(completed).collect();
        let AllUsage { recent: mut known, changes: mut all } = read_all(&*store.snapshot().await?).await?;

        let gone: BTreeSet<Ident> = known
            .iter()
            .filter(|(name, recent)| {
                pools.get(*name).is_none_or(|status| status.pool.created != recent.created)
            })
            .map(|(name, _)| name.clone())
            .collect();
        known.retain(|name, _| !gone.contains(name));
        let due: Vec<&PoolStatus> = pools
            .values()
            .filter(|status| !known.get(status.pool.name()).is_some_and(|recent| recent.has(hour)))
            .collect();
        let is_first = all.days.is_empty();
        let all_due = is_first || all.hour != hour;
        // Events of an earlier pool of the same name are not those of a new one.
        let from = |status: &PoolStatus| match known.get(status.pool.name()) {
            Some(recent) => (recent.seq, Timestamp::MIN),
            None => (all.seq, status.pool.created),
        };
        let counted = Counted {
            from: due.iter().map(|status| (status.pool.name().clone(), from(status))).collect(),
            all: all_due.then_some(all.seq),
        };
        let since = is_first
            .then(|| now.checked_sub(jiff::SignedDuration::from_hours(24 * LOOK_BACK)).ok())
            .flatten();
        let tallies = self.count_events(&counted, seq, since).await?;

        let mut batch = Batch::default();
        for name in gone.iter().filter(|name| !pools.contains_key(*name)) {
            let (recent, days) = keys(name);
            batch.add(vec![Write::Delete(recent), Write::Delete(days)]);
        }
        for status in &due {
            let name = status.pool.name();
            let fresh = || RecentUsage::new(status.pool.created, seq, hour);
            let mut recent = known.remove(name).unwrap_or_else(fresh);
            for (day, (made, ended)) in tallies.pools.get(name).into_iter().flatten() {
                recent.count(*day, *made, *ended);
            }
            recent.seq = seq;
            let used = convert::pool::used(&status.usage);
            let over = recent.add(HourSample(hour, status.usage.claims, used));
            let (recent_key, days_key) = keys(name);
            let mut writes = vec![Write::Put(recent_key, encode(&recent))];
            if gone.contains(name) {
                writes.push(Write::Delete(days_key));
            } else if !over.is_empty() {
                let stored = store.get(&days_key).await?.and_then(|entry| decode::<UsageDays>(&entry.value));
                let none = || UsageDays { created: recent.created, days: Vec::new() };
                let mut days = stored.filter(|days| days.created == recent.created).unwrap_or_else(none);
                days.add(over);
                writes.push(Write::Put(days_key, encode(&days)));
            }
            batch.add(writes);
        }
        if all_due {
            self.count_changes(&mut all, since).await?;
            for (day, (made, ended)) in &tallies.all {
                all.count(*day, *made, *ended, 0);
            }
            all.seq = seq;
            all.finish(hour);
            batch.add(vec![Write::Put(CHANGES.into(), encode(&all))]);
        }
        for writes in batch.commits {
            let mut commit = Commit::new().when(fence.clone());
            commit.writes = writes;
            match store.commit(commit).await {
                Ok(_) => {}
                Err(StoreError::Refused { .. }) => return Err(RecordError::NotLeading),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(due.len())
    }

    /// The condition that this node still leads.
    async fn fence(&self) -> Result<Condition, RecordError> {
        let entry = self.ledger.store().get(EPOCH_KEY).await?.ok_or(RecordError::NotLeading)?;
        let number = std::str::from_utf8(&entry.value).ok().and_then(|text| text.parse::<u64>().ok());
        if number != Some(self.epoch) {
            return Err(RecordError::NotLeading);
        }
        Ok(Condition::Version(EPOCH_KEY.to_vec(), entry.version))
    }

    /// Counts the events up to number `seq` that are not counted yet.
    async fn count_events(
        &self,
        counted: &Counted,
        seq: u64,
        since: Option<Timestamp>,
    ) -> Result<Tallies, RecordError> {
        let mut tallies = Tallies::default();
        let Some(first) = counted.from.values().map(|from| from.0).chain(counted.all).min() else {
            return Ok(tallies);
        };
        // What was trimmed cannot be counted any more.
        let first = first.max(self.ledger.oldest_event().saturating_sub(1));
        let mut query = EventQuery { after: Some(first), since, limit: EVENTS, ..EventQuery::default() };
        loop {
            let page = self.ledger.events(&query).await?;
            for event in page.events.iter().filter(|event| event.seq <= seq) {
                tallies.count(counted, event);
            }
            match page.next {
                Some(next) if next < seq => query.after = Some(next),
                _ => return Ok(tallies),
            }
        }
    }

    /// Counts the changes that servers took since the last count.
    async fn count_changes(&self, all: &mut ChangeDays, since: Option<Timestamp>) -> Result<(), RecordError> {
        let Some(engine) = self.engine else { return Ok(()) };
        let mut after: Option<ChangePosition> = all.position.as_deref().and_then(|text| text.parse().ok());
        let since = since.filter(|_| after.is_none());
        loop {
            let what = Some("applied".to_owned());
            let (oldest_first, limit) = (true, STEPS);
            let query = ChangeQuery { what, since, after, oldest_first, limit, ..ChangeQuery::default() };
            let page = engine.changes(&query).await?;
            for change in &page.changes {
                all.count(day_of(hour_of(change.at)), 0, 0, 1);
            }
            after = page.changes.last().map(|last| last.position).or(after);
            all.position = after.map(|after| after.to_string());
            if page.next.is_none() {
                return Ok(());
            }
        }
    }
}

/// The events that are counted already.
struct Counted {
    /// Of the pools that get a sample: the number, and the time from which on events count.
    from: BTreeMap<Ident, (u64, Timestamp)>,
    /// Of all, if the total is due.
    all: Option<u64>,
}

#[derive(Default)]
struct Tallies {
    pools: BTreeMap<Ident, Counts>,
    all: Counts,
}

impl Tallies {
    fn count(&mut self, counted: &Counted, event: &Event) {
        let (made, ended) = match event.what {
            EventKind::Claimed => (1, 0),
            EventKind::Released | EventKind::Expired | EventKind::Abandoned => (0, 1),
            _ => return,
        };
        let day = day_of(hour_of(event.at));
        let add = |counts: &mut Counts| {
            let count = counts.entry(day).or_default();
            *count = (count.0 + made, count.1 + ended);
        };
        if counted.all.is_some_and(|from| event.seq > from) {
            add(&mut self.all);
        }
        if let Some(pool) = event.pool()
            && counted.from.get(pool).is_some_and(|(from, since)| event.seq > *from && event.at >= *since)
        {
            add(self.pools.entry(pool.clone()).or_default());
        }
    }
}

/// Writes as few commits as the limits of a store allow. What is added together lands together.
#[derive(Default)]
struct Batch {
    commits: Vec<Vec<Write>>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, writes: Vec<Write>) {
        let more: usize = writes.iter().map(Write::bytes).sum();
        let fits = |last: &&mut Vec<Write>| {
            last.len() + writes.len() < MAX_WRITES && self.bytes + more + SLACK <= MAX_BYTES
        };
        if let Some(last) = self.commits.last_mut().filter(fits) {
            last.extend(writes);
            self.bytes += more;
        } else {
            self.bytes = more;
            self.commits.push(writes);
        }
    }
}

/// The two keys of a pool.
fn keys(pool: &Ident) -> (Vec<u8>, Vec<u8>) {
    (format!("{RECENT}{pool}").into_bytes(), format!("{DAYS}{pool}").into_bytes())
}

/// An error with its causes.
fn full(error: &RecordError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}
