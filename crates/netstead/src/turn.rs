//! Taking turns on a store that several processes share: one leads, the others wait.

use std::time::Duration;

use netstead_store::{EPOCH_KEY, Store, Version};
use tokio::time::sleep;

use crate::failure::Failure;

/// Nobody is told of a wait that is over at once.
const UNNOTICED: Duration = Duration::from_secs(1);

/// How often a leader looks whether it still is one. The store refuses its commits in any case.
const LOOK: Duration = Duration::from_secs(1);

/// Says once that another process leads; never returns.
pub(crate) async fn say_that_it_waits() {
    sleep(UNNOTICED).await;
    tracing::info!("Another Netstead leads this store; waiting for its end.");
    std::future::pending::<()>().await;
}

/// Returns when another process has taken the lead.
pub(crate) async fn over(store: &dyn Store) {
    let mut ours: Option<Version> = None;
    loop {
        if let Ok(Some(entry)) = store.get(EPOCH_KEY).await
            && *ours.get_or_insert(entry.version) != entry.version
        {
            return;
        }
        sleep(LOOK).await;
    }
}

pub(crate) fn lost() -> anyhow::Error {
    let hint = "start it again, and it waits for its turn";
    Failure::new("another Netstead leads this store now").hint(hint).into()
}
