//! Log lines that an outsider can cause: a few are written, the rest is counted.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::Clock;

/// Lets one line through per period and counts those it holds back.
#[derive(Debug)]
pub struct LogLimit {
    period: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Duration>,
    held_back: u64,
}

impl LogLimit {
    pub fn new(period: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { period, clock, state: Mutex::default() }
    }

    /// `Some` when a line may be written now, with how many were held back since the last one.
    pub fn pass(&self) -> Option<u64> {
        let now = self.clock.monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.saturating_sub(last) < self.period) {
            state.held_back += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.held_back))
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn one_line_per_period_passes_and_the_next_one_counts_the_others() {
        let clock = ManualClock::default();
        let limit = LogLimit::new(Duration::from_secs(30), clock.shared());
        let passed: Vec<_> = (0..4).map(|_| limit.pass()).collect();
        assert_eq!(passed, [Some(0), None, None, None]);
        clock.advance(Duration::from_secs(30));
        assert_eq!((limit.pass(), limit.pass()), (Some(3), None));
    }
}
