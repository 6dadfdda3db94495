//! Loads the engine's state from the store, and watches for zones that a former leader wrote to late.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, RwLock},
    time::Duration,
};

use netstead_model::{Clock, Ident};
use netstead_store::{Store, WatchItem, Write};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::configure;
use crate::{
    EngineError, Manual, Options, Setup,
    engine_state::{EngineState, LatestInventory},
    engine_time::{EngineTime, StoredTime},
    fenced_store::{FencedStore, LeaderEpoch, entries},
    history::History,
    ignored_drift::IgnoredDrifts,
    inventory_store::InventoryStore,
    keys,
    ledger_sync::LedgerSync,
    name_news::NameNews,
    name_problems::NameProblems,
    pause::Pauses,
};

/// The name of the source that people set records in.
pub(super) const MANUAL: &str = "manual";

pub(super) async fn open(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    setup: &Setup,
    options: Options,
) -> Result<Arc<EngineState>, EngineError> {
    configure::check(setup)?;
    let lead = Arc::new(LeaderEpoch::current(&*store, options.epoch).await?);
    let fenced_store = |writer: &str| FencedStore::new(store.clone(), lead.clone(), writer);
    let stored: Option<StoredTime> = fenced_store("time").get(keys::TIME).await?;
    let time = EngineTime::from(clock.clone(), stored);
    let (keeper, mut inventory) = InventoryStore::load(fenced_store("inventory")).await?;
    inventory.take_over(time.now());
    let manual: Ident = MANUAL.parse().map_err(|error: netstead_model::ParseError| EngineError::Invalid {
        field: "source",
        reason: error.to_string(),
    })?;
    let newest = LatestInventory { number: 1, inventory: Arc::new(inventory) };
    let history = Arc::new(History::load(fenced_store("history")).await?);
    Ok(Arc::new(EngineState {
        manual: Manual::load(manual, fenced_store("manual"), clock.clone(), history.clone()).await?,
        pauses: Pauses::load(fenced_store("pause")).await?,
        ignored: IgnoredDrifts::load(fenced_store("ignored")).await?,
        history,
        pruned: Mutex::new(clock.monotonic()),
        inventory: watch::Sender::new(newest),
        inventory_store: AsyncMutex::new(keeper),
        domains: RwLock::new(Arc::new(setup.domains.clone())),
        pushed: Mutex::new(BTreeMap::new()),
        sources: Mutex::new(BTreeMap::new()),
        providers: Mutex::new(BTreeMap::new()),
        ipam: Mutex::new(BTreeMap::new()),
        detached: Mutex::new(Vec::new()),
        renames: RwLock::default(),
        ledger_sync: LedgerSync::default(),
        name_news: NameNews::default(),
        name_problems: NameProblems::default(),
        stop: CancellationToken::new(),
        store,
        clock,
        options,
        lead,
        time,
    }))
}

/// Listens for zones that a former leader wrote to late.
pub(super) async fn watch_doubts(shared: &Arc<EngineState>) -> Result<(), EngineError> {
    let mut watch = shared.store.watch(keys::DOUBT.as_bytes()).await?;
    let found = entries(&*shared.store, keys::DOUBT).await?;
    for entry in &found {
        mark_doubtful_zone(shared, &entry.key);
    }
    let shared = shared.clone();
    tokio::spawn(async move {
        loop {
            let item = tokio::select! {
                () = shared.stop.cancelled() => return,
                item = watch.next() => item,
            };
            match item {
                Some(WatchItem::Changed { writes, .. }) => {
                    for write in writes.iter() {
                        if let Write::Put(key, _) = write {
                            mark_doubtful_zone(&shared, key);
                        }
                    }
                }
                Some(WatchItem::Lost) | None => {
                    sleep(Duration::from_secs(1)).await;
                    let Ok(again) = shared.store.watch(keys::DOUBT.as_bytes()).await else { continue };
                    watch = again;
                    let found = entries(&*shared.store, keys::DOUBT).await.unwrap_or_default();
                    for entry in &found {
                        mark_doubtful_zone(&shared, &entry.key);
                    }
                }
            }
        }
    });
    Ok(())
}

fn mark_doubtful_zone(shared: &EngineState, key: &[u8]) {
    let place = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(keys::DOUBT));
    let Some((provider, zone)) = place.and_then(|place| place.split_once('/')) else { return };
    let Ok(provider) = provider.parse::<Ident>() else { return };
    let handle = shared.providers().get(&provider).cloned();
    if let Some(handle) = handle {
        handle.mark_doubtful(zone);
    }
    let handle = shared.ipam().get(&provider).cloned();
    if let Some(handle) = handle {
        handle.mark_doubtful(zone);
    }
}
