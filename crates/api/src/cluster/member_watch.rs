//! Loads the registry of nodes, and follows its changes.

use std::{sync::Arc, time::Duration};

use netstead_store::{Store, Watch, WatchItem};
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
        known.send_replace(loaded);
        return Ok(Some(watches));
    }
    known.send_replace(ClusterCache::read(&*store.own_snapshot().await?).await?);
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
            tokio::time::sleep(pause).await;
            watches = load(&*store, &known).await.unwrap_or_else(|error| {
                warn!(%error, retry_in = ?pause, "The members cannot be read; those known stay.");
                None
            });
            pause = (pause * 2).min(Duration::from_secs(10));
        }
    };
    stop.run_until_cancelled(news).await;
}
