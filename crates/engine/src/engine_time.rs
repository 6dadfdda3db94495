//! Engine time: milliseconds that only grow, and stand still while no node leads.

use std::{sync::Arc, time::Duration};

use netstead_model::Clock;
use netstead_plan::Now;
use netstead_store::Write;
use serde::{Deserialize, Serialize};

use crate::keys;

#[derive(Debug)]
pub(crate) struct EngineTime {
    clock: Arc<dyn Clock>,
    /// The stored time when this leader began, and the monotonic clock at that moment.
    base: u64,
    begun: Duration,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoredTime {
    pub(crate) time: u64,
}

impl EngineTime {
    pub(crate) fn from(clock: Arc<dyn Clock>, stored: Option<StoredTime>) -> Self {
        let begun = clock.monotonic();
        // Never 0: that is what things have that never happened.
        Self { clock, base: stored.map_or(1, |stored| stored.time), begun }
    }

    pub(crate) fn now(&self) -> Now {
        let passed = self.clock.monotonic().saturating_sub(self.begun);
        let millis = self.base.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        Now { millis, at: self.clock.wall() }
    }

    pub(crate) fn write(&self) -> Write {
        Write::Put(keys::TIME.into(), keys::encode(&StoredTime { time: self.now().millis }))
    }
}
