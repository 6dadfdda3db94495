//! A thread beside the writer that does what may be late: it writes the high-water mark, and it notices when
//! the writer does not come back from the disk.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use tracing::{error, warn};

use super::shared_state::LocalShared;
use crate::Health;

const TICK: Duration = Duration::from_secs(1);

/// Ticks a group of commits may take before health says that it hangs.
const PATIENCE: u32 = 30;

pub(super) struct Housekeeper {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Housekeeper {
    pub(super) fn start(shared: Arc<LocalShared>, marked: u64) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("netstead-keeper".into()).spawn(move || {
            let mut marks = MarkWriter { written: marked, failing: false };
            let mut watchdog = Watchdog::default();
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                marks.tick(&shared);
                watchdog.check_progress(&shared);
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread; no mark is written afterwards.
    pub(super) fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join(); // A panic in there has been reported, and there is nothing left to do.
    }
}

struct MarkWriter {
    written: u64,
    failing: bool,
}

impl MarkWriter {
    fn tick(&mut self, shared: &LocalShared) {
        let mark = shared.high_water_mark(false);
        if mark.revision == self.written {
            return;
        }
        match mark.write(shared.path()) {
            Ok(()) => {
                self.written = mark.revision;
                self.failing = false;
            }
            Err(error) => {
                if !self.failing {
                    warn!(%error, "The high-water mark cannot be written and stays behind.");
                }
                self.failing = true;
            }
        }
    }
}

/// Counts how often it has seen the same group under way.
#[derive(Debug, Default)]
struct Watchdog {
    seen: u64,
    ticks: u32,
    barking: bool,
}

impl Watchdog {
    fn check_progress(&mut self, shared: &LocalShared) {
        let hangs = self.hangs(shared.progress.now());
        let complaint = Health::Failed {
            reason: format!(
                "a commit has been waiting for the disk of {} for {PATIENCE} s; if this goes on, check the \
                 disk and restart netstead",
                shared.path().display()
            ),
        };
        if hangs && !self.barking {
            error!(dir = %shared.path().display(), "A commit does not come back from the disk.");
            shared.health().send_if_modified(|health| replace(health, &Health::Ready, complaint));
        } else if !hangs && self.barking {
            warn!(dir = %shared.path().display(), "The disk answers again.");
            shared.health().send_if_modified(|health| replace(health, &complaint, Health::Ready));
        }
        self.barking = hangs;
    }

    fn hangs(&mut self, now: u64) -> bool {
        let under_way = now % 2 == 1;
        self.ticks = if under_way && now == self.seen { self.ticks.saturating_add(1) } else { 0 };
        self.seen = now;
        self.ticks >= PATIENCE
    }
}

/// Leaves alone what the writer says about the store.
fn replace(health: &mut Health, only: &Health, new: Health) -> bool {
    let ours = health == only;
    if ours {
        *health = new;
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::{super::shared_state::Progress, *};

    #[test]
    fn only_one_group_that_stays_under_way_hangs() {
        let progress = Progress::default();
        let mut watchdog = Watchdog::default();
        for _ in 0..100 {
            assert!(!watchdog.hangs(progress.now()), "idle");
        }
        for _ in 0..100 {
            progress.begin();
            assert!(!watchdog.hangs(progress.now()), "busy, another one each time");
            progress.end();
        }
        progress.begin();
        for tick in 0..=PATIENCE {
            assert_eq!(watchdog.hangs(progress.now()), tick == PATIENCE);
        }
        progress.end();
        assert!(!watchdog.hangs(progress.now()), "over");
    }
}
