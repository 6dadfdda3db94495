//! Time and luck that are the same in each run.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_model::Clock;
use netstead_store::faults::Fault;
use tokio::time::Instant;

/// The clock of tokio, which stands still until all tasks wait.
#[derive(Debug)]
pub(crate) struct TokioClock(Instant);

#[allow(clippy::disallowed_methods, reason = "this is a clock")]
impl TokioClock {
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

#[allow(clippy::disallowed_methods, reason = "this is a clock")]
impl Clock for TokioClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_000_000_000).unwrap().checked_add(self.monotonic()).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Instant::now() - self.0
    }
}

/// Numbers that look random and are the same in each run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.below(7);
        dice
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub fn fault(&mut self, percent: u64, pace: u32) -> Fault {
        if self.below(100) >= percent {
            return Fault::Pass;
        }
        let time = Duration::from_millis(1 + self.below(4000)) / pace;
        match self.below(5) {
            0 => Fault::Fail,
            1 => Fault::LandUnknown,
            2 => Fault::LoseUnknown,
            3 => Fault::LandLater(time),
            _ => Fault::Delay(time),
        }
    }
}
