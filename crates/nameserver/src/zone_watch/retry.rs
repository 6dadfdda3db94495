//! Decides when a store that cannot be read is tried again, and when that is logged.

use std::time::Duration;

use netstead_store::{Health, Store};
use tokio::time::{sleep, timeout};

/// How soon the store is asked again at first…
const FIRST: Duration = Duration::from_secs(1);
/// …and how late at most.
const LAST: Duration = Duration::from_secs(30);

/// Changes that were tried since the store was last read.
#[derive(Debug, Default)]
pub(super) struct Retry {
    tries: u32,
    /// Why the last try failed.
    told: Option<String>,
}

impl Retry {
    /// Each pause is twice as long as the one before.
    pub(super) fn next_pause(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.tries)).min(LAST);
        self.tries = self.tries.saturating_add(1);
        pause
    }

    /// Whether this reason is another one than the last.
    pub(super) fn is_news(&mut self, reason: &str) -> bool {
        let news = self.told.as_deref() != Some(reason);
        if news {
            self.told = Some(reason.to_owned());
        }
        news
    }
}

/// Waits for `pause`, or less if the store says before that it is back.
pub(super) async fn wait(store: &dyn Store, pause: Duration) {
    let mut health = store.health_changes();
    sleep(FIRST).await;
    let back = async {
        while health.changed().await.is_ok() {
            if *health.borrow_and_update() == Health::Ready {
                return;
            }
        }
        std::future::pending::<()>().await;
    };
    let _ = timeout(pause.saturating_sub(FIRST), back).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use netstead_store::{FaultyStore, MemoryStore};

    use super::*;

    #[test]
    fn a_store_that_stays_away_is_asked_less_often_and_told_of_once() {
        let mut retry = Retry::default();
        let pauses: Vec<u64> = (0..8).map(|_| retry.next_pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
        let news = ["removed", "removed", "no quorum", "no quorum", "removed"].map(|why| retry.is_news(why));
        assert_eq!(news, [true, false, true, false, true]);
    }

    #[tokio::test]
    async fn a_store_that_is_back_is_asked_before_the_pause_ends() {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        store.set_outage(Some("away"));
        let back = async {
            sleep(FIRST + Duration::from_millis(100)).await;
            store.set_outage(None);
        };
        let both = async { tokio::join!(wait(&store, LAST), back) };
        timeout(LAST / 2, both).await.expect("the pause was waited for to its end");
    }
}
