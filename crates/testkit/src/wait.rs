//! [`wait_until`]: waits for a condition, with a deadline.

use std::{
    thread,
    time::{Duration, Instant},
};

const PAUSE: Duration = Duration::from_millis(10);

/// Calls `look` until it finds something or `patience` has passed. It is called at least once.
#[expect(clippy::disallowed_methods, reason = "tests wait for real processes, in real time")]
pub fn wait_until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if start.elapsed() >= patience {
            return None;
        }
        thread::sleep(PAUSE);
    }
}
