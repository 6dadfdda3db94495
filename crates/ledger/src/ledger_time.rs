//! Ledger time, as the leader counts it: it never goes back, and stands still while no process leads.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use netstead_model::Clock;

/// How far the wall clock may go its own way before it is believed. What people see of a lease's end stands still
/// meanwhile.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Ledger time is that of the last beginning plus what the monotonic clock has moved since.
#[derive(Debug, Default)]
pub(crate) struct LedgerTime(Mutex<TimeBase>);

#[derive(Debug, Clone, Copy, Default)]
struct TimeBase {
    time: u64,
    mono: Duration,
    wall: Timestamp,
}

impl LedgerTime {
    /// It is `time` now.
    pub fn begin(&self, time: u64, clock: &dyn Clock) {
        let begun = TimeBase { time, mono: clock.monotonic(), wall: clock.wall() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }

    pub fn now(&self, clock: &dyn Clock) -> u64 {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.time.saturating_add(millis(clock.monotonic().saturating_sub(begun.mono)))
    }

    /// The time of day at which it was, or will be, `time`. It is the same whenever one asks, unless the wall clock was
    /// set.
    pub fn wall(&self, time: u64, clock: &dyn Clock) -> Timestamp {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, passed) = (clock.wall(), clock.monotonic().saturating_sub(begun.mono));
        let expected = begun.wall.checked_add(passed).unwrap_or(Timestamp::MAX);
        if expected.duration_until(wall).unsigned_abs() > TOLERANCE {
            begun.wall = wall.checked_sub(passed).unwrap_or(Timestamp::MIN);
        }
        let apart = Duration::from_millis(time.abs_diff(begun.time));
        if time < begun.time {
            begun.wall.checked_sub(apart).unwrap_or(Timestamp::MIN)
        } else {
            begun.wall.checked_add(apart).unwrap_or(Timestamp::MAX)
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
