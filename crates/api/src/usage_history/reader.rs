//! Reads the history: of one pool, or of all of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use netstead_client::types::{ChangesOfDay, PoolHistoryOutput, UsageDay, UsageSample};
use netstead_ledger::Freshness;
use netstead_model::{Clock, Ident, PoolStatus};
use netstead_store::{Snapshot, Store, StoreError};

use super::{
    forecast::forecast,
    samples::{
        CHANGES, ChangeDays, DAYS, DayTotal, HourSample, MOST_DAYS, RECENT, RecentUsage, UsageDays, date_of,
        day_of, decode, hour_of, time_of,
    },
};
use crate::convert;

/// Samples change once an hour, and a page asks for them with every event.
const CACHED: Duration = Duration::from_secs(30);
/// Pools that are read at once.
const PAGE: usize = 200;

/// The samples of the last week of all pools, and the changes per day.
#[derive(Debug, Default)]
pub(crate) struct AllUsage {
    pub(crate) recent: BTreeMap<Ident, RecentUsage>,
    pub(crate) changes: ChangeDays,
}

/// The newest reading of all pools, and its time.
#[derive(Debug, Default)]
pub(crate) struct UsageCache(Mutex<Option<(Duration, Arc<AllUsage>)>>);

impl UsageCache {
    /// All pools, at most half a minute old.
    pub(crate) async fn all(
        &self,
        store: &dyn Store,
        clock: &dyn Clock,
    ) -> Result<Arc<AllUsage>, StoreError> {
        let now = clock.monotonic();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, known)) = known
            && now.saturating_sub(at) < CACHED
        {
            return Ok(known);
        }
        let all = Arc::new(read_all(&*store.own_snapshot().await?).await?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&all)));
        Ok(all)
    }
}

/// Everything but the days of single pools.
pub(super) async fn read_all(snapshot: &dyn Snapshot) -> Result<AllUsage, StoreError> {
    let mut all = AllUsage::default();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = snapshot.range(RECENT.as_bytes(), after.as_deref(), PAGE).await?;
        for entry in &page {
            let name = entry.key.get(RECENT.len()..).and_then(|name| std::str::from_utf8(name).ok());
            if let Some(name) = name.and_then(|name| name.parse().ok())
                && let Some(recent) = decode(&entry.value)
            {
                all.recent.insert(name, recent);
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.key.clone()),
            _ => break,
        }
    }
    let changes = snapshot.get(CHANGES.as_bytes()).await?;
    all.changes = changes.and_then(|entry| decode(&entry.value)).unwrap_or_default();
    Ok(all)
}

/// The history of a pool, with this moment at its end.
pub(crate) async fn of_pool(
    store: &dyn Store,
    status: &PoolStatus,
    freshness: Freshness,
    now: Timestamp,
) -> Result<PoolHistoryOutput, StoreError> {
    let snapshot = match freshness {
        Freshness::Stale => store.own_snapshot().await?,
        Freshness::Fresh | Freshness::AtLeast(_) => store.snapshot().await?,
    };
    let name = status.pool.name();
    let (recent, days) = (format!("{RECENT}{name}"), format!("{DAYS}{name}"));
    let recent = snapshot.get(recent.as_bytes()).await?.and_then(|entry| decode::<RecentUsage>(&entry.value));
    let days = snapshot.get(days.as_bytes()).await?.and_then(|entry| decode::<UsageDays>(&entry.value));
    let recent = recent.filter(|recent| recent.created == status.pool.created);
    let days = days.filter(|days| days.created == status.pool.created);
    Ok(output(status, recent, days, now))
}

fn output(
    status: &PoolStatus,
    recent: Option<RecentUsage>,
    days: Option<UsageDays>,
    now: Timestamp,
) -> PoolHistoryOutput {
    let hour = hour_of(now);
    let mut recent = recent.unwrap_or_else(|| RecentUsage::new(status.pool.created, 0, hour));
    let forecast = forecast(&recent.hours, &status.usage, now);
    let used = convert::pool::used(&status.usage);
    let mut days = days.unwrap_or(UsageDays { created: status.pool.created, days: Vec::new() });
    let shown = |sample: &HourSample| UsageSample {
        at: time_of(sample.0),
        claims: sample.1,
        used_permyriad: sample.2,
    };
    let mut hours: Vec<UsageSample> =
        recent.hours.iter().filter(|sample| sample.0 <= hour).map(shown).collect();
    hours.push(UsageSample { at: now, claims: status.usage.claims, used_permyriad: used });
    // This moment is a sample too, beside that of the hour.
    let peak = recent.hours.last().filter(|last| last.0 == hour).map_or(used, |last| last.2.max(used));
    days.add(recent.add(HourSample(hour, status.usage.claims, peak)));
    days.add(recent.day(day_of(hour)).into_iter().collect());
    let day = |day: &super::samples::DaySample| UsageDay {
        day: date_of(day.0),
        claims: day.1,
        used_permyriad: day.2,
        claimed: day.3,
        ended: day.4,
    };
    PoolHistoryOutput {
        pool: status.pool.name().to_string(),
        hours,
        days: days.days.iter().map(day).collect(),
        forecast,
    }
}

/// The changes of the last days, with a line for days on which nothing was counted.
pub(crate) fn changes(all: &AllUsage, days: u32, now: Timestamp) -> Vec<ChangesOfDay> {
    let today = day_of(hour_of(now));
    let days = i64::from(days).min(i64::try_from(MOST_DAYS).unwrap_or(i64::MAX));
    let Some(first) = all.changes.days.first() else { return Vec::new() };
    let known: BTreeMap<i64, &DayTotal> = all.changes.days.iter().map(|total| (total.0, total)).collect();
    let line = |day: i64| {
        let total = known.get(&day).map_or(DayTotal(day, 0, 0, 0), |total| **total);
        let DayTotal(_, claimed, ended, applied) = total;
        ChangesOfDay { day: date_of(day), claimed, ended, applied }
    };
    ((today - days + 1).max(first.0)..=today).map(line).collect()
}
