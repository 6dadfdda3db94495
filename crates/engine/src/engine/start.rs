//! Opening everything the loops need.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, RwLock},
    time::Duration,
};

use netstead_model::{Clock, Ident, Name};
use netstead_store::{Store, WatchItem, Write};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::configure;
use crate::{
    EngineError, Manual, Options, Setup,
    addresses::Addresses,
    history::History,
    inventory::Keeper,
    keys,
    pause::Pauses,
    shared::{Newest, Shared},
    shelf::{Lead, Shelf, entries},
    time::{EngineTime, StoredTime},
};

/// The name of the source that people set records in.
pub(super) const MANUAL: &str = "manual";

pub(super) async fn open(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    setup: &Setup,
    options: Options,
) -> Result<Arc<Shared>, EngineError> {
    configure::check(setup)?;
    let lead = Arc::new(Lead::current(&*store, options.epoch).await?);
    let shelf = |writer: &str| Shelf::new(store.clone(), lead.clone(), writer);
    let stored: Option<StoredTime> = shelf("time").get(keys::TIME).await?;
    let time = EngineTime::from(clock.clone(), stored);
    let (keeper, mut inventory) = Keeper::load(shelf("inventory")).await?;
    inventory.take_over(time.now());
    let manual: Ident = MANUAL.parse().map_err(|error: netstead_model::ParseError| EngineError::Invalid {
        field: "source",
        reason: error.to_string(),
    })?;
    let newest = Newest { number: 1, inventory: Arc::new(inventory) };
    let history = Arc::new(History::load(shelf("history")).await?);
    Ok(Arc::new(Shared {
        manual: Manual::load(manual, shelf("manual"), clock.clone(), history.clone()).await?,
        pauses: Pauses::load(shelf("pause")).await?,
        history,
        pruned: Mutex::new(clock.monotonic()),
        inventory: watch::Sender::new(newest),
        keeper: AsyncMutex::new(keeper),
        domains: RwLock::new(Arc::new(setup.domains.clone())),
        sources: Mutex::new(BTreeMap::new()),
        providers: Mutex::new(BTreeMap::new()),
        detached: Mutex::new(Vec::new()),
        renames: RwLock::default(),
        addresses: Addresses::default(),
        stop: CancellationToken::new(),
        store,
        clock,
        options,
        lead,
        time,
    }))
}

/// Listens for zones that a former leader wrote to late.
pub(super) async fn watch_doubts(shared: &Arc<Shared>) -> Result<(), EngineError> {
    let mut watch = shared.store.watch(keys::DOUBT.as_bytes()).await?;
    let found = entries(&*shared.store, keys::DOUBT).await?;
    for entry in &found {
        doubt(shared, &entry.key);
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
                            doubt(&shared, key);
                        }
                    }
                }
                Some(WatchItem::Lost) | None => {
                    sleep(Duration::from_secs(1)).await;
                    let Ok(again) = shared.store.watch(keys::DOUBT.as_bytes()).await else { continue };
                    watch = again;
                    let found = entries(&*shared.store, keys::DOUBT).await.unwrap_or_default();
                    for entry in &found {
                        doubt(&shared, &entry.key);
                    }
                }
            }
        }
    });
    Ok(())
}

fn doubt(shared: &Shared, key: &[u8]) {
    let place = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(keys::DOUBT));
    let Some((provider, zone)) = place.and_then(|place| place.split_once('/')) else { return };
    let (Ok(provider), Ok(zone)) = (provider.parse::<Ident>(), zone.parse::<Name>()) else { return };
    let handle = shared.providers().get(&provider).cloned();
    if let Some(handle) = handle {
        handle.doubt(zone);
    }
}
