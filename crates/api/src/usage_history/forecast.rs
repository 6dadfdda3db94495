//! When a pool will be full, if it goes on as in the last week.

use jiff::Timestamp;
use netstead_client::types::ForecastOutput;
use netstead_model::Usage;

use super::samples::{HourSample, MOST_HOURS, hour_of, time_of};

/// Less than a day says nothing about a month.
const LEAST_DAYS: f64 = 1.0;
/// Growth that one claim alone could be is none.
const LEAST_GROWTH: u64 = 2;
/// Nothing is said about times that are further away.
const FURTHEST: f64 = 3650.0;
const DAY: f64 = 86_400.0;

/// The forecast of a pool that has `usage` now. None if it does not fill, is full, or is too young.
#[expect(clippy::cast_precision_loss, reason = "a rough number for people")]
pub(crate) fn forecast(hours: &[HourSample], usage: &Usage, now: Timestamp) -> Option<ForecastOutput> {
    let oldest = hour_of(now) - i64::try_from(MOST_HOURS).unwrap_or_default();
    let first = hours.iter().find(|sample| sample.0 >= oldest)?;
    let days = now.duration_since(time_of(first.0)).as_secs_f64() / DAY;
    let growth = usage.claims.checked_sub(first.1)?;
    if days < LEAST_DAYS || growth < LEAST_GROWTH || usage.free == 0 {
        return None;
    }
    let per_day = growth as f64 / days;
    // A claim of a prefix holds many addresses.
    let each = (usage.held as f64 / usage.claims as f64).max(1.0);
    let left = (usage.free as f64 / each / per_day).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 3650")]
    let whole = |days: f64| days as u64;
    (left <= FURTHEST).then(|| ForecastOutput { per_day, days_left: whole(left) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(hours: &[(i64, u64)], claims: u64, each: u128, free: u128) -> Option<String> {
        let now = "2026-11-19T12:00:00Z".parse().unwrap();
        let sample = |(ago, claims): &(i64, u64)| HourSample(hour_of(now) - ago, *claims, 0);
        let hours: Vec<HourSample> = hours.iter().map(sample).collect();
        let usage = Usage { claims, held: u128::from(claims) * each, free, ..Usage::default() };
        forecast(&hours, &usage, now).map(|forecast| forecast.sentence())
    }

    #[test]
    fn a_pool_that_fills_says_when_it_will_be_full() {
        let week = [(168, 60), (24, 70)];
        assert_eq!(said(&week, 74, 1, 40).as_deref(), Some("at 2.0 a day, full in about 20 days"));
        assert_eq!(said(&week, 74, 256, 40 * 256).as_deref(), Some("at 2.0 a day, full in about 20 days"));
        assert_eq!(said(&week, 74, 1, 1).as_deref(), Some("at 2.0 a day, full in about 1 day"));
        assert_eq!(said(&[(36, 60)], 63, 1, 40).as_deref(), Some("at 2.0 a day, full in about 20 days"));
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        assert_eq!(said(&[], 74, 1, 40), None, "nothing is known");
        assert_eq!(said(&[(12, 60)], 74, 1, 40), None, "half a day is too little");
        assert_eq!(said(&[(400, 60)], 74, 1, 40), None, "the last week has no sample");
        assert_eq!(said(&[(168, 74)], 75, 1, 40), None, "one claim is no growth");
        assert_eq!(said(&[(168, 90)], 74, 1, 40), None, "it empties");
        assert_eq!(said(&[(168, 60)], 74, 1, 0), None, "it is full");
        assert_eq!(said(&[(168, 60)], 74, 1, 1 << 64), None, "not in our time");
    }
}
