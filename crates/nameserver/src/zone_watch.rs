//! [`ZoneWatcher`]: keeps the zones in memory up to date with the store.

mod load;
mod retry;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use netstead_model::Name;
use netstead_store::{Store, StoreError, Watch, WatchItem, Write};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use self::retry::Retry;
use crate::{
    notify::Notifier,
    stored_zone::{self, Entry, Header, Slot, StoredKey, Values},
    zone::{Diff, Set, Zone},
    zones::Zones,
};

/// How long a start waits for the store as a whole before this node's own copy has to do.
const PATIENCE: Duration = Duration::from_secs(3);

/// Follows the store and exchanges zones.
#[derive(Debug)]
pub(crate) struct ZoneWatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) zones: Arc<Zones>,
    pub(crate) host: Name,
    pub(crate) notifier: Notifier,
    held: HashMap<Name, LoadedZone>,
}

/// One zone as the store has it.
#[derive(Debug)]
struct LoadedZone {
    header: Header,
    zone: Zone,
    /// Entries that are not seen yet.
    staged: BTreeMap<Slot, Entry>,
}

/// Entries in their new state; `None` was removed.
type Entries = Vec<(Slot, Option<Entry>)>;

/// A commit that does not follow the last one we know: start from a snapshot.
#[derive(Debug)]
struct Gap;

impl ZoneWatcher {
    pub(crate) fn new(store: Arc<dyn Store>, zones: Arc<Zones>, host: Name, notifier: Notifier) -> Self {
        Self { store, zones, host, notifier, held: HashMap::new() }
    }

    /// Loads everything and returns the watch that goes on from there. Without the agreement of other nodes this one's
    /// own copy is answered, however old, and there is nothing to go on from yet.
    pub(crate) async fn begin(&mut self) -> Result<Option<Watch>, StoreError> {
        if let Ok(Ok(watch)) = timeout(PATIENCE, self.load()).await {
            return Ok(Some(watch));
        }
        let own = self.store.own_snapshot().await?;
        let loaded = load::load(&*own, &self.host).await?;
        self.replace(loaded);
        warn!("Zones are answered from this node's own copy: the store as a whole cannot be read.");
        Ok(None)
    }

    /// Loads everything and returns the watch that goes on from there.
    async fn load(&mut self) -> Result<Watch, StoreError> {
        // Watch first: what changes while we load is seen twice rather than not at all, and counted by its edit.
        let watch = self.store.watch(stored_zone::PREFIX).await?;
        let whole = self.store.snapshot().await?;
        let loaded = load::load(&*whole, &self.host).await?;
        self.replace(loaded);
        Ok(watch)
    }

    /// Answers from these zones and no others.
    fn replace(&mut self, loaded: BTreeMap<Name, LoadedZone>) {
        let mut held = HashMap::with_capacity(loaded.len());
        let mut picture = crate::sharded::Sharded::new();
        for (name, mut new) in loaded {
            let known = self.held.get(&name);
            match known.filter(|known| known.header.serial == new.header.serial) {
                Some(known) => new.zone.history = known.zone.history.clone(),
                None => self.notifier.changed(&name, &new.zone),
            }
            if new.is_served() {
                picture.insert(&new.zone.apex, Arc::new(new.zone.clone()));
            }
            held.insert(name, new);
        }
        self.held = held;
        self.zones.store(picture);
    }

    /// Follows until told to stop. While the store cannot be had, the last known zones are answered.
    pub(crate) async fn run(mut self, mut watch: Option<Watch>, stop: CancellationToken) {
        loop {
            let next = async {
                match &mut watch {
                    Some(watch) => watch.next().await,
                    None => None,
                }
            };
            let item = tokio::select! {
                () = stop.cancelled() => return,
                item = next => item,
            };
            let followed = match item {
                Some(WatchItem::Changed { writes, .. }) => self.apply(&writes),
                Some(WatchItem::Lost) | None => Err(Gap),
            };
            if followed.is_ok() {
                continue;
            }
            let mut retry = Retry::default();
            watch = loop {
                let error = match self.load().await {
                    Ok(watch) => break Some(watch),
                    Err(error) => error.to_string(),
                };
                let pause = retry.next_pause();
                if retry.is_news(&error) {
                    warn!(error, retry_in = ?pause, "Zones cannot be read; the last known are answered.");
                } else {
                    debug!(error, retry_in = ?pause, "Zones still cannot be read.");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = retry::wait(&*self.store, pause) => {}
                }
            };
        }
    }

