//! Loads all zones from one snapshot.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::Name;
use netstead_store::{Entry as Stored, Snapshot, StoreError};

use super::{LoadedZone, decoded};
use crate::{
    stored_zone::{self, Entry, Header, StoredKey},
    zone::{Set, Zone},
};

const PAGE: usize = 1000;

/// Every zone of one moment. What cannot be read is left out, and logged.
pub(super) async fn load(
    snapshot: &dyn Snapshot,
    host: &Name,
) -> Result<BTreeMap<Name, LoadedZone>, StoreError> {
    let mut zones = BTreeMap::new();
    pages(snapshot, stored_zone::ZONES.as_bytes(), |key, value| {
        let header: Option<Header> = decoded(key, value);
        if let Some((StoredKey::Header(name), header)) = stored_zone::parse_key(key).zip(header) {
            let zone = Zone::new(name.clone(), host.clone(), header.serial, header.lone);
            zones.insert(name, LoadedZone { header, zone, staged: BTreeMap::new() });
        }
    })
    .await?;
    pages(snapshot, stored_zone::SETS.as_bytes(), |key, value| {
        let entry: Option<Entry> = decoded(key, value);
        let Some((StoredKey::Set(name, slot), entry)) = stored_zone::parse_key(key).zip(entry) else {
            return;
        };
        let Some(held) = zones.get_mut(&name) else { return };
        if let Some(values) = entry.visible_values(held.header.visible) {
            let set = Arc::new(Set::new(&values.to_set(&slot)));
            held.zone.replace(&slot.name.to_wire(), slot.kind.number(), Some(set));
        }
        if entry.from > held.header.visible {
            held.staged.insert(slot, entry);
        }
    })
    .await?;
    Ok(zones)
}

async fn pages(
    snapshot: &dyn Snapshot,
    prefix: &[u8],
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), StoreError> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = snapshot.range(prefix, after.as_deref(), PAGE).await?;
        for Stored { key, value, .. } in &page {
            each(key, value);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.key.clone()),
            _ => return Ok(()),
        }
    }
}
