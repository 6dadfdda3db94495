//! An observer that reads one place all the time, and finds when it goes back.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netstead_testkit::history::History;

/// How often it looks.
const GLANCE: Duration = Duration::from_millis(50);

/// Epochs and generations in the order they were seen, with when by the clock of the history.
type Observations = Arc<Mutex<Vec<(Duration, u64, u64)>>>;

pub(crate) struct Observer {
    seen: Observations,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// `open` is called on the thread that looks, since who looks may block.
    pub(crate) fn of<L: Fn() -> Option<(u64, u64)>>(
        name: &'static str,
        clock: Arc<History>,
        open: impl FnOnce() -> L + Send + 'static,
    ) -> Self {
        let (seen, over) = (Observations::default(), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (seen, over) = (Arc::clone(&seen), Arc::clone(&over));
            move || {
                let look = open();
                while !over.load(Ordering::Relaxed) {
                    if let Some((epoch, generation)) = look() {
                        let mut seen = seen.lock().unwrap();
                        let last = seen.last().copied().unwrap_or_default();
                        assert!(
                            (epoch, generation) >= (last.1, last.2) && generation >= last.2,
                            "{name} went from {last:?} to epoch {epoch}, generation {generation}"
                        );
                        if (last.1, last.2) != (epoch, generation) {
                            seen.push((clock.now(), epoch, generation));
                        }
                    }
                    thread::sleep(GLANCE);
                }
            }
        });
        Self { seen, over, thread: Some(thread) }
    }

    /// The longest time in which nothing new was applied.
    pub(crate) fn longest_pause(&self) -> Duration {
        let seen = self.seen.lock().unwrap();
        let moments = seen.iter().map(|(at, ..)| *at);
        moments
            .clone()
            .skip(1)
            .zip(moments)
            .map(|(next, last)| next.saturating_sub(last))
            .max()
            .unwrap_or_default()
    }

    /// When after `moment` something new was seen first, of a later epoch than `epoch`.
    pub(crate) fn first_after(&self, moment: Duration, epoch: Option<u64>) -> Option<Duration> {
        let seen = self.seen.lock().unwrap();
        let later = |of: u64| epoch.is_none_or(|epoch| of > epoch);
        seen.iter().find(|(at, of, _)| *at > moment && later(*of)).map(|(at, ..)| *at)
    }

    /// How many different ones were seen.
    pub(crate) fn end(mut self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "what is applied never goes back");
        self.seen.lock().unwrap().len()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
