//! Whether etcd has used up its quota: every node asks, because one that follows commits next to nothing and would not notice.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use netstead_wire::etcd::messages::{Nothing, StatusResponse};
use tokio::time::sleep;

use super::{EtcdShared, examine::STATUS};

/// How often the members are asked.
const INTERVAL: Duration = Duration::from_secs(2);

pub(super) const NO_SPACE: &str = "etcd has used up its quota and takes no changes: compact, defragment (`etcdctl defrag`), \
                                   then `etcdctl alarm disarm`";

/// Asks the members again and again, until the store is closed.
pub(super) async fn watch(shared: Arc<EtcdShared>) {
    let asking = async {
        loop {
            let answers = shared.client.each::<_, StatusResponse>(STATUS, Nothing {}).await;
            let mut members = answers.into_iter().filter_map(|(_, _, answer)| answer.ok()).peekable();
            // Without any answer nothing is known, and what was known stays.
            if members.peek().is_some() {
                let full = members.any(|status| status.errors.iter().any(|error| error.contains("NOSPACE")));
                let before = shared.full.swap(full, Ordering::Relaxed);
                if full && !before {
                    tracing::error!("{NO_SPACE}.");
                } else if before && !full {
                    tracing::info!("etcd takes changes again.");
                }
            }
            sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        () = shared.closed.cancelled() => {}
        () = asking => {}
    }
}
