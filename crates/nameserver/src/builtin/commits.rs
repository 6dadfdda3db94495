//! Writes changes of a zone: in one commit if they fit, else in several that readers see at once (see `stored_zone`).

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, ProviderError, Unit, WriteRequest};
use netstead_store::{Commit, Condition, MAX_BYTES, MAX_WRITES, Snapshot, StoreError, Write};

use super::{Builtin, Head, change::Present};
use crate::stored_zone::{self, Entry, Header, Slot, Values};

/// From this many names on, the whole zone is read rather than each name.
const MANY: usize = 64;
/// Bytes of a commit that are kept free for the header.
const ROOM: usize = 4096;

type Slots = BTreeMap<Slot, (Option<Values>, Option<Values>)>;

impl Builtin {
    /// The sets at the names of a request; all sets of a lone zone, which is small.
    pub(super) async fn present(
        &self,
        snapshot: &dyn Snapshot,
        zone: &Name,
        request: &WriteRequest,
        header: &Header,
    ) -> Result<Present, ProviderError> {
        let mut entries = Vec::new();
        if request.units.len() < MANY && !header.lone {
            let names: BTreeSet<&Name> = request.units.iter().flat_map(Unit::names).collect();
            for name in names {
                entries.extend(self.entries(snapshot, &stored_zone::name_prefix(zone, name)).await?);
            }
        } else {
            entries = self.entries(snapshot, &stored_zone::zone_prefix(zone)).await?;
        }
        let seen = |(slot, entry): (Slot, Entry)| {
            entry.visible_values(header.visible).cloned().map(|values| (slot, values))
        };
        Ok(entries.into_iter().filter_map(seen).collect())
    }

    /// Makes `slots` the state of the zone, at one moment for every reader.
    pub(super) async fn write_changes(
        &self,
        zone: &Name,
        head: &mut Head,
        fence: (u64, u64),
        slots: &Slots,
    ) -> Result<(), StoreError> {
        let newer = fence > (head.header.epoch, head.header.generation);
        (head.header.epoch, head.header.generation) = fence;
        if slots.is_empty() {
            // Nothing to change, but a late write must not undo the state that this one confirmed: raise the fence.
            return if newer && head.version.is_some() {
                self.commit(zone, head, Vec::new()).await
            } else {
                Ok(())
            };
        }
        let from = head.header.edit + 1;
        let plain: Vec<Write> =
            slots.iter().map(|(slot, (_, after))| put(zone, slot, from, after.as_ref())).collect();
        if fits(&plain) {
            head.header.visible = from;
            head.header.serial = self.next_serial(head.header.serial);
            return self.commit(zone, head, plain).await;
        }
        // A removal is an entry too: until the last commit, readers see the set from before.
        let staged = slots.iter().map(|(slot, (before, after))| {
            Write::Put(stored_zone::set_key(zone, slot), entry(from, after.as_ref(), before.as_ref()))
        });
        head.header.open = true;
        let mut batches = batches(staged).into_iter().peekable();
        while let Some(batch) = batches.next() {
            if batches.peek().is_none() {
                head.header.open = false;
                head.header.visible = head.header.edit + 1;
                head.header.serial = self.next_serial(head.header.serial);
            }
            self.commit(zone, head, batch).await?;
        }
        // The change is done. Entries of removed sets are deleted as far as that works; no reader sees them.
        let gone = slots.iter().filter(|(_, (_, after))| after.is_none());
        for batch in self::batches(gone.map(|(slot, _)| Write::Delete(stored_zone::set_key(zone, slot)))) {
            if self.commit(zone, head, batch).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Undoes a change that its writer left open. No reader has seen it.
    pub(super) async fn undo_unfinished_change(
        &self,
        zone: &Name,
        snapshot: &dyn Snapshot,
        head: &mut Head,
    ) -> Result<(), StoreError> {
        let visible = head.header.visible;
        let entries = self.entries(snapshot, &stored_zone::zone_prefix(zone)).await;
        let entries = entries.map_err(|error| StoreError::Unavailable { reason: error.to_string() })?;
        let future = entries.into_iter().filter(|(_, entry)| entry.from > visible);
        for batch in batches(future.map(|(slot, entry)| put(zone, &slot, visible, entry.before.as_ref()))) {
            self.commit(zone, head, batch).await?;
        }
        head.header.open = false;
        self.commit(zone, head, Vec::new()).await
    }

    /// Commits `writes` with the next header, on condition that the header is still the one in `head`.
    pub(super) async fn commit(
        &self,
        zone: &Name,
        head: &mut Head,
        writes: Vec<Write>,
    ) -> Result<(), StoreError> {
        let key = stored_zone::zone_key(zone);
        head.header.edit += 1;
        let condition = match head.version {
            Some(version) => Condition::Version(key.clone(), version),
            None => Condition::Absent(key.clone()),
        };
        let mut commit = Commit { conditions: vec![condition], writes };
        commit.writes.push(Write::Put(key, stored_zone::encode(&head.header)));
        head.version = Some(self.store.commit(commit).await?.version);
        Ok(())
    }
}

fn put(zone: &Name, slot: &Slot, from: u64, after: Option<&Values>) -> Write {
    let key = stored_zone::set_key(zone, slot);
    if after.is_none() { Write::Delete(key) } else { Write::Put(key, entry(from, after, None)) }
}

fn entry(from: u64, set: Option<&Values>, before: Option<&Values>) -> Vec<u8> {
    stored_zone::encode(&Entry { from, set: set.cloned(), before: before.cloned() })
}

fn fits(writes: &[Write]) -> bool {
    writes.len() < MAX_WRITES && writes.iter().map(Write::bytes).sum::<usize>() + ROOM <= MAX_BYTES
}

/// Splits writes into as few commits as can hold them.
fn batches(writes: impl Iterator<Item = Write>) -> Vec<Vec<Write>> {
    let mut batches: Vec<Vec<Write>> = Vec::new();
    let mut bytes = 0;
    for write in writes {
        let size = write.bytes();
        match batches.last_mut() {
            Some(batch) if batch.len() + 1 < MAX_WRITES && bytes + size + ROOM <= MAX_BYTES => {
                bytes += size;
                batch.push(write);
            }
            _ => {
                bytes = size;
                batches.push(vec![write]);
            }
        }
    }
    batches
}
