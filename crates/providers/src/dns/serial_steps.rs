//! Counts how far our own writes moved the serials of zones.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use jiff::{Timestamp, civil::Date};
use netstead_model::{ChangeSign, Name};

/// Midnight of every time zone is at a multiple of so many seconds.
const BETWEEN_MIDNIGHTS: i64 = 900;
/// How far the clock of a server may be off, in seconds.
const SKEW: i64 = 60;

/// For servers that count a zone's serial up by one with every change they take. If the serial moved by as many changes as
/// they took of us since the zone was read, no other client changed anything; after any other step (a serial made of the
/// date, a signer at work) the zone is read.
///
/// A server with serials made of the date begins each day at 01 and counts up from there. [`SerialSteps::explain_date`] knows
/// that, too: if the first change of the day was not ours, the count is one too high.
#[derive(Debug, Default)]
pub(super) struct SerialSteps(Mutex<BTreeMap<Name, Steps>>);

#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    taken: u32,
    /// When the serial before them was asked for, and when the last one was taken.
    during: Option<(Timestamp, Timestamp)>,
}

impl SerialSteps {
    /// The zone is read now: counting begins anew.
    pub(super) fn forget(&self, zone: &Name) {
        if let Some(steps) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(zone) {
            steps.taken = 0;
        }
    }

    /// The server is asked for the serial of `zone` now.
    pub(super) fn ask(&self, zone: &Name, now: Timestamp) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = counted.entry(zone.clone()).or_default();
        if steps.taken == 0 {
            steps.during = Some((now, now));
        }
    }

    /// The server took one more change.
    pub(super) fn add(&self, zone: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(zone.clone()).or_default().taken += 1;
    }

    /// The server took one more change, and now is the time.
    pub(super) fn add_at(&self, zone: &Name, now: Timestamp) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = counted.entry(zone.clone()).or_default();
        steps.taken += 1;
        if let Some((_, last)) = &mut steps.during {
            *last = now;
        }
    }

    /// Whether our own changes moved the serial from `before` to `after`. If so, counting goes on from there.
    pub(super) fn explain(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        self.explain_by(zone, before, after, |steps, before, after| {
            steps.taken > 0 && before.wrapping_add(steps.taken) == after
        })
    }

    /// The same on a server that makes serials of the date.
    pub(super) fn explain_date(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        self.explain_by(zone, before, after, |steps, before, after| {
            steps.taken > 0 && (before.wrapping_add(steps.taken) == after || steps.begin_day(before, after))
        })
    }

    fn explain_by(
        &self,
        zone: &Name,
        before: &ChangeSign,
        after: &ChangeSign,
        explains: impl FnOnce(&Steps, u32, u32) -> bool,
    ) -> bool {
        let (Some(before), Some(after)) = (before.serial(), after.serial()) else { return false };
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let explained = counted.get(zone).is_some_and(|steps| explains(steps, before, after));
        if explained {
            counted.remove(zone);
        }
        explained
    }
}

impl Steps {
    /// Whether the first of these steps is the first change of a day. Midnight must not have passed anywhere meanwhile:
    /// otherwise another client may have made the last change of the day before.
    fn begin_day(&self, before: u32, after: u32) -> bool {
        let Some(first) = after.checked_sub(self.taken - 1) else { return false };
        let Some((asked, last)) = self.during else { return false };
        let quarter = |at: i64| at.div_euclid(BETWEEN_MIDNIGHTS);
        let is_quiet = quarter(asked.as_second() - SKEW) == quarter(last.as_second() + SKEW);
        first % 100 == 1 && before < first && is_quiet && is_date_of(first / 100, last)
    }
}

/// Whether `number` (20261118) is the date at this time somewhere on earth.
fn is_date_of(number: u32, at: Timestamp) -> bool {
    let part = |number: u32| i8::try_from(number % 100).ok();
    let year = i16::try_from(number / 10_000).ok();
    let date = || Date::new(year?, part(number / 100)?, part(number)?).ok();
    let shifted = |hours: i64| Timestamp::from_second(at.as_second() + hours * 3_600).ok();
    let day = |hours: i64| shifted(hours).map(|at| at.to_zoned(jiff::tz::TimeZone::UTC).date());
    date().is_some_and(|date| [-12, 0, 14].into_iter().any(|hours| day(hours) == Some(date)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_number_of_our_own_steps_is_explained() {
        let (steps, zone): (SerialSteps, Name) = (SerialSteps::default(), "example.test".parse().unwrap());
        let explain = |before: u32, after: u32| steps.explain(&zone, &before.into(), &after.into());
        assert!(!explain(7, 7), "a write that did nothing explains nothing");
        steps.add(&zone);
        steps.add(&zone);
        for after in [7, 8, 10] {
            assert!(!explain(7, after));
        }
        assert!(explain(7, 9) && !explain(9, 9), "counting goes on from there");
        steps.add(&zone);
        steps.add(&zone);
        assert!(explain(u32::MAX, 1), "a chain of writes counts as a whole");
        steps.add(&zone);
        steps.forget(&zone);
        assert!(!explain(1, 2));
    }

    #[test]
    fn the_first_change_of_a_day_is_explained_where_serials_are_dates() {
        let zone: Name = "example.test".parse().unwrap();
        let at = |text: &str| -> Timestamp { format!("2026-11-18T{text}Z").parse().unwrap() };
        let explain = |taken: u32, [asked, last]: [&str; 2], before: u32, after: u32| {
            let steps = SerialSteps::default();
            steps.ask(&zone, at(asked));
            (0..taken).for_each(|_| steps.add_at(&zone, at(last)));
            steps.explain_date(&zone, &before.into(), &after.into())
        };
        let noon = ["12:05:00", "12:06:00"];
        for before in [0, 7, 2_026_111_707] {
            assert!(explain(1, noon, before, 2_026_111_801));
            assert!(explain(3, noon, before, 2_026_111_803));
            assert!(!explain(3, noon, before, 2_026_111_804), "the first change of the day was not ours");
        }
        assert!(explain(2, noon, 2_026_111_803, 2_026_111_805), "it counts up on the same day");
        assert!(!explain(2, noon, 2_026_111_803, 2_026_111_802));
        assert!(!explain(0, noon, 7, 2_026_111_801), "nothing of ours was taken");
        for after in [2_026_112_101, 2_026_111_501, 2_026_139_901, 101] {
            assert!(!explain(1, noon, 0, after), "{after} is no date of today");
        }
        let near_midnight = [["12:10:00", "12:16:00"], ["12:14:30", "12:14:30"], ["12:15:30", "12:16:00"]];
        for during in near_midnight {
            assert!(!explain(1, during, 2_026_111_707, 2_026_111_801), "a day may have ended: {during:?}");
        }
        let steps = SerialSteps::default();
        steps.add(&zone);
        assert!(
            !steps.explain_date(&zone, &7_u32.into(), &2_026_111_801_u32.into()),
            "the serial was not asked for"
        );
    }
}
