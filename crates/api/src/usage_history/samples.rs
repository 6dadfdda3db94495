//! The stored values: samples per hour and per day, each in a list that has a limit.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Samples per hour that are kept: a week.
pub(crate) const MOST_HOURS: usize = 7 * 24;
/// Samples per day that are kept: two years.
pub(crate) const MOST_DAYS: usize = 731;

/// `usage/recent/<pool>`
pub(crate) const RECENT: &str = "usage/recent/";
/// `usage/days/<pool>`
pub(crate) const DAYS: &str = "usage/days/";
pub(crate) const CHANGES: &str = "usage/changes";

const FORMAT: u8 = b'1';
const HOUR: i64 = 3600;

/// A pool in one hour since 1970: its claims, and the part in use in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HourSample(pub(crate) i64, pub(crate) u64, pub(crate) u32);

/// Claims that were made and that ended on one day since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DayCount(pub(crate) i64, pub(crate) u64, pub(crate) u64);

/// A pool on one day since 1970: its claims in the last hour, the largest part in use, claims made, claims ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DaySample(pub(crate) i64, pub(crate) u64, pub(crate) u32, pub(crate) u64, pub(crate) u64);

/// Everything on one day since 1970: claims made, claims ended, changes that servers took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DayTotal(pub(crate) i64, pub(crate) u64, pub(crate) u64, pub(crate) u64);

/// The last week of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentUsage {
    /// When the pool was made: another pool of the same name has its own history.
    pub(crate) created: Timestamp,
    /// Events up to this number are counted.
    pub(crate) seq: u64,
    /// The last day that has a sample of its own.
    pub(crate) folded: i64,
    pub(crate) hours: Vec<HourSample>,
    /// Of days that have no sample of their own yet.
    pub(crate) counts: Vec<DayCount>,
}

/// The days of a pool before today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageDays {
    pub(crate) created: Timestamp,
    pub(crate) days: Vec<DaySample>,
}

/// Changes of everything per day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeDays {
    /// The hour of the last count.
    pub(crate) hour: i64,
    /// Events of the ledger up to this number are counted.
    pub(crate) seq: u64,
    /// Changes of names up to this place in the engine's history are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<String>,
    pub(crate) days: Vec<DayTotal>,
}

impl RecentUsage {
    /// The history of a pool that has none yet.
    pub(crate) fn new(created: Timestamp, seq: u64, hour: i64) -> Self {
        Self { created, seq, folded: day_of(hour) - 1, hours: Vec::new(), counts: Vec::new() }
    }

    /// Whether there is a sample of this hour.
    pub(crate) fn has(&self, hour: i64) -> bool {
        self.hours.last().is_some_and(|last| last.0 == hour)
    }

    /// Counts a claim that was made or ended on `day`.
    pub(crate) fn count(&mut self, day: i64, made: u64, ended: u64) {
        if day <= self.folded {
            return;
        }
        match self.counts.iter_mut().find(|count| count.0 == day) {
            Some(count) => (count.1, count.2) = (count.1 + made, count.2 + ended),
            None => self.counts.push(DayCount(day, made, ended)),
        }
    }

    /// Adds the sample of an hour. Returns the samples of days that are over and had none yet.
    pub(crate) fn add(&mut self, sample: HourSample) -> Vec<DaySample> {
        let HourSample(hour, ..) = sample;
        let today = day_of(hour);
        // What is later than now was written by a clock that was ahead.
        self.hours.retain(|old| old.0 < hour);
        self.counts.retain(|count| count.0 <= today);
        self.folded = self.folded.min(today - 1);
        self.hours.push(sample);
        let mut over: Vec<i64> = self.hours.iter().map(|sample| day_of(sample.0)).collect();
        over.extend(self.counts.iter().map(|count| count.0));
        over.retain(|day| *day > self.folded && *day < today);
        over.sort_unstable();
        over.dedup();
        let folded: Vec<DaySample> = over.into_iter().filter_map(|day| self.day(day)).collect();
        self.folded = today - 1;
        self.counts.retain(|count| count.0 == today);
        keep_last(&mut self.hours, MOST_HOURS);
        folded
    }

    /// One day out of the samples of its hours. A day that has only counts has the claims of the next sample.
    pub(crate) fn day(&self, day: i64) -> Option<DaySample> {
        let of_day = || self.hours.iter().filter(|sample| day_of(sample.0) == day);
        let next = || self.hours.iter().find(|sample| day_of(sample.0) > day);
        let HourSample(_, claims, used) = of_day().next_back().or_else(next)?;
        let most = of_day().map(|sample| sample.2).max().unwrap_or(*used);
        let count = self.counts.iter().find(|count| count.0 == day);
        let DayCount(_, made, ended) = count.copied().unwrap_or(DayCount(day, 0, 0));
        Some(DaySample(day, *claims, most, made, ended))
    }
}

impl UsageDays {
    pub(crate) fn add(&mut self, days: Vec<DaySample>) {
        for day in days {
            self.days.retain(|old| old.0 < day.0);
            self.days.push(day);
        }
        keep_last(&mut self.days, MOST_DAYS);
    }
}

