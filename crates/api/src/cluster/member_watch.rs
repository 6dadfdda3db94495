//! Loads the registry of nodes, and follows its changes.

use std::{sync::Arc, time::Duration};

use netstead_store::{Store, Watch, WatchItem, pause_for};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    ClusterError, FORMAT_KEY,
    cache::{ClusterCache, PREFIX},
};

/// How long the store may take to answer before this node's own copy is used.
const PATIENCE: Duration = Duration::from_secs(2);

/// The watches of the registry and of the format, which has another prefix.
pub(super) struct Watches {
    nodes: Watch,
    format: Watch,
}

impl Watches {
    async fn next(&mut self) -> Option<WatchItem> {
        tokio::select! {
            item = self.nodes.next() => item,
            item = self.format.next() => item,
        }
    }
}

/// Loads the registry, and starts watches for changes after it. Without a majority this node's own copy is loaded, and there
/// are no watches.
pub(super) async fn load(
    store: &dyn Store,
    known: &watch::Sender<ClusterCache>,
) -> Result<Option<Watches>, ClusterError> {
    let whole = async {
        let nodes = store.watch(PREFIX).await?;
        let format = store.watch(FORMAT_KEY.as_bytes()).await?;
        let loaded = ClusterCache::read(&*store.snapshot().await?).await?;
        Ok::<_, ClusterError>((Watches { nodes, format }, loaded))
    };
    if let Ok(Ok((watches, loaded))) = tokio::time::timeout(PATIENCE, whole).await {
        known.send_modify(|known| known.reload(loaded));
        return Ok(Some(watches));
    }
    let own = ClusterCache::read(&*store.own_snapshot().await?).await?;
    known.send_modify(|known| known.reload(own));
    Ok(None)
}

pub(super) async fn follow(
    store: Arc<dyn Store>,
    known: watch::Sender<ClusterCache>,
    mut watches: Option<Watches>,
    stop: CancellationToken,
) {
    let news = async {
        let mut pause = Duration::from_millis(200);
        loop {
            let item = match &mut watches {
                Some(watches) => watches.next().await,
                None => None,
            };
            if let Some(WatchItem::Changed { writes, .. }) = item {
                known.send_modify(|known| known.apply(&writes));
                pause = Duration::from_millis(200);
                continue;
            }
            pause_for(&*store, pause).await;
            watches = load(&*store, &known).await.unwrap_or_else(|error| {
                warn!(%error, retry_in = ?pause, "The members cannot be read; those known stay.");
                None
            });
            pause = (pause * 2).min(Duration::from_secs(10));
        }
    };
    let elsewhere = follow_leader_elsewhere(&*store, &known);
    let both = async { tokio::join!(news, elsewhere) };
    stop.run_until_cancelled(both).await;
}

/// Learns which node leads from the nodes themselves, for as long as nothing new comes into the store of this one.
async fn follow_leader_elsewhere(store: &dyn Store, known: &watch::Sender<ClusterCache>) {
    let Some(node) = store.membership() else { return };
    let mut leads = node.leader_elsewhere();
    loop {
        let leader = *leads.borrow_and_update();
        if let Some(leader) = leader {
            known.send_if_modified(|known| known.led_elsewhere(&leader.node.to_string(), leader.epoch));
        }
        if leads.changed().await.is_err() {
            return;
        }
    }
}