    /// Takes over one commit. It is about one zone, but nothing here relies on that.
    fn apply(&mut self, writes: &[Write]) -> Result<(), Gap> {
        let mut zones: BTreeMap<Name, (Option<Header>, Entries)> = BTreeMap::new();
        for write in writes {
            let (key, value) = match write {
                Write::Put(key, value) => (key, Some(value)),
                Write::Delete(key) => (key, None),
            };
            match stored_zone::parse_key(key) {
                Some(StoredKey::Header(zone)) => {
                    zones.entry(zone).or_default().0 = value.and_then(|value| decoded(key, value));
                }
                Some(StoredKey::Set(zone, slot)) => {
                    let entry = match value {
                        // What cannot be read changes nothing.
                        Some(value) => match decoded(key, value) {
                            Some(entry) => Some(entry),
                            None => continue,
                        },
                        None => None,
                    };
                    zones.entry(zone).or_default().1.push((slot, entry));
                }
                None => {
                    warn!(key = %String::from_utf8_lossy(key), "A key of the nameserver is not understood.");
                }
            }
        }
        let mut picture = None;
        for (name, (header, entries)) in zones {
            let header = header.ok_or(Gap)?;
            let held = self.held.entry(name.clone()).or_insert_with(|| LoadedZone {
                header: Header::default(),
                zone: Zone::new(name.clone(), self.host.clone(), 0, header.lone),
                staged: BTreeMap::new(),
            });
            if header.edit <= held.header.edit {
                continue;
            }
            if header.edit != held.header.edit + 1 {
                return Err(Gap);
            }
            if held.advance(header, entries) {
                let picture = picture.get_or_insert_with(|| (**self.zones.load()).clone());
                if held.is_served() {
                    picture.insert(&held.zone.apex, Arc::new(held.zone.clone()));
                } else {
                    picture.remove(&held.zone.apex);
                }
                self.notifier.changed(&name, &held.zone);
            }
        }
        if let Some(picture) = picture {
            self.zones.store(picture);
        }
        Ok(())
    }
}

fn decoded<T: serde::de::DeserializeOwned>(key: &[u8], value: &[u8]) -> Option<T> {
    stored_zone::decode(key, value)
        .inspect_err(|reason| error!(%reason, "A stored value cannot be read."))
        .ok()
}

impl LoadedZone {
    /// A lone zone without records says nothing, so it is not there.
    fn is_served(&self) -> bool {
        self.header.serial > 0 && !(self.zone.lone && self.zone.is_empty())
    }

    /// Takes over the next header and its entries. True if what is answered changed.
    fn advance(&mut self, header: Header, entries: Entries) -> bool {
        let mut seen: BTreeMap<Slot, Option<Values>> = BTreeMap::new();
        for (slot, entry) in entries {
            self.staged.remove(&slot);
            match entry {
                Some(entry) if entry.from > header.visible => {
                    self.staged.insert(slot, entry);
                }
                Some(entry) => {
                    seen.insert(slot, entry.set);
                }
                None => {
                    seen.insert(slot, None);
                }
            }
        }
        let ripe: Vec<Slot> = self
            .staged
            .iter()
            .filter(|(_, entry)| entry.from <= header.visible)
            .map(|(slot, _)| slot.clone())
            .collect();
        for slot in ripe {
            let set = self.staged.remove(&slot).and_then(|entry| entry.set);
            seen.insert(slot, set);
        }
        let mut diff =
            Diff { from: self.header.serial, to: header.serial, removed: Vec::new(), added: Vec::new() };
        for (slot, values) in seen {
            let owner: Box<[u8]> = slot.name.to_wire().into();
            let set = values.map(|values| Arc::new(Set::new(&values.to_set(&slot))));
            let old = self.zone.replace(&owner, slot.kind.number(), set.clone());
            if old != set {
                diff.removed.extend(old.map(|old| (owner.clone(), old)));
                diff.added.extend(set.map(|set| (owner, set)));
            }
        }
        let changed = header.serial != self.header.serial || header.lone != self.header.lone;
        if changed {
            self.zone.lone = header.lone;
            self.zone.set_serial(header.serial);
            self.zone.history.push(diff);
        }
        self.header = header;
        changed
    }
}