impl ChangeDays {
    pub(crate) fn count(&mut self, day: i64, made: u64, ended: u64, applied: u64) {
        match self.days.iter_mut().find(|total| total.0 == day) {
            Some(total) => {
                (total.1, total.2, total.3) = (total.1 + made, total.2 + ended, total.3 + applied);
            }
            None => self.days.push(DayTotal(day, made, ended, applied)),
        }
    }

    /// Ends a count: the days in order, none of them later than today.
    pub(crate) fn finish(&mut self, hour: i64) {
        self.hour = hour;
        self.count(day_of(hour), 0, 0, 0);
        self.days.retain(|total| total.0 <= day_of(hour));
        self.days.sort_unstable_by_key(|total| total.0);
        keep_last(&mut self.days, MOST_DAYS);
    }
}

fn keep_last<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

pub(crate) fn hour_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(HOUR)
}

pub(crate) fn day_of(hour: i64) -> i64 {
    hour.div_euclid(24)
}

/// The begin of an hour.
pub(crate) fn time_of(hour: i64) -> Timestamp {
    Timestamp::from_second(hour.saturating_mul(HOUR)).unwrap_or_default()
}

/// A day since 1970 as people write it.
pub(crate) fn date_of(day: i64) -> Date {
    time_of(day.saturating_mul(24)).to_zoned(TimeZone::UTC).date()
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    // Our own types have no failing serialiser.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

/// None if it cannot be read: a history is never worth a refusal.
pub(crate) fn decode<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    match value.split_first() {
        Some((&FORMAT, json)) => serde_json::from_slice(json).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDNIGHT: i64 = 20_000 * 24;

    fn recent() -> RecentUsage {
        RecentUsage::new(Timestamp::UNIX_EPOCH, 0, MIDNIGHT)
    }

    #[test]
    fn a_day_that_is_over_becomes_one_sample() {
        let mut pool = recent();
        for hour in 0..24 {
            let claims = u64::try_from(hour).unwrap();
            let peak = if hour == 5 { 9000 } else { 4000 };
            assert_eq!(pool.add(HourSample(MIDNIGHT + hour, claims, peak)), []);
        }
        pool.count(20_000, 30, 7);
        // The last event of the day is counted with the first sample of the next one.
        pool.count(20_000, 1, 0);
        pool.count(20_001, 2, 0);
        assert_eq!(pool.add(HourSample(MIDNIGHT + 24, 25, 4000)), [DaySample(20_000, 23, 9000, 31, 7)]);
        assert_eq!(pool.counts, [DayCount(20_001, 2, 0)]);
        // It is told once.
        assert_eq!(pool.add(HourSample(MIDNIGHT + 25, 25, 4000)), []);
        // A count for a day that has its sample comes too late.
        pool.count(20_000, 9, 9);
        assert_eq!(pool.add(HourSample(MIDNIGHT + 48, 26, 4000)), [DaySample(20_001, 25, 4000, 2, 0)]);
    }

    #[test]
    fn the_lists_have_a_limit_and_days_without_a_server_are_missing() {
        let (mut pool, mut days) = (recent(), UsageDays { created: Timestamp::UNIX_EPOCH, days: Vec::new() });
        for hour in (0..3 * 24 * 366).filter(|hour| hour / 24 != 900) {
            days.add(pool.add(HourSample(MIDNIGHT + hour, 1, 1)));
        }
        assert_eq!((pool.hours.len(), days.days.len()), (MOST_HOURS, MOST_DAYS));
        assert!(!days.days.iter().any(|day| day.0 == 20_900));
        assert!(days.days.is_sorted_by_key(|day| day.0));
        // One key for the week and one for the years: so small they are.
        assert!(encode(&pool).len() < 4 << 10, "{}", encode(&pool).len());
        assert!(encode(&days).len() < 24 << 10, "{}", encode(&days).len());
    }

    #[test]
    fn a_clock_that_was_ahead_costs_its_own_samples_only() {
        let (mut pool, mut days) = (recent(), UsageDays { created: Timestamp::UNIX_EPOCH, days: Vec::new() });
        for hour in 0..30 {
            days.add(pool.add(HourSample(MIDNIGHT + hour, 3, 30)));
        }
        days.add(pool.add(HourSample(MIDNIGHT + 24 * 4000, 3, 30)));
        days.add(pool.add(HourSample(MIDNIGHT + 30, 4, 40)));
        days.add(pool.add(HourSample(MIDNIGHT + 48, 4, 40)));
        assert_eq!(pool.hours.last(), Some(&HourSample(MIDNIGHT + 48, 4, 40)));
        assert_eq!(days.days, [DaySample(20_000, 3, 30, 0, 0), DaySample(20_001, 4, 40, 0, 0)]);
    }

    #[test]
    fn totals_are_in_order_and_of_no_later_day() {
        let mut all = ChangeDays::default();
        all.count(20_001, 1, 0, 5);
        all.count(20_000, 2, 1, 0);
        all.count(20_001, 1, 1, 0);
        all.count(20_777, 9, 9, 9);
        all.finish(20_002 * 24 + 3);
        let days = [DayTotal(20_000, 2, 1, 0), DayTotal(20_001, 2, 1, 5), DayTotal(20_002, 0, 0, 0)];
        assert_eq!(all.days, days);
        assert_eq!(decode::<ChangeDays>(&encode(&all)), Some(all));
        assert_eq!(date_of(20_000).to_string(), "2024-10-04");
    }
}
