//! The one place where time comes from, so that tests can hold it still.

use std::{
    fmt::Debug,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

/// The time, for people and for measuring.
pub trait Clock: Send + Sync + Debug {
    /// The time of day. It may jump either way; it is for people and events only.
    fn wall(&self) -> Timestamp;

    /// Time since some moment in the life of this process. It never goes back; whether it counts while the
    /// machine sleeps is left open.
    fn monotonic(&self) -> Duration;
}

impl<T: Clock + ?Sized> Clock for Arc<T> {
    fn wall(&self) -> Timestamp {
        (**self).wall()
    }

    fn monotonic(&self) -> Duration {
        (**self).monotonic()
    }
}

/// The machine's clock. All values of it agree.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemClock;

impl SystemClock {
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(Self)
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that everybody else asks")]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

#[allow(clippy::disallowed_methods, reason = "this is the clock that everybody else asks")]
impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        let start = *START;
        Instant::now().saturating_duration_since(start)
    }
}

/// A clock that stands still until a test moves it. Clones share the time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    time: Arc<Mutex<Time>>,
}

#[derive(Debug)]
struct Time {
    wall: Timestamp,
    monotonic: Duration,
}

impl ManualClock {
    /// A clock that shows `wall` and has measured nothing yet.
    pub fn at(wall: Timestamp) -> Self {
        Self { time: Arc::new(Mutex::new(Time { wall, monotonic: Duration::ZERO })) }
    }

    /// Lets time pass, on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut time = self.lock();
        time.monotonic = time.monotonic.saturating_add(by);
        time.wall = time.wall.checked_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Sets the time of day forward or back, as a person or NTP would; nothing else notices.
    pub fn jump_wall(&self, by: SignedDuration) {
        let mut time = self.lock();
        let end = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
        time.wall = time.wall.checked_add(by).unwrap_or(end);
    }

    /// The same clock for those who take any.
    pub fn shared(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    /// A clock that shows 2001-09-09T01:46:40Z, the billionth second.
    fn default() -> Self {
        Self::at(
            Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(1_000_000_000)).unwrap_or_default(),
        )
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.lock().wall
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }
}
